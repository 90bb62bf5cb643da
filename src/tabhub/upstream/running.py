"""Calls under way at external servers, and which of them a server speaks of when it says something by itself.

Owns that one question. Over HTTP a message comes on the stream of the call it belongs to; over standard input and
output it may belong to any, and so to the only one there is, or to nobody.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from tabhub.errors import TabhubError
from tabhub.upstream.failures import UpstreamError


class Running:
    """One call under way; `ctx` is the hub's context of it (hub.tools.CallContext)."""

    __slots__ = ("asked", "ctx", "raised", "task")

    def __init__(self, ctx: Any) -> None:
        self.ctx = ctx
        self.asked = 0
        self.raised: Exception | None = None
        """What the agent's side raised when it was asked: it ends the call."""
        self.task: Any = None

    async def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Ask the agent's client. Where it can be asked between rounds only, the call ends here and is made anew."""
        self.asked += 1
        key = f"upstream-{self.asked}"
        try:
            answers = await self.ctx.ask({key: (method, params)})
        except TabhubError as error:
            raise UpstreamError(error.text()) from None
        except Exception as round_over:  # noqa: BLE001 - whatever it is, it is raised where the call was made
            self.raised = round_over
            if self.task is not None:
                self.task.cancel()
            raise UpstreamError("The agent is asked, and the call is made anew with its answer.") from None
        answer: dict[str, Any] = answers[key]
        return answer


CURRENT: ContextVar[Running | None] = ContextVar("tabhub_upstream_call", default=None)
"""The call in whose context something runs."""


class InFlight:
    """The calls under way at one server."""

    def __init__(self) -> None:
        self._calls: set[Running] = set()

    def __len__(self) -> int:
        return len(self._calls)

    def add(self, call: Running) -> None:
        """A call begins."""
        self._calls.add(call)

    def discard(self, call: Running) -> None:
        """It is over."""
        self._calls.discard(call)

    def meant(self) -> Running | None:
        """The call a message belongs to, where that can be told."""
        current = CURRENT.get()
        if current is not None and current in self._calls:
            return current
        return next(iter(self._calls)) if len(self._calls) == 1 else None

    def log(self, level: str, logger: str, data: Any) -> None:
        """Pass a log message on to the agent it belongs to."""
        call = self.meant()
        if call is not None:
            call.ctx.log(level, logger[:200], data)

    async def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Ask the agent whose call a question belongs to."""
        call = self.meant()
        if call is None:
            several = "several agents use this server at once, and it does not say whom it asks"
            raise UpstreamError(f"Nobody can be asked: {several if self._calls else 'no call is under way'}.")
        return await call.ask(method, params)
