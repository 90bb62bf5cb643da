"""Calls that are held back before they are open: each waits for its turn, or for the agent to take it back.

Owns the waiting itself. Why a call waits, and for how long, is the business of who holds it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tabhub.core.tools import Tool
from tabhub.errors import CallCancelled, TabhubError

if TYPE_CHECKING:
    from tabhub.calls.engine import Caller


@dataclass(slots=True, eq=False)
class _Held:
    caller: Caller
    tool: Tool
    turn: asyncio.Future[None]


class Holding:
    """The calls that wait, in the order they came (server.calling.Waits)."""

    def __init__(self) -> None:
        self._held: list[_Held] = []

    def __len__(self) -> int:
        return len(self._held)

    async def wait(self, caller: Caller, tool: Tool, seconds: float) -> None:
        """Wait to be released, `seconds` at most (TimeoutError); or until someone decides that the call fails."""
        held = _Held(caller, tool, asyncio.get_running_loop().create_future())
        self._held.append(held)
        caller.slow()  # so that it is noticed when the agent does not wait any more
        try:
            async with asyncio.timeout(seconds):
                await held.turn
        finally:
            self._held.remove(held)

    def release(self) -> int:
        """Let all go on that wait, and give how many."""
        released = [held for held in self._held if not held.turn.done()]
        for held in released:
            held.turn.set_result(None)
        return len(released)

    def fail(self, error: Callable[[Tool], TabhubError]) -> None:
        """All that wait fail, each with its own error."""
        self._fail(lambda _: True, error)

    def cancel_for(self, caller: Caller, reason: str) -> None:
        """The agent took a call back."""
        self._fail(lambda held: held.caller is caller, _cancelled(reason))

    def cancel_session(self, session_id: str, reason: str) -> None:
        """A session is over."""
        self._fail(lambda held: held.caller.session.id == session_id, _cancelled(reason))

    def cancel_all(self, reason: str) -> None:
        """The hub is going."""
        self.fail(_cancelled(reason))

    def _fail(self, which: Callable[[_Held], bool], error: Callable[[Tool], TabhubError]) -> None:
        for held in self._held:
            if which(held) and not held.turn.done():
                held.turn.set_exception(error(held.tool))


def _cancelled(reason: str) -> Callable[[Tool], TabhubError]:
    def error(tool: Tool) -> TabhubError:
        cancelled = CallCancelled(f"{tool.name} was cancelled: {reason}.")
        cancelled.outcome = "not_sent"
        return cancelled

    return error
