"""The event loop of both applications, the signals that end them, and the garbage collector while they start."""

from __future__ import annotations

import asyncio
import gc
import signal
import sys

_GC_THRESHOLD = 20_000


def new_event_loop() -> asyncio.AbstractEventLoop:
    """The event loop of both applications: uvloop where there is one."""
    if sys.platform == "win32":
        return asyncio.new_event_loop()
    import uvloop

    return uvloop.new_event_loop()


def stop_signal() -> asyncio.Event:
    """An event that is set by Ctrl+C or SIGTERM."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGINT, signal.SIGTERM):
        if sys.platform == "win32":
            signal.signal(name, lambda *_: loop.call_soon_threadsafe(stop.set))
        else:
            loop.add_signal_handler(name, stop.set)
    return stop


def freeze_startup_objects() -> None:
    """Objects made at start-up are never freed: the garbage collector need not visit them again under load.

    A process may start with the collector off, because nearly everything that is made then stays.
    """
    gc.freeze()
    gc.set_threshold(_GC_THRESHOLD)
    gc.enable()
