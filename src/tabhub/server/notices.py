"""Telling agents that the list of tools changed: never more often than agreed, and the last state always arrives."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tabhub.limits import Limits


class _Subscriber:
    """One agent that listens."""

    def __init__(self, changed: Callable[[], None], end: Callable[[], None], gap: float) -> None:
        self._changed = changed
        self.end = end
        self._gap = gap
        self._next = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def poke(self) -> None:
        """Tell it now, or as soon as its rate allows."""
        if self._timer is not None:
            return
        loop = asyncio.get_running_loop()
        wait = self._next - loop.time()
        if wait <= 0:
            self._fire()
        else:
            self._timer = loop.call_later(wait, self._fire)

    def _fire(self) -> None:
        self._timer = None
        self._next = asyncio.get_running_loop().time() + self._gap
        self._changed()

    def stop(self) -> None:
        """It listens no more."""
        if self._timer is not None:
            self._timer.cancel()


class Notices:
    """Everyone who listens for changes."""

    def __init__(self, limits: Limits) -> None:
        self._gap = 1.0 / limits.list_changed_rate if limits.list_changed_rate else 0.0
        self._listening: set[_Subscriber] = set()
        self._open: set[_Subscriber] = set()

    @contextmanager
    def subscribe(
        self, changed: Callable[[], None], end: Callable[[], None], *, wants_changes: bool = True
    ) -> Iterator[None]:
        """Listen while the block runs; `end` is called when the hub shuts down."""
        subscriber = _Subscriber(changed, end, self._gap)
        self._open.add(subscriber)
        if wants_changes:
            self._listening.add(subscriber)
        try:
            yield
        finally:
            subscriber.stop()
            self._open.discard(subscriber)
            self._listening.discard(subscriber)

    def tools_changed(self) -> None:
        """The list of tools differs from what agents know."""
        for subscriber in self._listening:
            subscriber.poke()

    def close(self) -> None:
        """End every stream in order."""
        for subscriber in list(self._open):
            subscriber.end()
