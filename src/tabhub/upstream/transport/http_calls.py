"""The SDK's session over Streamable HTTP, with tool calls on connections of the hub's own.

Owns which message takes which path. The SDK's transport keeps everything that is rare and delicate: the handshake,
sessions, logins, lists, the stream of server notifications. A tool call is the one request that has to be fast, and a
general HTTP client costs more than everything else in its path; so it is sent here, with the request head of the SDK's
own last request, and is handed to the SDK after all when the server says that it did not accept it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import copy_context
from typing import Any, Self

import anyio
import mcp_types as types
from mcp.shared.message import SessionMessage

from tabhub.errors import TabhubError
from tabhub.net.async_http import ConnectionPool
from tabhub.upstream.transport.guarded_http import NOT_SENT, GuardedTransport, RequestTemplate
from tabhub.upstream.transport.http_call import HttpCall
from tabhub.upstream.transport.message_queue import MessageQueue

log = logging.getLogger("tabhub.upstream")

CALL = "tools/call"
_LINGER = 5.0
"""Seconds a stream may stay open after its answer; most end with it."""


class HttpCalls:
    """The stream the SDK's session writes to (its WriteStream), with the calls that bypass the SDK."""

    def __init__(self, transport: GuardedTransport, inner: Any, queue: MessageQueue, largest: int) -> None:
        self._transport = transport
        self._inner = inner
        self.queue = queue
        self.largest = largest
        self._connections = ConnectionPool(transport.addresses, transport.context)
        self._calls: dict[types.RequestId, HttpCall] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._template: RequestTemplate | None = None
        self._head = b""

    async def send(self, given: SessionMessage) -> None:
        message = given.message
        if isinstance(message, types.JSONRPCRequest):
            if message.method == CALL and await self._send_directly(given):
                return
        elif isinstance(message, types.JSONRPCNotification) and message.method == "notifications/cancelled":
            call = self._calls.pop((message.params or {}).get("requestId", ""), None)
            if call is not None:
                call.abort()
                if call.modern:
                    return  # closing the request has cancelled it
        await self._inner.send(given)

    async def _send_directly(self, given: SessionMessage) -> bool:
        """Send a call on a connection of the hub's own; False if the SDK has to send it."""
        template = self._transport.template
        call = HttpCall(self, given, copy_context())
        if template is None or not _plain(call.headers):
            return False
        body = given.message.model_dump_json(by_alias=True, exclude_unset=True).encode()
        more = "".join(f"{name}: {value}\r\n" for name, value in call.headers.items())
        tail = f"{more}content-length: {len(body)}\r\n\r\n".encode("latin-1")
        self._calls[call.id] = call
        try:
            return await self._send(call, template, b"POST", tail + body)
        except BaseException:
            self._calls.pop(call.id, None)
            raise

    async def _send(self, call: HttpCall, template: RequestTemplate, method: bytes, rest: bytes) -> bool:
        try:
            connection = await self._connections.acquire(template.host, template.port, secure=template.secure)
        except (TabhubError, OSError) as error:
            why = error.text() if isinstance(error, TabhubError) else f"no connection to {template.host}: {error}"
            if call.last_id is None:
                call.fail(NOT_SENT, why)
            else:
                call.resume_failed(why)
            return True
        if connection is None:
            self._calls.pop(call.id, None)
            return False
        if template is not self._template:
            self._template, self._head = template, template.head()
        call.connection = connection
        connection.send(method + self._head + rest, call)
        return True

    # what a request needs (post.Road)

    def finished(self, call: HttpCall) -> None:
        self._calls.pop(call.id, None)
        if call.connection is not None:
            asyncio.get_running_loop().call_later(_LINGER, call.abort)

    def send_by_sdk(self, call: HttpCall) -> None:
        """Let the SDK send it: it can log in, follow redirects, and open a new session."""
        self._calls.pop(call.id, None)
        self._spawn(self._send_inside(call.given), call)

    async def _send_inside(self, given: SessionMessage) -> None:
        try:
            await self._inner.send(given)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
            log.debug("the connection ended before a call could be sent again: %r", error)

    def resume_later(self, call: HttpCall, after: float) -> None:
        self._spawn(self._resume(call, after), call)

    async def _resume(self, call: HttpCall, after: float) -> None:
        await asyncio.sleep(after)
        template = self._transport.template
        if call.id not in self._calls or template is None or call.last_id is None:
            return
        kept = {name: value for name, value in call.headers.items() if name.lower() == "mcp-protocol-version"}
        kept["last-event-id"] = call.last_id
        if not _plain(kept):
            call.resume_failed("the last event id cannot be sent in a header")
            return
        rest = "".join(f"{name}: {value}\r\n" for name, value in kept.items()).encode("latin-1")
        if not await self._send(call, template, b"GET", rest + b"\r\n"):
            call.resume_failed("there are too many connections to the server")

    def _spawn(self, work: Coroutine[Any, Any, None], call: HttpCall) -> None:
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work, context=call.context)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # its end

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for call in list(self._calls.values()):
            call.abort()
        self._connections.close()

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


@asynccontextmanager
async def with_http_calls(
    streams: AbstractAsyncContextManager[Any], transport: GuardedTransport, largest: int
) -> AsyncIterator[tuple[MessageQueue, HttpCalls]]:
    """The two streams of a session, wrapped around those of the SDK's transport."""
    async with streams as (read, write):
        queue = MessageQueue()
        carrier = HttpCalls(transport, write, queue, largest)
        pump = asyncio.ensure_future(_pump(read, queue))
        try:
            yield queue, carrier
        finally:
            pump.cancel()
            await asyncio.gather(pump, return_exceptions=True)
            await carrier.close()


async def _pump(read: Any, queue: MessageQueue) -> None:
    try:
        async for item in read:
            await queue.put_wait(item, getattr(read, "last_context", None))
    finally:
        queue.end()


def _plain(headers: dict[str, str]) -> bool:
    """Whether headers can be written without encoding."""
    return all(
        name.isascii() and value.isascii() and name.isprintable() and value.isprintable()
        for name, value in headers.items()
    )
