"""Waiting for a browser that is starting or reconnecting, instead of failing the calls that came before it.

Owns until when a browser is expected, and the calls that wait. A call comes here only after it failed for want of a
browser: nothing of it was sent, so it can be made again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tabhub.calls.held_calls import HeldCalls
from tabhub.core.tools import Tool
from tabhub.errors import NotConnected, TabhubError

if TYPE_CHECKING:
    from tabhub.calls.protocols import Caller


class BrowserWait:
    """Holds calls until a browser has connected, or none is expected."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.held_calls = HeldCalls()
        self._clock = clock
        self._until = 0.0

    def expect(self, seconds: float) -> None:
        self._until = max(self._until, self._clock() + seconds)

    def stop_waiting(self) -> None:
        """A browser has connected, or will not: the calls are made again, and fail with the reason if there is none."""
        self._until = 0.0
        self.held_calls.release()

    async def wait(self, caller: Caller, tool: Tool, error: NotConnected) -> TabhubError | None:
        """None when the call should be made again, otherwise the error it ends with."""
        remaining = self._until - self._clock()
        if remaining <= 0:
            return error
        try:
            await self.held_calls.wait(caller, tool, remaining)
        except TimeoutError:
            return error
        except TabhubError as cancelled:
            return cancelled
        return None
