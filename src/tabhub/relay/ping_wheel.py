"""Looking after idle connections: one timer for all, and pings only for those that have been silent.

Owns when each connection is looked at. A timer and a Python object for every ping cost more than anything else that an
idle connection does.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

_SLOTS = 20
"""Parts of all connections that are looked at one after the other, so that the pings of a node are spread."""


class Watched(Protocol):
    """A connection, as this module sees it."""

    def check_alive(self) -> None:
        """Called once per interval."""
        ...


class PingWheel:
    """All connections of one node."""

    def __init__(self, interval: float) -> None:
        self._pause = interval / _SLOTS
        self._slots: list[set[Watched]] = [set() for _ in range(_SLOTS)]
        self._at = 0

    def add(self, connection: Watched) -> int:
        """Returns its slot, by which it is removed. It is looked at for the first time after one interval."""
        self._slots[self._at].add(connection)
        return self._at

    def remove(self, connection: Watched, slot: int) -> None:
        self._slots[slot].discard(connection)

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self._pause)
            self.turn()

    def turn(self) -> None:
        """Look at the connections of the next slot."""
        self._at = (self._at + 1) % _SLOTS
        for connection in list(self._slots[self._at]):
            connection.check_alive()
