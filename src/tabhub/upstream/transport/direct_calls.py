"""Tool calls of one connection, matched to their answers here instead of in the SDK's session.

Owns the ids of these calls, their progress and cancellation. Everything else belongs to the session, including what a
request looks like: version, `_meta` and headers are copied from the session's own last request.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Self

import anyio
import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_METHOD_HEADER, MCP_NAME_HEADER, MCP_PROTOCOL_VERSION_HEADER, encode_header_value
from mcp.shared.message import ClientMessageMetadata, SessionMessage
from mcp_types import methods
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

log = logging.getLogger("tabhub.upstream")

CALL = "tools/call"
_FIRST = 1_000_000_000
"""Far above the ids of the session, which counts from one."""
_CANCEL = 5.0
_MODERN_ONLY = ("resultType", "inputRequests", "requestState")

Progress = Callable[[float, float | None, str | None], Awaitable[None]]


class DirectCalls:
    """The direct calls of one connection, and the stream the session writes to (its WriteStream)."""

    def __init__(self, inner: Any, queue: Any) -> None:
        self._inner = inner
        self._calls: dict[int, tuple[asyncio.Future[Any], Progress]] = {}
        self._next = _FIRST
        self._meta: dict[str, Any] = {}
        self._version = ""
        self._tasks: set[asyncio.Future[None]] = set()
        queue.interceptor = self._intercept
        queue.on_end(self._ended)

    @property
    def ready(self) -> bool:
        """Whether the session has sent a request to copy version, `_meta` and headers from."""
        return bool(self._version)

    async def call(self, params: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
        """Call a tool; raises MCPError and pydantic's ValidationError like the session."""
        ident, self._next = self._next, self._next + 1
        meta = {**params.get("_meta", {}), **self._meta, "progressToken": ident}
        message = types.JSONRPCRequest(jsonrpc="2.0", id=ident, method=CALL, params={**params, "_meta": meta})
        modern = self._version in MODERN_PROTOCOL_VERSIONS
        headers = {MCP_PROTOCOL_VERSION_HEADER: self._version}
        if modern:
            headers[MCP_METHOD_HEADER] = CALL
            headers[MCP_NAME_HEADER] = encode_header_value(params["name"])
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._calls[ident] = (future, progress)
        try:
            await self._inner.send(SessionMessage(message, ClientMessageMetadata(headers=headers)))
            outcome = await future
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            raise MCPError(code=types.CONNECTION_CLOSED, message="Connection closed") from None
        except asyncio.CancelledError:
            self._spawn(self._cancel(ident))
            raise
        finally:
            del self._calls[ident]
        if isinstance(outcome, types.ErrorData):
            raise MCPError(code=outcome.code, message=outcome.message, data=outcome.data)
        result: dict[str, Any] = outcome
        methods.validate_server_result(CALL, self._version, result)
        if not modern:
            for key in _MODERN_ONLY:
                result.pop(key, None)
        return result

    async def _cancel(self, ident: int) -> None:
        params = {"requestId": ident, "reason": "the call was taken back"}
        message = types.JSONRPCNotification(jsonrpc="2.0", method="notifications/cancelled", params=params)
        headers = {MCP_PROTOCOL_VERSION_HEADER: self._version}
        try:
            async with asyncio.timeout(_CANCEL):
                await self._inner.send(SessionMessage(message, ClientMessageMetadata(headers=headers)))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, TimeoutError) as error:
            log.debug("a cancelling could not be sent: %r", error)

    def _spawn(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # what comes

    def _intercept(self, given: Any) -> bool:
        """Whether a message belongs to a direct call; it is then consumed."""
        message = given.message if isinstance(given, SessionMessage) else None
        if isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
            found = self._calls.get(message.id) if isinstance(message.id, int) else None
            if found is None:
                return False
            if not found[0].done():
                found[0].set_result(message.result if isinstance(message, types.JSONRPCResponse) else message.error)
            return True
        if isinstance(message, types.JSONRPCNotification) and message.method == "notifications/progress":
            return self._progressed(message.params or {})
        return False

    def _progressed(self, params: Mapping[str, Any]) -> bool:
        token, progress, total, message_text = (
            params.get(key) for key in ("progressToken", "progress", "total", "message")
        )
        found = self._calls.get(token) if isinstance(token, int) else None
        if found is None:
            return False
        if isinstance(progress, int | float):
            whole = float(total) if isinstance(total, int | float) else None
            self._spawn(found[1](float(progress), whole, message_text if isinstance(message_text, str) else None))
        return True

    def _ended(self) -> None:
        closed = types.ErrorData(code=types.CONNECTION_CLOSED, message="Connection closed")
        for future, _ in self._calls.values():
            if not future.done():
                future.set_result(closed)

    # the session's own messages

    async def send(self, given: SessionMessage) -> None:
        """Send a message of the session, and note the version and `_meta` of its requests."""
        message, metadata = given.message, given.metadata
        if isinstance(message, types.JSONRPCRequest) and isinstance(metadata, ClientMessageMetadata):
            version = (metadata.headers or {}).get(MCP_PROTOCOL_VERSION_HEADER)
            if version is not None:
                meta = (message.params or {}).get("_meta", {})
                self._meta = {key: value for key, value in meta.items() if key != "progressToken"}
                self._version = version
        await self._inner.send(given)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@asynccontextmanager
async def with_direct_calls(
    streams: AbstractAsyncContextManager[Any], register: Callable[[DirectCalls], None]
) -> AsyncIterator[tuple[Any, DirectCalls]]:
    """The two streams of a session with direct calls beside it; `register` receives the DirectCalls."""
    async with streams as (queue, write):
        made = DirectCalls(write, queue)
        register(made)
        try:
            yield queue, made
        finally:
            await made.close()
