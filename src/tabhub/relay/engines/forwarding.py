"""Requests over HTTP whose session is on another node: passed on over the bus, and answered through this node.

Owns both sides: the node that has the client, and the one that has the session. A request is sent at most once. What
either side loses (its client, the other node, a message) ends the request on both.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from tabhub.errors import BusUnavailable, ClientDisconnected, LinkLost, SessionNotFound, TabhubError
from tabhub.http.messages import Header, Request, Response
from tabhub.relay.node import Node
from tabhub.wire import nodes as wire

log = logging.getLogger("tabhub.relay")

_HEADERS = frozenset(
    {
        *(b"accept", b"authorization", b"content-length", b"content-type", b"host", b"last-event-id", b"origin"),
        *(b"mcp-method", b"mcp-name", b"mcp-protocol-version", b"mcp-session-id", b"x-forwarded-for"),
    }
)
"""The headers that the other node looks at."""
_LOST = "The relay node of this session cannot be reached any more"

Serve = Callable[[Request], Awaitable[Response | None]]
Key = tuple[str, int]


class _Forwarded:
    """A request of a client of this node, served by another."""

    def __init__(self, most: int) -> None:
        self._arrived: asyncio.Queue[wire.HttpAnswer | None] = asyncio.Queue()
        self._bytes = 0
        self._most = most

    def put(self, answer: wire.HttpAnswer | None) -> bool:
        """Add a part of the answer, None if no more will come; returns whether the client reads fast enough."""
        self._bytes += len(answer.body) if answer is not None else 0
        self._arrived.put_nowait(answer)
        return self._bytes <= self._most

    async def next(self) -> wire.HttpAnswer:
        answer = await self._arrived.get()
        if answer is None:
            raise LinkLost(f"{_LOST}.", sent=True, hint="Start a new session with `initialize`.")
        self._bytes -= len(answer.body)
        return answer


class Forwarding:
    """The forwarded requests of one node, in both directions."""

    def __init__(self, node: Node, serve: Serve, refusal: Callable[[Request, TabhubError], Response]) -> None:
        """`serve` and `refusal` answer requests as if they had arrived here."""
        self._node = node
        self._serve_request = serve
        self._refusal = refusal
        self._last = 0
        self._sent: dict[Key, _Forwarded] = {}
        self._served: dict[Key, _BusConnection] = {}
        node.on_http(self)

    # the node of the client

    async def forward(self, owner: str, request: Request) -> Response | None:
        if not self._node.bus.healthy:
            raise BusUnavailable("This session is on another relay node, which cannot be reached: bus unavailable.")
        self._last += 1
        key = owner, self._last
        headers = tuple((name, value) for name, value in request.raw_headers if name in _HEADERS)
        message = wire.HttpRequest(self._last, request.method, request.query, headers, request.body)
        waiting = self._sent[key] = _Forwarded(self._node.limits.relay_queue)
        try:
            if not self._node.send_to_node(owner, message):
                raise SessionNotFound("This session has ended: its relay node is gone.", hint="Start again.")
            request.on_disconnect.append(lambda: self._cancel(key))
            return await self._answer(request, waiting)
        except ClientDisconnected:
            self._cancel(key)
            raise
        finally:
            self._sent.pop(key, None)

    async def _answer(self, request: Request, waiting: _Forwarded) -> Response | None:
        first = await waiting.next()
        if first.last:
            return Response(first.status, first.body, first.headers)
        stream = request.start_stream(first.headers)
        while True:
            part = await waiting.next()
            if part.body:
                await stream.write(part.body)
            if part.last:
                return None

    def _cancel(self, key: Key) -> None:
        waiting = self._sent.pop(key, None)
        if waiting is not None:
            waiting.put(None)
            self._node.send_to_node(key[0], wire.HttpCancel(key[1]))

    # the node of the session

    async def _serve(self, key: Key, message: wire.HttpRequest, connection: _BusConnection) -> None:
        headers = list(message.headers)
        request = Request(connection, message.method, "/mcp", message.query, headers, dict(headers), body=message.body)
        connection.request = request
        try:
            response = await self._serve_request(request)
        except ClientDisconnected:
            return
        except TabhubError as error:
            response = self._refusal(request, error)
        except Exception:
            log.exception("a forwarded request failed")
            response = Response(500, b"Internal Server Error")
        finally:
            self._served.pop(key, None)
        if response is None:
            connection.send(wire.HttpAnswer(key[1], 200, (), b"", last=True))
        elif connection.streams:  # it failed in the middle
            self._node.send_to_node(key[0], wire.HttpCancel(key[1], answer=True))
        else:
            connection.send(wire.HttpAnswer(key[1], response.status, response.headers, response.body, last=True))

    # called by the node

    def http_received(self, node: str, message: wire.HttpMessage) -> None:
        key = node, message.number
        if isinstance(message, wire.HttpRequest):
            connection = self._served[key] = _BusConnection(self._node, key)
            self._node.spawn(self._serve(key, message, connection))
        elif isinstance(message, wire.HttpAnswer):
            waiting = self._sent.get(key)
            if waiting is None or not waiting.put(message):
                self._cancel(key)
        elif message.answer:
            if (waiting := self._sent.pop(key, None)) is not None:
                waiting.put(None)
        elif (served := self._served.pop(key, None)) is not None:
            served.disconnect()

    def node_lost(self, node: str | None) -> None:
        """Another node is lost, or all are."""
        for key in [key for key in self._sent if node in (None, key[0])]:
            self._sent.pop(key).put(None)
        for key in [key for key in self._served if node in (None, key[0])]:
            self._served.pop(key).disconnect()


class _BusConnection:
    """The connection of a forwarded request, as a route sees it."""

    def __init__(self, node: Node, key: Key) -> None:
        self._node = node
        self._key = key
        self.request: Request | None = None
        self.streams = False

    def start_stream(self, request: Request, headers: Sequence[Header]) -> _BusStream:
        self.streams = True
        self.send(wire.HttpAnswer(self._key[1], 200, tuple(headers), b"", last=False))
        return _BusStream(self, request)

    def send_part(self, data: bytes) -> None:
        self.send(wire.HttpAnswer(self._key[1], 200, (), data, last=False))

    def send(self, answer: wire.HttpAnswer) -> None:
        if not self._node.send_to_node(self._key[0], answer):
            self.disconnect()

    def disconnect(self) -> None:
        request = self.request
        if request is not None and not request.disconnected:
            request.disconnected = True
            callbacks, request.on_disconnect = request.on_disconnect, []
            for callback in callbacks:
                callback()

    def cancel(self) -> None:
        self._node.send_to_node(self._key[0], wire.HttpCancel(self._key[1], answer=True))
        self.disconnect()


class _BusStream:
    """A streamed response to a forwarded request."""

    def __init__(self, connection: _BusConnection, request: Request) -> None:
        self._connection = connection
        self._request = request

    @property
    def disconnected(self) -> bool:
        return self._request.disconnected

    async def write(self, data: bytes) -> None:
        if self._request.disconnected:
            raise ClientDisconnected
        self._connection.send_part(data)

    def abort(self) -> None:
        self._connection.cancel()
