"""Sessions: one agent's isolation unit, its identity and its tab.

Owns who is connected, which tab each session is bound to and which tabs it opened. Pure: ids and times are passed in.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from tabhub.errors import Busy, SessionNotFound
from tabhub.limits import Limits

SessionKind = Literal["mcp", "handle", "rest"]


@dataclass(slots=True, eq=False)
class Session:
    """One agent."""

    id: str
    kind: SessionKind
    client: str
    opened: float
    seen: float
    tab: int | None = None
    lost_tab: int | None = None
    """The bound tab that closed, until the agent has been told."""
    own_tabs: set[int] = field(default_factory=set)
    busy: int = 0
    """Requests and streams open right now; such a session never expires."""

    @property
    def owner(self) -> str:
        """Whose stored results these are; stateless calls share one owner, the handle itself is the key."""
        return "stateless" if self.kind == "handle" else self.id


class Sessions:
    """The sessions of the hub."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._all: dict[str, Session] = {}

    def __len__(self) -> int:
        return len(self._all)

    def all(self) -> list[Session]:
        """Every session."""
        return list(self._all.values())

    def open(self, session_id: str, kind: SessionKind, client: str, now: float) -> Session:
        """Begin a session."""
        if len(self._all) >= self._limits.sessions:
            raise Busy(
                f"{len(self._all)} sessions are open, which is the limit.",
                hint="End sessions that are not needed, or raise limits.sessions.",
            )
        session = Session(session_id, kind, client, now, now)
        self._all[session_id] = session
        return session

    def adopt(self, session: Session, session_id: str) -> None:
        """Keep a session that so far lived only for one request."""
        self._all[session_id] = session
        session.id = session_id

    def knows(self, session: Session) -> bool:
        """Whether the session is kept."""
        return self._all.get(session.id) is session

    def get(self, session_id: str) -> Session | None:
        """A session, if it is there."""
        return self._all.get(session_id)

    def require(self, session_id: str, kind: SessionKind) -> Session:
        """A session of that kind, or SessionNotFound: the id of another kind of session opens nothing here."""
        session = self._all.get(session_id)
        if session is None or session.kind != kind:
            raise SessionNotFound("This session has ended or never was.", hint="Start a new one.")
        return session

    def end(self, session_id: str) -> Session | None:
        """End a session; it is returned so that its calls and tabs can be seen to."""
        return self._all.pop(session_id, None)

    def expired(self, now: float) -> list[Session]:
        """Sessions idle for too long."""
        horizon = now - self._limits.session_idle
        return [s for s in self._all.values() if s.seen <= horizon and not s.busy]

    def bind(self, session: Session, tab: int, *, opened: bool = False) -> None:
        """Make `tab` the one the session's calls go to."""
        session.tab = tab
        session.lost_tab = None
        if opened:
            session.own_tabs.add(tab)

    def tab_closed(self, tab: int) -> None:
        """Let go of a tab that is gone."""
        for session in self._all.values():
            session.own_tabs.discard(tab)
            if session.tab == tab:
                session.tab = None
                session.lost_tab = tab
