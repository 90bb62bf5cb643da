"""An event loop with virtual time, which passes only when a test lets it: timeouts of minutes take milliseconds."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class _Selector(selectors.SelectSelector):
    """Never waits; notifies the loop when it would."""

    def __init__(self) -> None:
        super().__init__()
        self.idle: Callable[[float | None], None] = lambda timeout: None

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout > 0:
            self.idle(timeout)
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """Runs ready callbacks; time passes only in `run_for`, and only when no callback is ready."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.problems: list[dict[str, Any]] = []
        self._horizon = self.now
        selector = _Selector()
        super().__init__(selector)
        selector.idle = self._idle
        self.set_exception_handler(lambda _, context: self.problems.append(context))

    def time(self) -> float:
        return self.now

    def _idle(self, timeout: float | None) -> None:
        if timeout is None or self.now + timeout > self._horizon:
            self.now = self._horizon
            self.stop()
        else:
            self.now += timeout

    def run_for(self, seconds: float = 0.0) -> None:
        """Let this much time pass, and run everything that becomes due."""
        self._horizon = self.now + seconds
        self.run_forever()
        assert not self.problems, self.problems

    def act(self, do: Callable[[], T]) -> T:
        """Run a function inside the loop, and everything that follows from it."""
        done: list[T] = []
        self.call_soon(lambda: done.append(do()))
        self.run_for()
        return done[0]
