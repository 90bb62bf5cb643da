"""Calls of external servers' tools, and requests for their resources and prompts: sent once.

Owns the path of one call: progress and logs go to the agent, questions of the server to the agent's client,
cancellation to the server. Deadlines are the engine's. A request runs in its own task, so that a server that ignores
cancellation cannot keep the agent waiting.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterable, Mapping
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any

import orjson

from tabhub.core.forwarded_meta import forwarded_meta
from tabhub.core.registry import Entry
from tabhub.core.results.repeats import without_repeats
from tabhub.core.results.valid_results import check_promise, valid_result
from tabhub.core.schemas.validators import Schema
from tabhub.core.tools import CallContext, ToolResult
from tabhub.errors import BadInput, UpstreamError, UpstreamOffline
from tabhub.limits import Limits
from tabhub.upstream.active_calls import CURRENT, ActiveCall, SuspendedCalls, with_server_name
from tabhub.upstream.server_connection import ServerConnection
from tabhub.upstream.tools import make_tool

if TYPE_CHECKING:
    from tabhub.upstream.sdk_session import SdkSession

log = logging.getLogger("tabhub.upstream")

_CALL = "tools/call"
_ROUNDS = 10
_ASKABLE = ("elicitation/create", "sampling/createMessage", "roots/list")


class UpstreamCalls:
    """Runs calls of external tools."""

    def __init__(self, limits: Limits) -> None:
        self._suspended = SuspendedCalls(limits.upstream_question)
        self._tasks: set[asyncio.Task[Any]] = set()
        """Requests in progress, including those whose agents no longer wait."""

    def entries(self, connection: ServerConnection, tools: Iterable[Mapping[str, Any]]) -> list[Entry]:
        made = []
        for raw in tools:
            try:
                tool = make_tool(connection.server.name, raw)
                output = tool.output
                made.append(Entry(tool, partial(self._run, connection, raw["name"], output)))
            except BadInput as error:  # cached by another version
                log.warning("%s: %r is skipped: %s", connection.server.name, str(raw.get("name"))[:100], error.message)
        return made

    async def _run(
        self,
        connection: ServerConnection,
        tool: str,
        output: Schema | None,
        ctx: CallContext,
        arguments: dict[str, Any],
    ) -> ToolResult:
        answer = await self.request(connection, _CALL, ctx, {"name": tool, "arguments": arguments})
        result = check_promise(valid_result(answer), connection.server.name, output)
        if not ctx.structured:
            result = without_repeats(result)
        return ToolResult(encode_result(result), "isError" in result)

    async def request(
        self, connection: ServerConnection, method: str, ctx: CallContext, params: dict[str, Any]
    ) -> dict[str, Any]:
        """The server's answer to an agent's request, without the fields of the protocol itself."""
        identity = (connection.server.id, ctx.session.token, method, dict(params))
        if "inputResponses" in ctx.extra and (call := self._suspended.pop(ctx.extra, identity)) is not None:
            call.resume(ctx)
            return _strip_protocol_fields(await self._outcome(connection, call, ctx))
        session = await connection.ready()
        if meta := forwarded_meta(ctx.extra.get("_meta")):
            params["_meta"] = meta
        try:
            answer = await self._request_rounds(session, ctx, method, params, identity)
        except UpstreamOffline:
            if not session.session_expired:
                raise
            # The server no longer knows the session, so nothing was done: retry once in a new one.
            answer = await self._request_rounds(await connection.ready(), ctx, method, params, identity)
        return _strip_protocol_fields(answer)

    async def _request_rounds(
        self, session: SdkSession, ctx: CallContext, method: str, params: dict[str, Any], identity: tuple[Any, ...]
    ) -> dict[str, Any]:
        """One request; a stateless server may ask questions first, and is then sent the request again with the
        answers."""
        server = session.connection.server.name
        for number in range(_ROUNDS):
            answer = await self._send(session, ctx, method, params, identity)
            if answer.get("resultType") != "input_required":
                return answer
            asked = _questions(answer.get("inputRequests"), server)
            if asked:
                answers = await ctx.ask({f"{number}:{key}": question for key, question in asked.items()})
                responses = {key: answers[f"{number}:{key}"] for key in asked}
                params = {**params, "inputResponses": responses}
            if "requestState" in answer:
                params = {**params, "requestState": answer["requestState"]}
        raise UpstreamError(f"{server} requested input {_ROUNDS} times in a row.")

    async def _send(
        self, session: SdkSession, ctx: CallContext, method: str, params: dict[str, Any], identity: tuple[Any, ...]
    ) -> dict[str, Any]:
        connection = session.connection
        call = ActiveCall(ctx, identity, self._suspended)
        connection.calls.add(call)
        context = copy_context()
        context.run(CURRENT.set, call)
        progress = call.progress
        sent = session.call(params, progress) if method == _CALL else session.request(method, params, progress)
        task = asyncio.create_task(sent, context=context)
        self._tasks.add(task)
        task.add_done_callback(self._finished)
        task.add_done_callback(lambda _: connection.calls.discard(call))
        call.start(task)
        return await self._outcome(connection, call, ctx)

    async def _outcome(self, connection: ServerConnection, call: ActiveCall, ctx: CallContext) -> dict[str, Any]:
        """The answer, or a question to the agent while the call stays suspended at the server."""
        ctx.sent = True
        try:
            answer: dict[str, Any] = await call.outcome
        except asyncio.CancelledError:
            connection.calls.discard(call)
            call.abandon()
            raise
        return answer

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.debug("an abandoned call ended: %s", error)


def _questions(asked: Any, server: str) -> dict[str, tuple[str, dict[str, Any]]]:
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    for key, question in asked.items() if isinstance(asked, Mapping) else ():
        method = question.get("method") if isinstance(question, Mapping) else None
        if method not in _ASKABLE:
            raise UpstreamError(f"{server} requests {str(method)[:60]!r}, which the hub cannot pass on.")
        params = question.get("params")
        named = with_server_name(server, method, dict(params) if isinstance(params, Mapping) else {})
        found[str(key)[:200]] = (method, named)
    return found


def _strip_protocol_fields(answer: dict[str, Any]) -> dict[str, Any]:
    answer.pop("resultType", None)
    if meta := forwarded_meta(answer.pop("_meta", None)):
        answer["_meta"] = meta
    return answer


def encode_result(answer: Mapping[str, Any]) -> bytes:
    try:
        return orjson.dumps(answer)
    except TypeError:  # numbers of more than 64 bits, which are JSON all the same
        return json.dumps(answer).encode()
