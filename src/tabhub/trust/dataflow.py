"""The data-flow guard: a session that has read one site and then acts on another.

Instructions in a page may make an agent carry its content elsewhere. Owns what each session has read, and the pairs of
sites that a person has approved. Bounded: beyond a maximum the oldest sites are dropped, and all when a session ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

UNKNOWN = "unknown "
"""How the name of a document begins that any page can have made: another site than any, also than itself."""
_SITES = 200
_PAIRS = 2000
_SESSIONS = 5000


def is_unknown(site: str) -> bool:
    return site.startswith(UNKNOWN)


@dataclass(slots=True)
class _Seen:
    sites: dict[str, set[str]] = field(default_factory=dict)
    """In the order of the first read, each with the plugins it was read through."""
    allowed: dict[tuple[str, str], None] = field(default_factory=dict)


class DataFlows:
    """What the sessions have read."""

    def __init__(self) -> None:
        self._sessions: dict[str, _Seen] = {}

    def read(self, session: str, site: str, through: str | None = None) -> None:
        """A session received content of a site, through a plugin or without one."""
        seen = self._sessions.get(session)
        if seen is None:
            seen = self._sessions[session] = _Seen()
            if len(self._sessions) > _SESSIONS:  # stateless clients have many names and never end
                del self._sessions[next(iter(self._sessions))]
        by = seen.sites.get(site)
        if by is None:
            by = seen.sites[site] = set()
            if len(seen.sites) > _SITES:
                del seen.sites[next(iter(seen.sites))]
        if through is not None and len(by) < _SITES:
            by.add(through)

    def crossing(self, session: str, targets: Iterable[str]) -> tuple[str, ...]:
        """The sites whose content an action could carry elsewhere, without approved pairs.

        `targets` are the names of the one place acted on: its origin, or the plugin for it.
        """
        seen = self._sessions.get(session)
        if seen is None:
            return ()
        there = tuple(targets)
        if not there:
            return ()
        same = {target for target in there if not is_unknown(target)}
        return tuple(
            site
            for site, through in seen.sites.items()
            if site not in same
            and not through.intersection(there)
            and not any((site, target) in seen.allowed for target in there)
        )

    def allow(self, session: str, sites: Iterable[str], targets: Iterable[str]) -> None:
        """A person approved these pairs and is not asked again."""
        seen = self._sessions.setdefault(session, _Seen())
        for site in sites:
            for target in targets:
                if not is_unknown(target):
                    seen.allowed[site, target] = None
        while len(seen.allowed) > _PAIRS:
            del seen.allowed[next(iter(seen.allowed))]

    def knows(self, session: str) -> bool:
        return session in self._sessions

    def end(self, session: str) -> None:
        self._sessions.pop(session, None)

    def __len__(self) -> int:
        return len(self._sessions)
