"""Calls of external servers' tools: sent once, and their answers handed on as they came.

Owns the way of one call: progress and logs go to the agent, questions of the server to the agent's client, cancelling
goes to the server. The time is the engine's. A request runs in a task of its own, so that a server that does not even
take the cancelling cannot keep the agent waiting.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import orjson

from tabhub.errors import BadInput
from tabhub.hub.registry import Entry
from tabhub.hub.tools import CallContext, ToolResult
from tabhub.upstream.failures import UpstreamError, UpstreamOffline
from tabhub.upstream.life import Life
from tabhub.upstream.running import CURRENT, Running
from tabhub.upstream.tools import make_tool

if TYPE_CHECKING:
    from tabhub.upstream.link import Link

log = logging.getLogger("tabhub.upstream")

_ROUNDS = 10
_ASKABLE = ("elicitation/create", "sampling/createMessage", "roots/list")
_OWN_META = "io.modelcontextprotocol/"


class Calls:
    """Runs calls of external tools."""

    def __init__(self) -> None:
        self._left: set[asyncio.Task[Any]] = set()
        """Requests whose agents have their answer already, on their way out."""

    def entries(self, life: Life, tools: Iterable[Mapping[str, Any]]) -> list[Entry]:
        """The tools of a server for the registry."""
        made = []
        for raw in tools:
            try:
                made.append(Entry(make_tool(life.server.name, raw), partial(self._run, life, raw["name"])))
            except BadInput as error:  # cached by another version
                log.warning("%s: %r is left out: %s", life.server.name, str(raw.get("name"))[:100], error.message)
        return made

    async def _run(self, life: Life, tool: str, ctx: CallContext, arguments: dict[str, Any]) -> ToolResult:
        link = await life.ready()
        params: dict[str, Any] = {"name": tool, "arguments": arguments}
        if meta := _passed_on(ctx):
            params["_meta"] = meta
        try:
            answer = await self._rounds(life, link, ctx, params)
        except UpstreamOffline:
            if not link.session_gone:
                raise
            # The server said that it knows the session no more, so nothing was done: once more in a new one.
            answer = await self._rounds(life, await life.ready(), ctx, params)
        return _result(answer)

    async def _rounds(self, life: Life, link: Link, ctx: CallContext, params: dict[str, Any]) -> dict[str, Any]:
        """One call; a server of the stateless era may ask something first and be called again with the answers."""
        for number in range(_ROUNDS):
            answer = await self._send(life, link, ctx, params)
            if answer.get("resultType") != "input_required":
                return answer
            asked = _questions(answer.get("inputRequests"), life.server.name)
            if asked:
                answers = await ctx.ask({f"{number}:{key}": question for key, question in asked.items()})
                responses = {key: answers[f"{number}:{key}"] for key in asked}
                params = {**params, "inputResponses": responses}
            if "requestState" in answer:
                params = {**params, "requestState": answer["requestState"]}
        raise UpstreamError(f"{life.server.name} asked {_ROUNDS} times in a row, and was not asked again.")

    async def _send(self, life: Life, link: Link, ctx: CallContext, params: dict[str, Any]) -> dict[str, Any]:
        running = Running(ctx)
        before = CURRENT.set(running)
        life.calls.add(running)
        try:
            ctx.sent()
            task = running.task = asyncio.ensure_future(link.call(params, partial(_progress, ctx)))
        finally:
            CURRENT.reset(before)
        self._left.add(task)
        task.add_done_callback(self._over)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if running.raised is not None and task.cancelled():
                raise running.raised from None
            task.cancel()
            raise
        finally:
            life.calls.discard(running)

    def _over(self, task: asyncio.Task[Any]) -> None:
        self._left.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.debug("a call that was given up ended: %s", error)


async def _progress(ctx: CallContext, progress: float, total: float | None, message: str | None) -> None:
    ctx.progress(progress, total, message)


def _passed_on(ctx: Any) -> dict[str, Any]:
    """What of the request's `_meta` is meant for the tool: all but what the protocol itself keeps there."""
    extra = getattr(ctx, "extra", None) or {}
    meta = extra.get("_meta")
    if not isinstance(meta, Mapping):
        return {}
    return {key: value for key, value in meta.items() if key != "progressToken" and not key.startswith(_OWN_META)}


def _questions(asked: Any, server: str) -> dict[str, tuple[str, dict[str, Any]]]:
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    for key, question in asked.items() if isinstance(asked, Mapping) else ():
        method = question.get("method") if isinstance(question, Mapping) else None
        if method not in _ASKABLE:
            raise UpstreamError(f"{server} asks for {str(method)[:60]!r}, which the hub cannot pass on.")
        params = question.get("params")
        found[str(key)[:200]] = (method, dict(params) if isinstance(params, Mapping) else {})
    return found


def _result(answer: dict[str, Any]) -> ToolResult:
    answer.pop("resultType", None)
    meta = answer.get("_meta")
    if isinstance(meta, dict):  # who answered is said anew at every step
        meta.pop(f"{_OWN_META}serverInfo", None)
        if not meta:
            del answer["_meta"]
    failed = answer.get("isError") is True
    try:
        return ToolResult(orjson.dumps(answer), failed)
    except TypeError:  # numbers of more than 64 bits, which are JSON all the same
        return ToolResult(json.dumps(answer).encode(), failed)
