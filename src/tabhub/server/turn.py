"""Answers of one turn of the event loop: the first leaves at once, the others together at its end.

Owns only the order. Under load many calls are answered in one turn; written one by one between their work, each write
wakes the client's process anew, written together they wake it once. A single call loses nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Turn:
    """What is held until the turn ends."""

    __slots__ = ("_held", "_open")

    def __init__(self) -> None:
        self._open = False
        self._held: list[tuple[asyncio.Transport, bytes, Callable[[], None]]] = []

    def write(
        self, loop: asyncio.AbstractEventLoop, transport: asyncio.Transport, data: bytes, done: Callable[[], None]
    ) -> None:
        """Write now or at the end of the turn, then call `done`."""
        if self._open:
            self._held.append((transport, data, done))
            return
        self._open = True
        loop.call_soon(self._end)
        transport.write(data)
        done()

    def _end(self) -> None:
        self._open = False
        if self._held:
            held, self._held = self._held, []
            for transport, data, _ in held:
                if not transport.is_closing():
                    transport.write(data)
            for _, _, done in held:
                done()
