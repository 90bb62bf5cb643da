"""Calls in progress at external servers, and which of them a message from a server belongs to.

Owns that question, and calls that outlive the agent's request. Over HTTP a message arrives on the stream of its call;
over stdio it may belong to any call, so it is assigned only when there is exactly one. A stateless agent can be asked
only between its requests: until it returns with the answer, its call is suspended at the server, and the key of the
question finds it again.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

from tabhub.core.descriptions import visible
from tabhub.errors import TabhubError, UpstreamError, UpstreamLost

_KEY_PREFIX = "upstream-"
_MAX_SUSPENDED = 100
"""Maximum of suspended calls."""
_LOG_NAME = 200
_MAX_QUESTION = 4_000
_MAX_LOGGED = 256 * 1024
"""Bytes of log messages of one call."""
_MAX_STEPS = 2_000
"""Reports of progress of one call."""


class ActiveCall:
    """One call in progress; `ctx` is its CallContext, None while the call is suspended between two requests of the
    agent."""

    __slots__ = ("_asked", "_logged", "_resumed", "_steps", "ctx", "ident", "identity", "outcome", "suspended", "task")

    def __init__(self, ctx: Any, identity: tuple[Any, ...], suspended: SuspendedCalls) -> None:
        self.ctx = ctx
        self.identity = identity
        """Caller, method and params: only the same agent with the same call may resume it."""
        self.ident = ""
        self.suspended = suspended
        self.task: asyncio.Future[Any] | None = None
        self.outcome: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        """How the agent's current request ends."""
        self._asked = 0
        self._steps = 0
        self._logged = 0
        self._resumed: asyncio.Future[None] | None = None

    def start(self, task: asyncio.Future[Any]) -> None:
        self.task = task
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Future[Any]) -> None:
        if self.outcome.done():
            return
        if task.cancelled():
            self.outcome.cancel()
        elif (error := task.exception()) is not None:
            self.outcome.set_exception(error)
        else:
            self.outcome.set_result(task.result())

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        self._steps += 1
        if self.ctx is not None and self._steps <= _MAX_STEPS:
            self.ctx.progress(progress, total, message[:_LOG_NAME] if message is not None else None)

    def log(self, level: str, logger: str, data: Any) -> None:
        """Forward a log message, up to a maximum per call."""
        if self.ctx is None or self._logged > _MAX_LOGGED:
            return
        self._logged += len(json.dumps(data, default=str)) + _LOG_NAME
        if self._logged > _MAX_LOGGED:
            level, data = "warning", "This server sends too many log messages: the rest is dropped."
        self.ctx.log(level, logger[:_LOG_NAME], data)

    async def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Ask the agent's client. Where that is possible only between requests, wait until the agent returns."""
        if not self.ident:
            self.ident = secrets.token_hex(16)
        self._asked += 1
        key = f"{_KEY_PREFIX}{self.ident}-{self._asked}"
        while True:
            if self.ctx is None:
                self._resumed = self._resumed or asyncio.get_running_loop().create_future()
                await asyncio.shield(self._resumed)
            try:
                answers = await self.ctx.ask({key: (method, params)})
            except TabhubError as error:
                raise UpstreamError(error.text()) from None
            except Exception as round_over:  # noqa: BLE001 - whatever it is, it is raised where the call was made
                self.suspended.add(self)
                self.ctx = None
                if not self.outcome.done():
                    self.outcome.set_exception(round_over)
            else:
                answer: dict[str, Any] = answers[key]
                return answer

    def resume(self, ctx: Any) -> None:
        """The agent has returned with a new request."""
        self.ctx = ctx
        self.outcome = asyncio.get_running_loop().create_future()
        if self.task is not None and self.task.done():
            self._done(self.task)
        resumed, self._resumed = self._resumed, None
        if resumed is not None and not resumed.done():
            resumed.set_result(None)

    def abandon(self) -> None:
        """The agent did not return, or cancelled the call."""
        if self.task is not None:
            self.task.cancel()
        if self._resumed is not None and not self._resumed.done():
            self._resumed.set_exception(UpstreamError("The agent did not return with an answer."))


class SuspendedCalls:
    """Calls that wait at their servers until an agent returns with an answer."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._calls: dict[str, tuple[ActiveCall, asyncio.TimerHandle]] = {}

    def add(self, call: ActiveCall) -> None:
        """The agent is asked, which ends its request; raises UpstreamError at the maximum."""
        if len(self._calls) >= _MAX_SUSPENDED:
            raise UpstreamError(f"{_MAX_SUSPENDED} calls already wait for their agents, which is the maximum.")
        timer = asyncio.get_running_loop().call_later(self._timeout, self._expire, call.ident)
        self._calls[call.ident] = (call, timer)

    def _expire(self, ident: str) -> None:
        found = self._calls.pop(ident, None)
        if found is not None:
            found[0].abandon()

    def pop(self, extra: Mapping[str, Any], identity: tuple[Any, ...]) -> ActiveCall | None:
        """The call an agent returns to, by the keys of its answers; None for a new call."""
        given = extra.get("inputResponses")
        for key in given if isinstance(given, Mapping) else ():
            before, _, rest = key.partition(_KEY_PREFIX)
            ident = rest.partition("-")[0]
            if before or not ident:
                continue
            found = self._calls.get(ident)
            if found is None or found[0].identity != identity:
                raise UpstreamLost(
                    "The call this answers is no longer in progress: the answer came after "
                    f"{self._timeout:g} s, or the server or the hub has ended it.",
                    hint="It may have been carried out. Check before you call again without `inputResponses`.",
                )
            found[1].cancel()
            return self._calls.pop(ident)[0]
        return None


CURRENT: ContextVar[ActiveCall | None] = ContextVar("tabhub_upstream_call", default=None)
"""The call in whose context something runs."""


def with_server_name(server: str, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """A question with the server's name: the agent's client shows it as the hub's, the only server it knows."""
    message = params.get("message")
    if method != "elicitation/create" or not isinstance(message, str):
        return params
    return {**params, "message": f"The external server {server} asks: {visible(message[:_MAX_QUESTION])[0]}"}


class ServerCalls(set[ActiveCall]):
    """The calls in progress at one server."""

    def find_owner(self) -> ActiveCall | None:
        """The call a message belongs to; None if that is not clear."""
        current = CURRENT.get()
        if current in self:
            return current
        return next(iter(self)) if len(self) == 1 else None

    def log(self, level: str, logger: str, data: Any) -> None:
        call = self.find_owner()
        if call is not None:
            call.log(level, logger, data)

    async def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        call = self.find_owner()
        if call is None:
            reason = "several agents use this server, and the question names none" if self else "no call is in progress"
            raise UpstreamError(f"No agent can be asked: {reason}.")
        return await call.ask(method, params)
