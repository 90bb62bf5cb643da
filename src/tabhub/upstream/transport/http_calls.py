"""The SDK's session over Streamable HTTP, with tool calls on connections of the hub's own.

Owns which message goes which way. The SDK's transport keeps everything that is rare and delicate: the handshake,
sessions, logins, lists, the stream of what a server says by itself. A tool call is the one request that has to be
quick, and a general HTTP client costs more than all the rest of its way; so it is sent here, with the head that the
SDK's own last request had, and goes the SDK's way after all when the server says that it did not take it.
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
from tabhub.upstream.transport.guarded_http import NOT_SENT, GuardedTransport, Pattern
from tabhub.upstream.transport.http_call import HttpCall
from tabhub.upstream.transport.message_queue import MessageQueue

log = logging.getLogger("tabhub.upstream")

QUICK = "tools/call"
_LINGER = 5.0
"""Seconds a stream may stay open after its answer; most end with it."""


class HttpCalls:
    """A stream the SDK's session writes (its WriteStream), and the road of each request."""

    def __init__(self, transport: GuardedTransport, inner: Any, inbox: MessageQueue, largest: int) -> None:
        self._transport = transport
        self._inner = inner
        self.inbox = inbox
        self.largest = largest
        self._connections = ConnectionPool(transport.addresses, transport.context)
        self._posts: dict[types.RequestId, HttpCall] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._pattern: Pattern | None = None
        self._top = b""

    async def send(self, given: SessionMessage) -> None:
        """Send a message the way that is its."""
        message = given.message
        if isinstance(message, types.JSONRPCRequest):
            if message.method == QUICK and await self._quick(given):
                return
        elif isinstance(message, types.JSONRPCNotification) and message.method == "notifications/cancelled":
            post = self._posts.pop((message.params or {}).get("requestId", ""), None)
            if post is not None:
                post.abort()
                if post.modern:
                    return  # closing the request has told it
        await self._inner.send(given)

    async def _quick(self, given: SessionMessage) -> bool:
        """Send a call on a connection of its own; False if it has to go the SDK's way."""
        pattern = self._transport.pattern
        post = HttpCall(self, given, copy_context())
        if pattern is None or not _plain(post.headers):
            return False
        body = given.message.model_dump_json(by_alias=True, exclude_unset=True).encode()
        more = "".join(f"{name}: {value}\r\n" for name, value in post.headers.items())
        tail = f"{more}content-length: {len(body)}\r\n\r\n".encode("latin-1")
        self._posts[post.id] = post
        try:
            return await self._send(post, pattern, b"POST", tail + body)
        except BaseException:
            self._posts.pop(post.id, None)
            raise

    async def _send(self, post: HttpCall, pattern: Pattern, method: bytes, rest: bytes) -> bool:
        try:
            connection = await self._connections.acquire(pattern.host, pattern.port, secure=pattern.secure)
        except (TabhubError, OSError) as error:
            why = error.text() if isinstance(error, TabhubError) else f"no connection to {pattern.host}: {error}"
            if post.last_id is None:
                post.fail(NOT_SENT, why)
            else:
                post.no_way_back(why)
            return True
        if connection is None:
            self._posts.pop(post.id, None)
            return False
        if pattern is not self._pattern:
            self._pattern, self._top = pattern, pattern.top()
        post.connection = connection
        connection.send(method + self._top + rest, post)
        return True

    # what a request needs (post.Road)

    def over(self, post: HttpCall) -> None:
        """A request has its answer."""
        self._posts.pop(post.id, None)
        if post.connection is not None:
            asyncio.get_running_loop().call_later(_LINGER, post.abort)

    def the_other_way(self, post: HttpCall) -> None:
        """Let the SDK send it: it can log in, follow, and open a session anew."""
        self._posts.pop(post.id, None)
        self._begin(self._send_inside(post.given), post)

    async def _send_inside(self, given: SessionMessage) -> None:
        try:
            await self._inner.send(given)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
            log.debug("the connection ended before a call could be sent again: %r", error)

    def come_back(self, post: HttpCall, after: float) -> None:
        """Ask for the rest of a stream after a while."""
        self._begin(self._resume(post, after), post)

    async def _resume(self, post: HttpCall, after: float) -> None:
        await asyncio.sleep(after)
        pattern = self._transport.pattern
        if post.id not in self._posts or pattern is None or post.last_id is None:
            return
        kept = {name: value for name, value in post.headers.items() if name.lower() == "mcp-protocol-version"}
        kept["last-event-id"] = post.last_id
        if not _plain(kept):
            post.no_way_back("the place to come back to cannot be told")
            return
        rest = "".join(f"{name}: {value}\r\n" for name, value in kept.items()).encode("latin-1")
        if not await self._send(post, pattern, b"GET", rest + b"\r\n"):
            post.no_way_back("there are too many connections to the server")

    def _begin(self, work: Coroutine[Any, Any, None], post: HttpCall) -> None:
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work, context=post.context)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # its end

    async def close(self) -> None:
        """End every connection."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for post in list(self._posts.values()):
            post.abort()
        self._connections.close()

    async def aclose(self) -> None:
        """The session writes no more."""
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


@asynccontextmanager
async def with_http_calls(
    streams: AbstractAsyncContextManager[Any], transport: GuardedTransport, largest: int
) -> AsyncIterator[tuple[MessageQueue, HttpCalls]]:
    """The two streams of a session, over those of the SDK's transport."""
    async with streams as (read, write):
        inbox = MessageQueue()
        carrier = HttpCalls(transport, write, inbox, largest)
        pump = asyncio.ensure_future(_pump(read, inbox))
        try:
            yield inbox, carrier
        finally:
            pump.cancel()
            await asyncio.gather(pump, return_exceptions=True)
            await carrier.close()


async def _pump(read: Any, inbox: MessageQueue) -> None:
    try:
        async for item in read:
            await inbox.put_in_turn(item, getattr(read, "last_context", None))
    finally:
        inbox.end()


def _plain(headers: dict[str, str]) -> bool:
    """Whether headers can be written as they are."""
    return all(
        name.isascii() and value.isascii() and name.isprintable() and value.isprintable()
        for name, value in headers.items()
    )
