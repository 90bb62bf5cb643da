"""Answers of one turn of the event loop: the first leaves at once, the others together at its end.

Owns only the order, also that between the audit log and the answers: lines are held while the turn is open, and written
before the answers that were held with them. Under load many calls are answered in one turn; written one by one between
their work, each write wakes the client's process anew, written together they wake it once. A single call loses nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol


class Lines(Protocol):
    """What writes lines (store.audit.AuditLog)."""

    def hold(self) -> None:
        """Keep lines back that may wait."""
        ...

    def release(self) -> None:
        """Write them."""
        ...


class Turn:
    """What is held until the turn ends."""

    __slots__ = ("_held", "_lines", "open")

    def __init__(self, lines: Lines | None = None) -> None:
        self.open = False
        """Whether an answer left in this turn, so that others wait for its end."""
        self._lines = lines
        self._held: list[tuple[asyncio.Transport, bytes, Callable[[], None]]] = []

    def write(
        self, loop: asyncio.AbstractEventLoop, transport: asyncio.Transport, data: bytes, done: Callable[[], None]
    ) -> None:
        """Write now or at the end of the turn, then call `done`."""
        if self.open:
            self._held.append((transport, data, done))
            return
        self.open = True
        if self._lines is not None:
            self._lines.hold()
        loop.call_soon(self._end)
        transport.write(data)
        done()

    def release(self) -> None:
        """Something leaves outside of the turn: what the log holds is written before."""
        if self._lines is not None:
            self._lines.release()

    def _end(self) -> None:
        self.open = False
        self.release()
        if self._held:
            held, self._held = self._held, []
            for transport, data, _ in held:
                if not transport.is_closing():
                    transport.write(data)
            for _, _, done in held:
                done()
