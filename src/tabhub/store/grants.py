"""Grants on disk: `grants.json`, readable by this user only.

Owns the format of the file and its maximum. The file is the truth: the hub and the command line both change it under a
lock, and a running hub uses a change with its next lookup. While the file cannot be read, nothing is granted.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Callable, Iterable

import msgspec

from tabhub.errors import SetupError
from tabhub.platform.files import read_trusted, stamp, write_atomic
from tabhub.platform.locks import locked
from tabhub.store.home import Home
from tabhub.trust.grants import Grant, Scope

log = logging.getLogger("tabhub.store")

_LARGEST = 8 * 1024 * 1024


class GrantStore:
    """The grants of one home, as the running hub uses them."""

    def __init__(self, home: Home, most: int) -> None:
        self._home = home
        self._most = most
        self._stamp: tuple[int, int, int] | None = None
        self._grants: tuple[Grant, ...] = ()
        self.error: str | None = None
        """Why the file cannot be read, while that is so."""

    def all(self) -> tuple[Grant, ...]:
        """All grants, oldest first."""
        if (now := stamp(self._home.grants)) != self._stamp:
            self._stamp = now
            try:
                self._grants, self.error = tuple(listed(self._home)), None
            except SetupError as error:
                self._grants, self.error = (), error.message
                log.error("%s", error.text())
        return self._grants

    def add(self, agent: str | None, scopes: Iterable[Scope], by: str, now: float) -> None:
        """Store a grant for each scope, in the place of an equal one."""
        fresh = [Grant(os.urandom(4).hex(), agent, scope.kind, scope.site, now, by) for scope in scopes]
        replaced = {(grant.agent, grant.kind, grant.site) for grant in fresh}
        _change(
            self._home,
            lambda known: [
                *(grant for grant in known if (grant.agent, grant.kind, grant.site) not in replaced),
                *fresh,
            ][-self._most :],
        )

    def forget(self, kinds: Iterable[str]) -> None:
        """Remove the grants of these kinds."""
        named = frozenset(kinds)
        if any(grant.kind in named for grant in self.all()):
            _change(self._home, lambda known: [grant for grant in known if grant.kind not in named])


def revoke(home: Home, ident: str) -> Grant:
    """Remove a grant; what it covered needs approval again at once."""
    found: list[Grant] = []

    def others(known: list[Grant]) -> list[Grant]:
        found.extend(grant for grant in known if grant.id == ident)
        if not found:
            raise SetupError(f"There is no grant {ident[:60]!r}.", hint="`tabhub permissions list` shows them.")
        return [grant for grant in known if grant.id != ident]

    _change(home, others)
    return found[0]


def listed(home: Home) -> list[Grant]:
    """All grants, oldest first."""
    raw = read_trusted(home.grants, _LARGEST, writable_by=stat.S_IWGRP | stat.S_IWOTH)
    if raw is None:
        return []
    try:
        return msgspec.json.decode(raw, type=list[Grant])
    except ValueError as error:
        raise SetupError(
            f"{home.grants} is broken: {error}.", hint="Remove it; agents then ask again for what it allowed."
        ) from None


def _change(home: Home, change: Callable[[list[Grant]], list[Grant]]) -> None:
    home.ensure()
    with locked(home.root / "grants.lock"):
        write_atomic(home.grants, msgspec.json.encode(change(listed(home))))
