"""HTTP/1.1 for asyncio: kept-alive connections with callbacks, and single requests with streamed responses.

Owns sockets, bounds, timeouts and the parsing of responses. `ConnectionPool` connects only to the addresses that its
resolver returns, so that the caller can check them. Redirects are not followed: credentials go only to the given URL.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, cast
from urllib.parse import urlsplit

import httptools

from tabhub.client_errors import HttpError

_MAX_HEAD = 64 * 1024
_MAX_CONNECTIONS = 100
_MAX_IDLE = 20
_IDLE_SECONDS = 30.0
_CONNECT_SECONDS = 30.0
_MAX_BUFFERED = 256 * 1024

Resolver = Callable[[str, int], Awaitable[list[str]]]


class ResponseHandler(Protocol):
    """Receives a response piece by piece; `on_end` or `on_error` is the last call."""

    def on_head(self, status: int, headers: dict[str, str]) -> None:
        """Header names are in lower case."""
        ...

    def on_body(self, chunk: bytes) -> None: ...

    def on_end(self) -> None: ...

    def on_error(self, reason: str) -> None: ...


class Connection(asyncio.Protocol):
    """One connection; it carries one request at a time."""

    def __init__(self, pool: ConnectionPool) -> None:
        self._pool = pool
        self._transport: asyncio.Transport | None = None
        self._handler: ResponseHandler | None = None
        self._parser: Any = None
        self._headers: dict[str, str] = {}
        self._head_size = 0
        self._head_complete = False
        self._ends_with_connection = False
        self.idle_until = 0.0

    def send(self, request: bytes, handler: ResponseHandler) -> None:
        self._handler = handler
        self._parser = httptools.HttpResponseParser(self)
        self._reset()
        assert self._transport is not None  # noqa: S101 - the pool hands out connected ones only
        self._transport.write(request)

    def _reset(self) -> None:
        self._headers = {}
        self._head_size = 0
        self._head_complete = False
        self._ends_with_connection = False

    @property
    def open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def close(self) -> None:
        """Close at once; the handler is not called again."""
        self._handler = None
        if self._transport is not None:
            self._transport.abort()

    def pause(self) -> None:
        if self.open:
            self._transport.pause_reading()  # type: ignore[union-attr]

    def resume(self) -> None:
        if self.open:
            self._transport.resume_reading()  # type: ignore[union-attr]

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's does not inherit from it

    def data_received(self, data: bytes) -> None:
        if self._handler is None:
            self.close()  # no request is pending
            return
        if not self._head_complete:
            self._head_size += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(f"the response is not valid HTTP: {str(error)[:100]}")
        if not self._head_complete and self._head_size > _MAX_HEAD:
            self._fail(f"the response head is larger than {_MAX_HEAD} bytes")

    def connection_lost(self, exc: Exception | None) -> None:
        self._pool.forget(self)
        handler, self._handler = self._handler, None
        if handler is None:
            return
        if exc is not None:
            handler.on_error(f"the connection broke: {exc}")
        elif self._ends_with_connection:
            handler.on_end()
        elif self._head_complete:
            handler.on_error("the server closed the connection in the middle of the response")
        else:
            handler.on_error("the server closed the connection without a response")

    def _fail(self, reason: str) -> None:
        handler = self._handler
        self.close()
        if handler is not None:
            handler.on_error(reason)

    # httptools

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        status: int = self._parser.get_status_code()
        if status < 200:
            return  # an interim response
        self._head_complete = True
        headers = self._headers
        self._ends_with_connection = "content-length" not in headers and "transfer-encoding" not in headers
        if self._handler is not None:
            self._handler.on_head(status, headers)

    def on_body(self, chunk: bytes) -> None:
        if self._handler is not None:
            self._handler.on_body(chunk)

    def on_message_complete(self) -> None:
        if not self._head_complete:
            self._reset()
            return
        handler, self._handler = self._handler, None
        if self._parser.should_keep_alive() and handler is not None:
            self._pool.keep(self, self._headers.get("keep-alive", ""))
        elif self._transport is not None:
            self._transport.close()
        if handler is not None:
            handler.on_end()


class ConnectionPool:
    """The connections of one client."""

    def __init__(
        self, resolve: Resolver, context: ssl.SSLContext | None, connect_seconds: float = _CONNECT_SECONDS
    ) -> None:
        self._resolve = resolve
        self._context = context
        self._connect_seconds = connect_seconds
        self._idle: list[tuple[tuple[bool, str, int], Connection]] = []
        self._all: dict[Connection, tuple[bool, str, int]] = {}

    async def acquire(self, host: str, port: int, *, secure: bool) -> Connection | None:
        """An idle or new connection; None if the pool is full. Raises OSError, or what the resolver raises."""
        origin = (secure, host, port)
        now = asyncio.get_running_loop().time()
        while self._idle:
            where, idle = self._idle.pop()
            if where == origin and idle.open and now < idle.idle_until:
                return idle
            idle.close()
        if len(self._all) >= _MAX_CONNECTIONS:
            return None
        return await self._connect(origin)

    async def _connect(self, origin: tuple[bool, str, int]) -> Connection:
        secure, host, port = origin
        loop = asyncio.get_running_loop()
        failure = OSError("the host has no address")
        tls: dict[str, Any] = {"ssl": self._context, "server_hostname": host} if secure else {}
        for address in await self._resolve(host, port):
            connection = Connection(self)
            try:
                async with asyncio.timeout(self._connect_seconds):
                    await loop.create_connection(lambda made=connection: made, address, port, **tls)  # type: ignore[misc]
            except TimeoutError:
                failure = TimeoutError(f"no connection within {self._connect_seconds:g} s")
            except OSError as error:
                failure = error
            else:
                self._all[connection] = origin
                return connection
        raise failure

    def keep(self, connection: Connection, keep_alive: str) -> None:
        """Keep a connection for the next request; `keep_alive` is the header of the last response."""
        if len(self._idle) >= _MAX_IDLE:
            connection.close()
            return
        connection.idle_until = asyncio.get_running_loop().time() + _idle_seconds(keep_alive)
        self._idle.append((self._all[connection], connection))

    def forget(self, connection: Connection) -> None:
        self._all.pop(connection, None)
        self._idle = [each for each in self._idle if each[1] is not connection]

    def close(self) -> None:
        for connection in list(self._all):
            connection.close()


def _idle_seconds(keep_alive: str) -> float:
    """How long to reuse a connection: a second less than the timeout the server announced, if it did."""
    for part in keep_alive.split(","):
        name, _, value = part.strip().partition("=")
        if name.lower() == "timeout" and value.isdigit() and len(value) < 10:
            return min(max(float(value) - 1.0, 0.0), _IDLE_SECONDS)
    return _IDLE_SECONDS


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of one request: seconds without any data, and bytes of the body."""

    silence: float = 120.0
    max_body: int = 8 * 1024 * 1024
    connect: float = 15.0


class Response:
    """A response whose head has arrived. Its body can be read once; reading slowly slows the sender down."""

    def __init__(self, bounds: Bounds, connection: Connection) -> None:
        self.status = 0
        self.headers: Mapping[str, str] = {}
        self._bounds = bounds
        self._connection = connection
        self._chunks: deque[bytes] = deque()
        self._buffered = 0
        self._ended = False
        self._error: str | None = None
        self._changed = asyncio.Event()

    async def chunks(self) -> AsyncIterator[bytes]:
        size = 0
        while True:
            while self._chunks:
                chunk = self._chunks.popleft()
                if self._buffered > _MAX_BUFFERED >= self._buffered - len(chunk):
                    self._connection.resume()
                self._buffered -= len(chunk)
                size += len(chunk)
                if size > self._bounds.max_body:
                    raise HttpError(f"the response is larger than {self._bounds.max_body} bytes")
                yield chunk
            if self._error is not None:
                raise HttpError(self._error)
            if self._ended:
                return
            await self._wait()

    async def body(self) -> bytes:
        return b"".join([chunk async for chunk in self.chunks()])

    async def wait_head(self) -> None:
        while not self.status:
            if self._error is not None:
                raise HttpError(self._error)
            await self._wait()

    async def _wait(self) -> None:
        self._changed.clear()
        try:
            async with asyncio.timeout(self._bounds.silence):  # wait_for may swallow a cancellation (Python 3.11)
                await self._changed.wait()
        except TimeoutError:
            raise HttpError(f"no data arrived for {self._bounds.silence:g} s") from None

    # ResponseHandler

    def on_head(self, status: int, headers: dict[str, str]) -> None:
        self.status, self.headers = status, headers
        self._changed.set()

    def on_body(self, chunk: bytes) -> None:
        self._chunks.append(chunk)
        if self._buffered <= _MAX_BUFFERED < self._buffered + len(chunk):
            self._connection.pause()
        self._buffered += len(chunk)
        self._changed.set()

    def on_end(self) -> None:
        self._ended = True
        self._changed.set()

    def on_error(self, reason: str) -> None:
        self._error = reason
        self._changed.set()


@contextlib.asynccontextmanager
async def request(
    method: str, url: str, headers: Mapping[str, str], body: bytes | None = None, bounds: Bounds | None = None
) -> AsyncIterator[Response]:
    """Send a request on a connection of its own, which is closed when the block ends, also by cancellation.

    Raises HttpError; proxies are not used.
    """
    bounds = bounds or Bounds()
    parts = urlsplit(url)
    secure = parts.scheme == "https"
    host, port = parts.hostname or "", parts.port or (443 if secure else 80)
    pool = ConnectionPool(_system_resolver, ssl.create_default_context() if secure else None, bounds.connect)
    try:
        try:
            connection = await pool.acquire(host, port, secure=secure)
        except (OSError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise HttpError(f"{host}:{port} cannot be reached: {reason}") from None
        assert connection is not None  # noqa: S101 - the pool is empty
        response = Response(bounds, connection)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.send(_encode(method, target, parts.netloc.rpartition("@")[2], headers, body), response)
        await response.wait_head()
        yield response
    finally:
        pool.close()


async def _system_resolver(host: str, _port: int) -> list[str]:
    return [host]


def _encode(method: str, target: str, host: str, headers: Mapping[str, str], body: bytes | None) -> bytes:
    lines = [f"{method} {target} HTTP/1.1", f"Host: {host}", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    for line in lines:
        if "\r" in line or "\n" in line:
            raise HttpError(f"the header {line.partition(':')[0]!r} contains a line break")
    return "\r\n".join(lines).encode("latin-1", "replace") + b"\r\n\r\n" + (body or b"")
