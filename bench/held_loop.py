"""Run the hub and watch its event loop: `python -m bench.held_loop OUT start …` runs `tabhub start …`.

SIGUSR1 starts the measurement; SIGUSR2 writes the longest time in milliseconds by which a timer of the loop was late.
"""

from __future__ import annotations

import asyncio
import runpy
import signal
import sys
import time
from pathlib import Path
from typing import Any

from tabhub.http.server import HttpServer

BEAT = 0.001


class Heart:
    """A timer that is due every millisecond."""

    def __init__(self) -> None:
        self.longest = 0.0
        self._last = 0.0
        self._loop: asyncio.AbstractEventLoop

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start the timer on this loop."""
        self._loop, self._last = loop, time.perf_counter()
        loop.call_later(BEAT, self._beat)

    def _beat(self) -> None:
        now = time.perf_counter()
        self.longest = max(self.longest, now - self._last - BEAT)
        self._last = now
        self._loop.call_later(BEAT, self._beat)

    def reset(self) -> None:
        """Discard previous measurements."""
        self.longest = 0.0


def main() -> None:
    """Run the hub."""
    out, heart = Path(sys.argv[1]), Heart()
    startup = HttpServer.start

    async def started(server: HttpServer, *args: Any, **named: Any) -> None:
        await startup(server, *args, **named)
        heart.start(asyncio.get_running_loop())

    def finish(*_: object) -> None:
        half = out.with_suffix(".half")
        half.write_text(f"{heart.longest * 1000:.2f}")
        half.rename(out)  # written at once, so that a reader never sees a part

    HttpServer.start = started  # type: ignore[method-assign,assignment]
    signal.signal(signal.SIGUSR1, lambda *_: heart.reset())
    signal.signal(signal.SIGUSR2, finish)
    sys.argv = ["tabhub", *sys.argv[2:]]
    runpy.run_module("tabhub", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
