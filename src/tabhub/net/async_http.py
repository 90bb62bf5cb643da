"""HTTP/1.1 for asyncio: one request per connection, with a streamed response.

Owns sockets, bounds, timeouts and the parsing of responses. Redirects are not followed: credentials go only to the
given URL.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections import deque
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import cast
from urllib.parse import urlsplit

import httptools

from tabhub.client_errors import HttpError

_MAX_HEAD = 64 * 1024
_MAX_BUFFERED = 256 * 1024


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of one request: seconds without any data, and bytes of the body."""

    silence: float = 120.0
    max_body: int = 8 * 1024 * 1024
    connect: float = 15.0


class Response(asyncio.Protocol):
    """The response to one request. Its body can be read once; reading slowly slows the sender down."""

    def __init__(self, bounds: Bounds) -> None:
        self.status = 0
        """0 until the head has arrived."""
        self.headers: dict[str, str] = {}
        """Names are in lower case."""
        self._bounds = bounds
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._head_size = 0
        self._chunks: deque[bytes] = deque()
        self._buffered = 0
        self._ended = False
        self._error: str | None = None
        self._changed = asyncio.Event()

    def send(self, request: bytes) -> None:
        assert self._transport is not None  # noqa: S101 - the caller has connected it
        self._transport.write(request)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    async def chunks(self) -> AsyncIterator[bytes]:
        size = 0
        while True:
            while self._chunks:
                chunk = self._chunks.popleft()
                if self._buffered > _MAX_BUFFERED >= self._buffered - len(chunk) and self._open:
                    self._transport.resume_reading()  # type: ignore[union-attr]
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

    @property
    def _open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def _fail(self, reason: str) -> None:
        if not self._ended and self._error is None:
            self._error = reason
            self._changed.set()
        self.close()

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's does not inherit from it

    def data_received(self, data: bytes) -> None:
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
            self._ended = True
            self._changed.set()

    # httptools; what follows the response on the connection is ignored

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.status:
            self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        if not self.status and (status := self._parser.get_status_code()) >= 200:
            self.status = status
            self._changed.set()

    def on_body(self, chunk: bytes) -> None:
        if self._ended:
            return
        self._chunks.append(chunk)
        if self._buffered <= _MAX_BUFFERED < self._buffered + len(chunk) and self._open:
            self._transport.pause_reading()  # type: ignore[union-attr]
        self._buffered += len(chunk)
        self._changed.set()

    def on_message_complete(self) -> None:
        if not self.status:  # an interim response
            self.headers = {}
            return
        self._ended = True
        self._changed.set()
        self.close()


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
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    message = _encode(method, target, parts.netloc.rpartition("@")[2], headers, body)
    response = Response(bounds)
    try:
        async with asyncio.timeout(bounds.connect):
            await asyncio.get_running_loop().create_connection(
                lambda: response, host, port, ssl=ssl.create_default_context() if secure else None
            )
    except TimeoutError:
        raise HttpError(f"{host}:{port} cannot be reached: no connection within {bounds.connect:g} s") from None
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise HttpError(f"{host}:{port} cannot be reached: {reason}") from None
    try:
        response.send(message)
        await response.wait_head()
        yield response
    finally:
        response.close()


def _encode(method: str, target: str, host: str, headers: Mapping[str, str], body: bytes | None) -> bytes:
    lines = [f"{method} {target} HTTP/1.1", f"Host: {host}", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    for line in lines:
        if "\r" in line or "\n" in line:
            raise HttpError(f"the header {line.partition(':')[0]!r} contains a line break")
    return "\r\n".join(lines).encode("latin-1", "replace") + b"\r\n\r\n" + (body or b"")
