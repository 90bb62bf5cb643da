"""Calls that are held before they are open, until they are released, cancelled or time out.

Owns the waiting. Why a call is held, and for how long, is up to the holder.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from tabhub.core.sessions import Session
from tabhub.core.tools import Tool
from tabhub.errors import CallCancelled, TabhubError

if TYPE_CHECKING:
    from tabhub.calls.protocols import Caller


@dataclass(slots=True, eq=False)
class _HeldCall:
    caller: Caller
    tool: Tool
    released: asyncio.Future[None]


class HeldCalls:
    """The calls that wait, in the order they came (calls.protocols.Waits)."""

    def __init__(self) -> None:
        self._calls: list[_HeldCall] = []

    def __len__(self) -> int:
        return len(self._calls)

    async def wait(self, caller: Caller, tool: Tool, seconds: float) -> None:
        """Wait until released; TimeoutError after `seconds`, or the error the call was failed with."""
        call = _HeldCall(caller, tool, asyncio.get_running_loop().create_future())
        self._calls.append(call)
        try:
            async with asyncio.timeout(seconds):
                await call.released
        finally:
            self._calls.remove(call)

    def release(self) -> int:
        """Let all calls continue. Returns how many."""
        waiting = [call for call in self._calls if not call.released.done()]
        for call in waiting:
            call.released.set_result(None)
        return len(waiting)

    def fail(self, error: Callable[[Tool], TabhubError]) -> None:
        """Fail all calls, each with its own error."""
        self._fail(lambda _caller, _session: True, error)

    def cancel(self, which: Callable[[Caller, Session], bool], reason: str) -> None:
        self._fail(which, partial(cancelled_before_sending, reason))

    def _fail(self, which: Callable[[Caller, Session], bool], error: Callable[[Tool], TabhubError]) -> None:
        for call in self._calls:
            if which(call.caller, call.caller.session) and not call.released.done():
                call.released.set_exception(error(call.tool))


def cancelled_before_sending(reason: str, tool: Tool) -> CallCancelled:
    error = CallCancelled(f"{tool.name} was cancelled: {reason}.")
    error.outcome = "not_sent"
    return error
