"""Calls that are held before they are open, until they are released, cancelled or time out.

Owns the waiting. Why a call is held, and for how long, is up to the holder.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from tabhub.core.sessions import Session
from tabhub.core.tools import Tool
from tabhub.errors import CallCancelled, TabhubError

if TYPE_CHECKING:
    from tabhub.calls.protocols import Caller


class HeldCalls:
    """The calls that wait, in the order they came (calls.protocols.Waits)."""

    def __init__(self) -> None:
        self._calls: dict[asyncio.Future[None], tuple[Caller, Tool]] = {}

    def __len__(self) -> int:
        return len(self._calls)

    async def wait(self, caller: Caller, tool: Tool, seconds: float) -> None:
        """Wait until released; TimeoutError after `seconds`, or the error the call was failed with."""
        released = asyncio.get_running_loop().create_future()
        self._calls[released] = caller, tool
        try:
            async with asyncio.timeout(seconds):
                await released
        finally:
            del self._calls[released]

    def release(self) -> int:
        """Let all calls continue. Returns how many."""
        waiting = [released for released in self._calls if not released.done()]
        for released in waiting:
            released.set_result(None)
        return len(waiting)

    def fail(
        self,
        error: Callable[[Tool], TabhubError],
        which: Callable[[Caller, Session], bool] = lambda _caller, _session: True,
    ) -> None:
        """Fail calls, each with its own error."""
        for released, (caller, tool) in self._calls.items():
            if which(caller, caller.session) and not released.done():
                released.set_exception(error(tool))

    def cancel(self, which: Callable[[Caller, Session], bool], reason: str) -> None:
        self.fail(partial(cancelled_before_sending, reason), which)


def cancelled_before_sending(reason: str, tool: Tool) -> CallCancelled:
    error = CallCancelled(f"{tool.name} was cancelled: {reason}.")
    error.outcome = "not_sent"
    return error
