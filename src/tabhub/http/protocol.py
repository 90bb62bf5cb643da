"""HTTP/1.1 on one connection: bytes to requests, responses to bytes.

Owns reading with its bounds (size of the head and body, time to arrive, requests sent ahead), the order of responses,
keep-alive and the switch to a WebSocket. Every request takes this one path. Which route serves a request, and whether
it is admitted, is the application's; it decides when the head is complete, before any of the body is accepted.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Protocol, cast
from urllib.parse import unquote

import httptools

from tabhub.errors import (
    BadInput,
    ClientDisconnected,
    HeadersTooLarge,
    MethodNotAllowed,
    RequestTimeout,
    TabhubError,
    TooLarge,
)
from tabhub.http.messages import TEXT, Header, Request, Response, Route, error_response, retry_after
from tabhub.http.websocket import VERSION, Upgrade, WebSocket, WebSocketRoute, shake_hands
from tabhub.http.write_batch import WriteBatch
from tabhub.limits import Limits

log = logging.getLogger("tabhub.http")

_MAX_AHEAD = 64
"""Requests a client may send before an earlier one is answered."""
_KEEP_ALIVE = 120.0
"""Longer than proxies keep their connections: a request must not meet a connection that is being closed."""
_LINGER = 2.0
"""Seconds a refused client has to read its answer before the connection is closed."""
_NO_CONTENT = 204
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_INTERNAL_ERROR = Response(500, b"Internal Server Error", (TEXT,))
_PHRASES = {status.value: status.phrase for status in HTTPStatus} | {499: "Client Closed Request"}


class _Dropped(list[Header]):
    """Keeps no headers: fields after the body are dropped."""

    def append(self, _: Header) -> None: ...


_NO_MORE = _Dropped()


class Application(Protocol):
    """What a server serves."""

    def route(self, request: Request) -> Route:
        """The route of a request whose head has arrived; TabhubError refuses it."""
        ...

    def refusal(self, request: Request, error: TabhubError) -> Response:
        """The response to a request that is refused, or whose route failed."""
        ...

    def websocket(self, request: Request) -> WebSocketRoute:
        """How a WebSocket is opened; TabhubError refuses it."""
        ...


class HttpProtocol(asyncio.Protocol):
    """One connection."""

    def __init__(
        self,
        app: Application,
        limits: Limits,
        batch: WriteBatch,
        connections: set[HttpProtocol | WebSocket],
    ) -> None:
        self._app = app
        self._limits = limits
        self._batch = batch
        self._connections = connections
        self._loop = asyncio.get_running_loop()
        self._parser: Any = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport = None  # type: ignore[assignment] # set by connection_made, before any use
        self._peer: str | None = None
        # The request that is arriving.
        self._url = b""
        self._headers: list[Header] = []
        self._head_size = 0
        self._received = 0
        """Bytes that arrived last."""
        self._in_head = False
        self._arriving: Request | None = None
        self._route: Route | TabhubError | None = None
        self._body: list[bytes] = []
        self._body_size = 0
        # Requests that have arrived.
        self._arrived: deque[tuple[Request, Route | TabhubError]] = deque()
        self._task: asyncio.Task[None] | None = None
        """Answers them; one task serves all requests of the connection, because each new one would cost more."""
        self._busy = False
        """Whether it is answering; otherwise it waits for `_wake`."""
        self._wake: asyncio.Future[None] | None = None
        self._current: Request | None = None
        self._stream: _ChunkedStream | None = None
        self._read_paused = False
        # The connection.
        self._closing = False
        """Whether it is closed after the current response."""
        self.refusing = False
        """Whether what still arrives is ignored: the request was refused."""
        self._lost = False
        self._write_paused = False
        self._drained: asyncio.Future[None] | None = None
        self._deadline = 0.0
        """When the connection is closed if nothing happens; 0 for never. The server looks now and then."""

    # the connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._connections.add(self)
        peer = transport.get_extra_info("peername")
        self._peer = peer[0] if isinstance(peer, tuple) else None
        self._deadline = self._loop.time() + self._limits.header_timeout

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = True
        self._parser = None
        self._arrived.clear()
        if self._drained is not None and not self._drained.done():
            self._drained.set_exception(ClientDisconnected())
            self._drained.exception()
        self._end_if_idle()
        if (request := self._current) is not None:
            request.disconnected = True
            callbacks, request.on_disconnect = request.on_disconnect, []
            for callback in callbacks:
                callback()

    def pause_writing(self) -> None:
        self._write_paused = True

    def resume_writing(self) -> None:
        self._write_paused = False
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)
        if self._arrived and not self._busy:
            self._answer_arrived()

    async def drain(self) -> None:
        """Wait until the client has read what it was sent."""
        if self._lost:
            raise ClientDisconnected
        if self._write_paused:
            self._drained = self._loop.create_future()
            await self._drained

    def shut_down(self) -> None:
        """Close the connection once its current request is answered."""
        self._closing = True
        if not self._busy and not self._lost:
            self._transport.close()

    def cancel(self) -> asyncio.Task[None] | None:
        """Close the connection at once; gives the task that still has to end."""
        if not self._lost:
            self._transport.abort()
        if self._task is not None and not self._task.done():
            self._task.cancel()
            return self._task
        return None

    def check_deadline(self, now: float) -> None:
        if self._lost or not self._deadline or now < self._deadline:
            return
        if self.refusing or not (self._in_head or self._arriving is not None):
            self._transport.close()
        else:
            self._refuse(RequestTimeout(f"The request did not arrive within {self._limits.header_timeout:g} s."))

    # reading

    def data_received(self, data: bytes) -> None:
        if self.refusing:
            return
        self._received = len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._switch_protocol(data[upgrade.args[0] :])
            return
        except httptools.HttpParserError:
            if not self.refusing:
                self._refuse(BadInput("Invalid HTTP request."))
            return
        if self._in_head or self._arriving is not None:
            self._await_rest(len(data))

    def _await_rest(self, received: int) -> None:
        """The request is incomplete. A refused one is answered now; others have a limited time to arrive."""
        if self._in_head:
            self._head_size += received
            if self._head_size > self._limits.max_head:
                self._refuse(self._head_too_large())
                return
        elif isinstance(self._route, TabhubError):
            self._refuse(self._route)
            return
        elif self._arriving is not None and self._arriving.headers.get(b"expect", b"").lower() == b"100-continue":
            del self._arriving.headers[b"expect"]
            self._transport.write(_CONTINUE)
        if not self._deadline:
            self._deadline = self._loop.time() + self._limits.header_timeout

    def on_message_begin(self) -> None:
        self._in_head = True
        self._url = b""
        self._headers = []
        self._head_size = 0
        if not self._busy:
            self._deadline = 0.0

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        parser, target, headers = self._parser, self._url, self._headers
        self._headers = _NO_MORE
        if not target.startswith(b"/") and b"://" in target:
            target = httptools.parse_url(target).path or b"/"
        raw_path, _, query = target.partition(b"?")
        path = raw_path.decode("latin-1")
        version = parser.get_http_version()
        request = self._arriving = Request(
            self,
            parser.get_method().decode("latin-1"),
            unquote(path) if "%" in path else path,
            query,
            headers,
            dict(headers),
            version,
            self._peer,
            version == "1.1" and parser.should_keep_alive(),
        )
        if parser.should_upgrade():
            return  # see _switch_protocol
        self._in_head = False
        try:
            if self._received > self._limits.max_head:
                self._check_head_size(request)
            self._route = self._app.route(request)
        except TabhubError as error:
            self._route = error

    def _check_head_size(self, request: Request) -> None:
        size = len(self._url) + sum(len(name) + len(value) for name, value in request.raw_headers)
        if size > self._limits.max_head:
            raise self._head_too_large()

    def _head_too_large(self) -> HeadersTooLarge:
        return HeadersTooLarge(f"The request's headers are larger than {self._limits.max_head} bytes.")

    def on_body(self, body: bytes) -> None:
        if isinstance(self._route, TabhubError):
            return
        self._body_size += len(body)
        if self._body_size > self._limits.max_body:
            self._body = []
            self._route = TooLarge(f"The request body is larger than {self._limits.max_body} bytes.")
            return
        self._body.append(body)

    def on_message_complete(self) -> None:
        request, route = self._arriving, self._route
        if request is None or route is None:  # an upgrade: see _switch_protocol
            return
        body = self._body
        if body:
            request.body = body[0] if len(body) == 1 else b"".join(body)
            self._body = []
        self._body_size = 0
        self._arriving = self._route = None
        self._arrived.append((request, route))
        self._deadline = 0.0
        if not self._busy and not self._write_paused:
            self._answer_arrived()
        elif not self._read_paused:
            self._read_paused = True
            self._transport.pause_reading()
        elif len(self._arrived) > _MAX_AHEAD:  # a client that reads no answers
            self._transport.abort()

    def _refuse(self, error: TabhubError) -> None:
        """Answer a request that has not arrived whole, and close the connection."""
        self.refusing = self._closing = True
        if self._busy:
            return  # the response to an earlier request comes first
        response = error_response(error) if self._arriving is None else self._app.refusal(self._arriving, error)
        self.write(encode_response(response, close=True))
        self._batch.flush(self._transport)
        # Closing at once would reset the connection, and the client might never read the answer.
        if self._transport.can_write_eof():
            self._transport.write_eof()
        self._deadline = self._loop.time() + _LINGER

    # answering

    def _answer_arrived(self) -> None:
        self._busy = True
        if self._wake is not None:
            self._wake.set_result(None)
            self._wake = None
        else:
            self._task = self._loop.create_task(self._serve())

    async def _serve(self) -> None:
        """Answer the requests as they arrive, in their order, until the connection is lost."""
        arrived = self._arrived
        while not self._lost:
            if not arrived or self._write_paused:
                self._busy = False
                self._wake = self._loop.create_future()
                await self._wake
                continue
            request, route = arrived.popleft()
            if self._read_paused and not arrived:
                self._read_paused = False
                self._transport.resume_reading()
            self._current = request
            try:
                if isinstance(route, TabhubError):
                    raise route
                response = await route(request)
            except ClientDisconnected:
                response = None
            except TabhubError as error:
                response = self._app.refusal(request, error)
            except Exception:
                log.exception("%s %s failed", request.method, request.path[:200])
                response = _INTERNAL_ERROR
            self._current = None
            request.on_disconnect.clear()
            if not self._lost:
                self._respond(request, response)
        self._busy = False
        self._connections.discard(self)

    def _end_if_idle(self) -> None:
        """The connection is lost, or another protocol's: nothing waits for its next request."""
        if not self._busy:
            self._connections.discard(self)
            if self._wake is not None and not self._wake.done():  # a task that was cancelled no longer waits
                self._wake.set_result(None)
            self._wake = None

    def start_stream(self, request: Request, headers: Sequence[Header]) -> _ChunkedStream:
        if request.disconnected:
            raise ClientDisconnected
        self._stream = _ChunkedStream(self, request, headers)
        return self._stream

    def _respond(self, request: Request, response: Response | None) -> None:
        """Write the response, or the end of one that was streamed."""
        stream = self._stream
        close = self._closing or not request.keep_alive
        if stream is None:
            data = encode_response(response or _INTERNAL_ERROR, close=close, head_only=request.method == "HEAD")
            self._batch.write(self._transport, data)
        else:
            self._stream = None
            if response is not None:  # it failed in the middle: an end that looks complete would hide that
                self._arrived.clear()
                self._transport.abort()
                return
            self._batch.write(self._transport, stream.end)
        if close:
            self._arrived.clear()
            self._batch.flush(self._transport)
            self._transport.close()
        elif not self._arrived:
            arriving = self._in_head or self._arriving is not None
            self._deadline = self._loop.time() + (self._limits.header_timeout if arriving else _KEEP_ALIVE)

    def write(self, data: bytes) -> None:
        self._batch.write(self._transport, data)

    def abort(self) -> None:
        self._transport.abort()

    # other protocols

    def _switch_protocol(self, rest: bytes) -> None:
        """The client asks for another protocol: a WebSocket is opened, anything else is answered as plain HTTP."""
        request, self._arriving = self._arriving, None
        self._in_head = False
        if request is None:  # its head was too large, and is refused
            return
        if request.method == "CONNECT":
            self._refuse(MethodNotAllowed("This server is not a proxy."))
        elif request.headers.get(b"upgrade", b"").lower() == b"websocket" and request.method == "GET":
            self._open_websocket(request, rest)
        else:
            # Some clients ask for HTTP/2 with every first request. Read it again without that wish.
            line = b"%b %b HTTP/%b\r\n" % (request.method.encode(), self._url, request.version.encode())
            fields = b"".join([b"%b: %b\r\n" % field for field in request.raw_headers if field[0] != b"upgrade"])
            self._parser = httptools.HttpRequestParser(self)
            self.data_received(line + fields + b"\r\n" + rest)

    def _open_websocket(self, request: Request, rest: bytes) -> None:
        self._deadline = 0.0
        try:
            if self._busy:
                raise BadInput("A WebSocket must be opened on a connection without requests in flight.")
            route = self._app.websocket(request)
            protocol = shake_hands(request, self._transport, route.subprotocol, self._limits, self._batch)
        except TabhubError as error:
            refusal = Response(error.status, error.text().encode(), (TEXT, VERSION, *retry_after(error)))
            self.write(encode_response(refusal, close=True))
            self._batch.flush(self._transport)
            self._transport.close()
            return
        self._lost = True
        self._end_if_idle()
        self._parser = None
        upgrade = Upgrade(self._transport, protocol, self._batch, self._connections, self._limits.max_frame)
        socket = route.connect(upgrade)
        self._transport.set_protocol(socket)
        if rest:
            socket.data_received(rest)


class _ChunkedStream:
    """A response with a chunked body; HTTP/1.0 gets it plain, up to the end of the connection."""

    __slots__ = ("_chunked", "_protocol", "_request", "end")

    def __init__(self, protocol: HttpProtocol, request: Request, headers: Sequence[Header]) -> None:
        self._protocol = protocol
        self._request = request
        self._chunked = request.version != "1.0"
        self.end = b"0\r\n\r\n" if self._chunked else b""
        head = response_head(HTTPStatus.OK, tuple(headers))
        protocol.write(
            head + (b"transfer-encoding: chunked\r\n\r\n" if self._chunked else b"connection: close\r\n\r\n")
        )

    @property
    def disconnected(self) -> bool:
        return self._request.disconnected

    async def write(self, data: bytes) -> None:
        if self._request.disconnected:
            raise ClientDisconnected
        self._protocol.write(b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data)
        await self._protocol.drain()

    def abort(self) -> None:
        self._protocol.abort()


@lru_cache(maxsize=512)
def response_head(status: int, headers: tuple[Header, ...]) -> bytes:
    """The status line and headers; nearly all responses have one of a few."""
    line = f"HTTP/1.1 {status} {_PHRASES.get(status, '')}\r\n".encode()
    return line + b"".join([b"%b: %b\r\n" % header for header in headers])


def encode_response(response: Response, *, close: bool, head_only: bool = False) -> bytes:
    status, body = response.status, response.body
    length = b"" if status == _NO_CONTENT else b"content-length: %d\r\n" % len(body)
    end = b"connection: close\r\n\r\n" if close else b"\r\n"
    return b"%b%b%b%b" % (response_head(status, response.headers), length, end, b"" if head_only else body)
