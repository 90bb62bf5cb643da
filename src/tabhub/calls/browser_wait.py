"""A browser that is on its way: calls that came before it wait for it, instead of failing.

Owns until when a browser is waited for, and the calls that wait. A call comes here only after it failed because there
was no browser, so nothing of it was sent, and it may be made again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tabhub.calls.held_calls import Holding
from tabhub.core.tools import Tool
from tabhub.errors import NotConnected, TabhubError

if TYPE_CHECKING:
    from tabhub.calls.engine import Caller


class Awaited:
    """Holds calls back until a browser has come, or none is expected any more."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.holding = Holding()
        self._clock = clock
        self._until = 0.0

    def expect(self, seconds: float) -> None:
        """A browser is on its way, and should be here within that time."""
        self._until = max(self._until, self._clock() + seconds)

    def came(self) -> None:
        """It is here: the calls that wait go on."""
        self._until = 0.0
        self.holding.release()

    def failed(self) -> None:
        """It will not come; the calls that wait are made again, and told why."""
        self.came()

    async def comes(self, caller: Caller, tool: Tool, refusal: NotConnected) -> TabhubError | None:
        """None when the call is to be made again, otherwise the error it ends with."""
        left = self._until - self._clock()
        if left <= 0:
            return refusal
        try:
            await self.holding.wait(caller, tool, left)
        except TimeoutError:
            return refusal
        except TabhubError as error:
            return error
        return None
