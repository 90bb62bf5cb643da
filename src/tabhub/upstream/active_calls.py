"""Calls under way at external servers, and which of them a server speaks of when it says something by itself.

Owns that question, and calls that outlive the round of an agent in which they were made. Over HTTP a message comes on
the stream of the call it belongs to; over standard input and output it may belong to any, and so to the only one there
is, or to nobody. An agent of the stateless era can be asked between its requests only: its call waits at the server
meanwhile, and is found again by the key of the question when the agent comes back with the answer.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

from tabhub.errors import TabhubError, UpstreamError, UpstreamLost

_KEY = "upstream-"
_MOST = 100
"""Calls that wait for their agents at a time."""
_LOG_NAME = 200
_MOST_LOGGED = 256 * 1024
"""Bytes of log messages of one call: an agent that gets more than it can read is cut off."""
_MOST_STEPS = 2_000
"""Reports of progress of one call."""


class ActiveCall:
    """One call under way; `ctx` is the hub's context of it (hub.tools.CallContext), None between two rounds."""

    __slots__ = ("_asked", "_back", "_logged", "_steps", "about", "ctx", "ident", "outcome", "task", "waiting")

    def __init__(self, ctx: Any, about: tuple[Any, ...], waiting: SuspendedCalls) -> None:
        self.ctx = ctx
        self.about = about
        """Whose call of what it is: an agent that comes back must be that one, with the same call."""
        self.ident = ""
        self.waiting = waiting
        self.task: asyncio.Future[Any] | None = None
        self.outcome: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        """What this round of the agent ends with."""
        self._asked = 0
        self._steps = 0
        self._logged = 0
        self._back: asyncio.Future[None] | None = None

    def begin(self, task: asyncio.Future[Any]) -> None:
        """The request is on its way."""
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
        """Tell the agent how far the call is."""
        self._steps += 1
        if self.ctx is not None and self._steps <= _MOST_STEPS:
            self.ctx.progress(progress, total, message[:_LOG_NAME] if message is not None else None)

    def log(self, level: str, logger: str, data: Any) -> None:
        """Pass a log message on, until the server has said more than anybody would read."""
        if self.ctx is None or self._logged > _MOST_LOGGED:
            return
        self._logged += len(json.dumps(data, default=str)) + _LOG_NAME
        if self._logged > _MOST_LOGGED:
            level, data = "warning", "This server says too much: the rest of its log is left out."
        self.ctx.log(level, logger[:_LOG_NAME], data)

    async def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Ask the agent's client; where it can be asked between rounds only, wait for it to come back."""
        if not self.ident:
            self.ident = secrets.token_hex(16)
        self._asked += 1
        key = f"{_KEY}{self.ident}-{self._asked}"
        while True:
            if self.ctx is None:
                await self._return()
            try:
                answers = await self.ctx.ask({key: (method, params)})
            except TabhubError as error:
                raise UpstreamError(error.text()) from None
            except Exception as round_over:  # noqa: BLE001 - whatever it is, it is raised where the call was made
                self.waiting.add(self)
                self.ctx = None
                if not self.outcome.done():
                    self.outcome.set_exception(round_over)
            else:
                answer: dict[str, Any] = answers[key]
                return answer

    async def _return(self) -> None:
        if self._back is None:
            self._back = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._back)

    def resume(self, ctx: Any) -> None:
        """The agent is back."""
        self.ctx = ctx
        self.outcome = asyncio.get_running_loop().create_future()
        if self.task is not None and self.task.done():
            self._done(self.task)
        back, self._back = self._back, None
        if back is not None and not back.done():
            back.set_result(None)

    def give_up(self) -> None:
        """The agent did not come back, or took the call back."""
        if self.task is not None:
            self.task.cancel()
        if self._back is not None and not self._back.done():
            self._back.set_exception(UpstreamError("The agent did not come back with an answer."))


class SuspendedCalls:
    """Calls that wait at their servers for an agent to come back with an answer."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._calls: dict[str, tuple[ActiveCall, asyncio.TimerHandle]] = {}

    def __len__(self) -> int:
        return len(self._calls)

    def add(self, call: ActiveCall) -> None:
        """An agent is asked, and its round ends with that."""
        if len(self._calls) >= _MOST:
            raise UpstreamError(f"{_MOST} calls wait for answers of their agents already, and no more may.")
        timer = asyncio.get_running_loop().call_later(self._patience, self._too_late, call.ident)
        self._calls[call.ident] = (call, timer)

    def _too_late(self, ident: str) -> None:
        found = self._calls.pop(ident, None)
        if found is not None:
            found[0].give_up()

    def take(self, extra: Mapping[str, Any], about: tuple[Any, ...]) -> ActiveCall | None:
        """The call an agent comes back to, by the keys of what it answers; None if it makes a new one."""
        given = extra.get("inputResponses")
        for key in given if isinstance(given, Mapping) else ():
            ident = key[len(_KEY) :].partition("-")[0] if isinstance(key, str) and key.startswith(_KEY) else ""
            if not ident:
                continue
            found = self._calls.get(ident)
            if found is None or found[0].about != about:
                raise UpstreamLost(
                    "The call this answers is no longer under way: the answer came after "
                    f"{self._patience:g} s, or the server or the hub has ended it.",
                    hint="It may have been carried out. Look before you make the call anew, without `inputResponses`.",
                )
            found[1].cancel()
            return self._calls.pop(ident)[0]
        return None


CURRENT: ContextVar[ActiveCall | None] = ContextVar("tabhub_upstream_call", default=None)
"""The call in whose context something runs."""


class ServerCalls:
    """The calls under way at one server."""

    def __init__(self) -> None:
        self._calls: set[ActiveCall] = set()

    def __len__(self) -> int:
        return len(self._calls)

    def add(self, call: ActiveCall) -> None:
        """A call begins."""
        self._calls.add(call)

    def discard(self, call: ActiveCall) -> None:
        """It is over."""
        self._calls.discard(call)

    def meant(self) -> ActiveCall | None:
        """The call a message belongs to, where that can be told."""
        current = CURRENT.get()
        if current is not None and current in self._calls:
            return current
        return next(iter(self._calls)) if len(self._calls) == 1 else None

    def log(self, level: str, logger: str, data: Any) -> None:
        """Pass a log message on to the agent it belongs to."""
        call = self.meant()
        if call is not None:
            call.log(level, logger, data)

    async def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Ask the agent whose call a question belongs to."""
        call = self.meant()
        if call is None:
            several = "several agents use this server at once, and it does not say whom it asks"
            raise UpstreamError(f"Nobody can be asked: {several if self._calls else 'no call is under way'}.")
        return await call.ask(method, params)
