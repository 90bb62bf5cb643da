"""The signals to a relay node: stop at once, drain and stop, reload.

Owns their order. SIGINT (Ctrl+C) stops at once, SIGTERM drains, SIGHUP reloads.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from enum import Enum


class Signal(Enum):
    """What the operator wants."""

    STOP = "stop"
    DRAIN = "drain"
    RELOAD = "reload"


class Signals:
    """Signals that arrived, in order."""

    def __init__(self) -> None:
        self._arrived: asyncio.Queue[Signal] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        if sys.platform == "win32":
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, lambda *_: loop.call_soon_threadsafe(self._arrived.put_nowait, Signal.STOP))
            return
        kinds = {signal.SIGINT: Signal.STOP, signal.SIGTERM: Signal.DRAIN, signal.SIGHUP: Signal.RELOAD}
        for number, kind in kinds.items():
            loop.add_signal_handler(number, self._arrived.put_nowait, kind)

    async def next(self, seconds: float | None = None) -> Signal | None:
        """The next signal; None if none arrives in that time."""
        try:
            async with asyncio.timeout(seconds):
                return await self._arrived.get()
        except TimeoutError:
            return None
