"""HTTP/1.1 for asyncio, with streamed responses and connections that are kept open between requests.

Owns sockets, bounds, timeouts and the parsing of responses. Redirects are not followed: credentials go only to the
given URL. Proxies are not used.
"""

from __future__ import annotations

import asyncio
import itertools
import ssl
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from string import punctuation
from typing import cast
from urllib.parse import quote, urlsplit

import httptools

from tabhub.client_errors import HttpConnectError, HttpConnectionClosed, HttpError, HttpTimeout, InvalidHttpResponse

_MAX_HEAD = 64 * 1024
_MAX_BUFFERED = 256 * 1024
_MAX_IDLE = 60.0
"""Seconds a connection stays open without a request."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of one request: seconds without any data, and bytes of the body."""

    silence: float | None = 120.0
    max_body: int = 8 * 1024 * 1024
    connect: float = 15.0


class _Connection(asyncio.Protocol):
    """One connection, for one request at a time."""

    transport: asyncio.Transport
    response: Response | None = None
    idle_since = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop's does not inherit from it

    def data_received(self, data: bytes) -> None:
        if self.response is None:  # nothing was requested
            self.transport.abort()
        else:
            self.response.feed(data)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.response is not None:
            self.response.connection_lost(exc)


class Response:
    """The response to one request. Its body can be read once; reading slowly slows the sender down."""

    def __init__(self, transport: asyncio.Transport, bounds: Bounds) -> None:
        self.status = 0
        """0 until the head has arrived."""
        self.headers: dict[str, str] = {}
        """Names are in lower case; values of a repeated header are joined with commas."""
        self._bounds = bounds
        self._transport = transport
        self._parser = httptools.HttpResponseParser(self)
        self._head_size = 0
        self._chunks: deque[bytes] = deque()
        self._buffered = 0
        self._ended = False
        self._keep_alive = False
        self._error: HttpError | None = None
        self._changed = asyncio.Event()

    async def chunks(self, max_body: int | None = None) -> AsyncIterator[bytes]:
        """The body as it arrives, up to `max_body` bytes."""
        size = 0
        while True:
            while self._chunks:
                chunk = self._chunks.popleft()
                if self._buffered > _MAX_BUFFERED >= self._buffered - len(chunk) and not self._transport.is_closing():
                    self._transport.resume_reading()
                self._buffered -= len(chunk)
                size += len(chunk)
                if max_body is not None and size > max_body:
                    raise InvalidHttpResponse(f"the response is larger than {max_body} bytes")
                yield chunk
            if self._error is not None:
                raise self._error
            if self._ended:
                return
            await self._wait()

    async def body(self) -> bytes:
        return b"".join([chunk async for chunk in self.chunks(self._bounds.max_body)])

    async def wait_head(self) -> None:
        while not self.status:
            if self._error is not None:
                raise self._error
            await self._wait()

    async def _wait(self) -> None:
        self._changed.clear()
        try:
            async with asyncio.timeout(self._bounds.silence):  # wait_for may swallow a cancellation (Python 3.11)
                await self._changed.wait()
        except TimeoutError:
            raise HttpTimeout(f"no data arrived for {self._bounds.silence:g} s") from None

    @property
    def reusable(self) -> bool:
        """Whether the response is complete and its connection can be used for another request."""
        return self._keep_alive and self._buffered <= _MAX_BUFFERED  # above that, reading is paused

    def feed(self, data: bytes) -> None:
        if not self.status:
            self._head_size += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(f"the response is not valid HTTP: {str(error)[:100]}")
        if not self.status and self._head_size > _MAX_HEAD:
            self._fail(f"the response head is larger than {_MAX_HEAD} bytes")

    def connection_lost(self, exc: Exception | None) -> None:
        if exc is not None:
            self._fail(f"the connection broke: {exc}")
        elif not self.status:
            self._fail("the server closed the connection without a response")
        elif "content-length" in self.headers or "transfer-encoding" in self.headers:
            self._fail("the server closed the connection in the middle of the response")
        else:
            self._keep_alive = False
            self._end()

    def _fail(self, reason: str) -> None:
        self._keep_alive = False
        if not self._ended and self._error is None:
            self._error = HttpConnectionClosed(reason)
            self._changed.set()
        self._transport.abort()

    def _end(self) -> None:
        self._ended = True
        self._changed.set()

    def on_message_begin(self) -> None:
        self._keep_alive = False  # more than one response: this one is complete, and the others are ignored

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.status:
            key, text = name.decode("latin-1").lower(), value.decode("latin-1")
            self.headers[key] = f"{self.headers[key]}, {text}" if key in self.headers else text

    def on_headers_complete(self) -> None:
        if not self.status and (status := self._parser.get_status_code()) >= 200:
            self.status = status
            self._changed.set()

    def on_body(self, chunk: bytes) -> None:
        if self._ended:
            return
        self._chunks.append(chunk)
        if self._buffered <= _MAX_BUFFERED < self._buffered + len(chunk) and not self._transport.is_closing():
            self._transport.pause_reading()
        self._buffered += len(chunk)
        self._changed.set()

    def on_message_complete(self) -> None:
        if not self.status:  # an interim response
            self.headers = {}
        elif not self._ended:
            self._keep_alive = self._error is None and self._parser.should_keep_alive()
            self._end()


class Connections:
    """Sends requests over connections that are kept open and reused."""

    def __init__(
        self,
        context: ssl.SSLContext | None = None,
        resolve: Callable[[str, int], Awaitable[list[str]]] | None = None,
    ) -> None:
        """`resolve` gives the addresses to connect to; certificates are verified against the host name."""
        self._context = context
        self._resolve = resolve
        self._idle: dict[tuple[str, str, int], list[_Connection]] = {}
        self._closed = False

    @asynccontextmanager
    async def request(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None = None, bounds: Bounds | None = None
    ) -> AsyncIterator[Response]:
        """Send a request; it ends with the block, also by cancellation. Raises HttpError."""
        bounds = bounds or Bounds()
        parts = urlsplit(url)
        place = (parts.scheme, parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80))
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        if not target.isascii():
            target = quote(target, safe=punctuation)
        message = _encode(method, target, _host(parts.netloc), headers, body)
        connection = self._reuse(place) or await self._connect(*place, bounds)
        response = connection.response = Response(connection.transport, bounds)
        try:
            connection.transport.write(message)
            await response.wait_head()
            yield response
        finally:
            connection.response = None
            if response.reusable and not self._closed:
                connection.idle_since = asyncio.get_running_loop().time()
                self._idle.setdefault(place, []).append(connection)
            else:
                connection.transport.abort()

    def close(self) -> None:
        """Close idle connections, and every other one when its request has ended."""
        self._closed = True
        for connection in itertools.chain.from_iterable(self._idle.values()):
            connection.transport.abort()
        self._idle.clear()

    def _reuse(self, place: tuple[str, str, int]) -> _Connection | None:
        now = asyncio.get_running_loop().time()
        idle = self._idle.get(place, [])
        while idle:
            connection = idle.pop()
            if now - connection.idle_since < _MAX_IDLE and not connection.transport.is_closing():
                return connection
            connection.transport.abort()
        return None

    async def _connect(self, scheme: str, host: str, port: int, bounds: Bounds) -> _Connection:
        context = (self._context or ssl.create_default_context()) if scheme == "https" else None
        reason: object = "it has no address"
        try:
            async with asyncio.timeout(bounds.connect):
                for address in await self._resolve(host, port) if self._resolve else [host]:
                    try:
                        _, connection = await asyncio.get_running_loop().create_connection(
                            _Connection, address, port, ssl=context, server_hostname=host if context else None
                        )
                    except (OSError, UnicodeError) as error:
                        reason = getattr(error, "strerror", None) or error
                    else:
                        return connection
        except TimeoutError:
            reason = f"no connection within {bounds.connect:g} s"
        raise HttpConnectError(f"{host}:{port} cannot be reached: {reason}")


@asynccontextmanager
async def request(
    method: str, url: str, headers: Mapping[str, str], body: bytes | None = None, bounds: Bounds | None = None
) -> AsyncIterator[Response]:
    """Send one request on a new connection, which is closed afterwards."""
    connections = Connections()
    try:
        async with connections.request(method, url, headers, body, bounds) as response:
            yield response
    finally:
        connections.close()


def _host(netloc: str) -> str:
    host = netloc.rpartition("@")[2]
    return host if host.isascii() else host.encode("idna").decode()


def _encode(method: str, target: str, host: str, headers: Mapping[str, str], body: bytes | None) -> bytes:
    lines = [f"{method} {target} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in {"host": host, **headers}.items()]
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    for line in lines:
        if "\r" in line or "\n" in line:
            raise HttpError(f"the header {line.partition(':')[0]!r} contains a line break")
    return "\r\n".join(lines).encode("latin-1", "replace") + b"\r\n\r\n" + (body or b"")
