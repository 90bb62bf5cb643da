"""Requests must arrive: a head that is too large, and a request that is too slow, end their connection.

Owns both bounds, for every connection and before anything else looks at it; uvicorn with httptools has neither. Also
owns the two roads from here. A request in one piece whose head is known (heads.py) takes the straight one: a task for
its route, and nothing else. All others take the ordinary one, through uvicorn's parser and ASGI, and the heads that are
let in there are known from then on.
"""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

import orjson
from uvicorn.protocols.http.httptools_impl import STATUS_LINE
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from tabhub.errors import HeadersTooLarge, RequestTimeout, TabhubError
from tabhub.http.fast_cycle import Visit
from tabhub.http.ignore_upgrade import PlainHttp
from tabhub.http.known_heads import HEAD, Head, Heads, Post
from tabhub.http.write_batch import Lines, Turn
from tabhub.limits import DEFAULTS, Limits

_AHEAD = 64
"""Requests a client may send before the answer to an earlier one is through."""


class Gate(Protocol):
    """The app, as far as the straight road asks it."""

    def admits(self, head: Head, size: int) -> bool:
        """Whether a request with a known head and a body of this size may come in now."""
        ...


class ArrivingHttp(PlainHttp):
    """uvicorn's HTTP protocol with both bounds and the straight road."""

    limits: Limits = DEFAULTS
    gate: Gate | None = None
    heads: Heads = Heads()
    turn: Turn = Turn()
    _timer: asyncio.TimerHandle | None = None
    _head = 0
    _upgraded = False
    _between = True
    """Whether the parser is between two requests."""
    _seen: tuple[bytes, Any] | None = None
    """A whole request on the ordinary road and its scope, whose head may be learned."""
    _begun = b""
    """A known head whose body is still to come; the parser has not seen it."""
    _idle_since = 0.0

    @classmethod
    def within(cls, limits: Limits, gate: Gate | None = None, lines: Lines | None = None) -> type[ArrivingHttp]:
        """The protocol for one hub: its limits, its app, and the log whose lines go before its answers."""
        return type(cls.__name__, (cls,), {"limits": limits, "gate": gate, "heads": Heads(), "turn": Turn(lines)})

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client is there: its first request is awaited."""
        super().connection_made(transport)
        self._await_rest()

    def data_received(self, data: bytes) -> None:
        """Take bytes: a request of a known kind at once, everything else through the parser."""
        if self._begun:
            data, self._begun = self._begun + data, b""
        cycle = self.cycle
        alone = self._between and (cycle is None or cycle.response_complete)
        if alone and self.gate is not None and (found := self.heads.find(data)) is not None:
            head, body = found
            if body is None:  # many clients send it in a packet of its own
                self._begun = data
                self._unset_keepalive_if_required()
                if self._timer is None:
                    self._await_rest()
                return
            if head.route is not None and self.gate.admits(head, len(body)):
                self._go_straight(head.route, head, body)
                return
        super().data_received(data)
        if len(self.pipeline) > _AHEAD:  # whoever reads no answer could have no end of them kept
            self.transport.abort()
            return
        cycle = self.cycle
        if cycle is not None and cycle.scope is self.scope and not cycle.more_body:
            if self._timer is not None:
                self._stop_waiting()
            self._seen = (data, self.scope) if alone and cycle.keep_alive else None
        elif not self._upgraded and not self.transport.is_closing():
            self._incomplete(len(data))

    def _go_straight(self, route: Post, head: Head, body: bytes) -> None:
        if self._timer is not None:
            self._stop_waiting()
        visit = self.cycle = Visit(self)
        receive: Any = visit.receive
        send: Any = visit.send
        task = self.loop.create_task(route(head, body, receive, send))
        self.tasks.add(task)
        task.add_done_callback(visit.ended)

    def on_message_begin(self) -> None:
        """The parser has the first byte of a request."""
        self._between = False
        super().on_message_begin()

    def on_message_complete(self) -> None:
        """The parser has its last byte."""
        self._between = True
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """An answer is written. One timer watches an idle connection, and is not set anew for each answer."""
        if self._seen is not None:
            (data, scope), self._seen = self._seen, None
            head: Head | None = scope.get(HEAD)
            # Whoever expects a sign before it sends the body gets it on the ordinary road.
            if head is not None and head.route is not None and b"expect" not in head.headers:
                self.heads.learn(data, head)
        self._idle_since = self.loop.time()
        if self.timeout_keep_alive_task is None or self.pipeline or self.flow.read_paused:
            super().on_response_complete()
        else:
            self.server_state.total_requests += 1

    def timeout_keep_alive_handler(self) -> None:
        """The connection may have been idle for long: close it if it was; an answer under way sets the timer anew."""
        self.timeout_keep_alive_task = None
        if self.cycle is not None and not self.cycle.response_complete:
            return
        left = self._idle_since + self.timeout_keep_alive - self.loop.time()
        if left > 0:
            self.timeout_keep_alive_task = self.loop.call_later(left, self.timeout_keep_alive_handler)
        else:
            super().timeout_keep_alive_handler()

    def handle_websocket_upgrade(self) -> None:
        """The connection is no longer ours."""
        self._upgraded = True
        self._stop_waiting()
        super().handle_websocket_upgrade()
        protocol = self.transport.get_protocol()
        if isinstance(protocol, WebSocketsSansIOProtocol) and not protocol.handshake_initiated:
            # uvicorn would say nothing and keep the connection: headers longer than a WebSocket may have.
            self._answer(HeadersTooLarge("The headers of this WebSocket request cannot be read."))
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing more will come."""
        self._stop_waiting()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def _await_rest(self) -> None:
        self._timer = self.loop.call_later(self.limits.header_timeout, self._late)

    def _stop_waiting(self) -> None:
        self._head = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _body_outstanding(self) -> bool:
        return self.cycle is not None and self.cycle.scope is self.scope

    def _incomplete(self, size: int) -> None:
        if not self._body_outstanding():
            self._head += size
            if self._head > self.limits.max_head:
                self._refuse(HeadersTooLarge(f"The request's headers are larger than {self.limits.max_head} bytes."))
                return
        if self._timer is None:
            self._await_rest()

    def _late(self) -> None:
        self._timer = None
        if self._begun:
            data, self._begun = self._begun, b""
            super().data_received(data)  # it ends as if it had come this way
        if self.transport.is_closing():
            return
        answering = self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete
        if answering:  # cutting it would break the answer; look again when that is through
            self._await_rest()
        elif self.scope is None or (self._body_outstanding() and self.cycle.response_complete):
            self.transport.close()
        else:
            self._refuse(RequestTimeout(f"The request did not arrive within {self.limits.header_timeout:g} s."))

    def _refuse(self, error: TabhubError) -> None:
        """Say no and close; a route that waits for the body is told that the client is gone."""
        self._answer(error)
        self._stop_waiting()
        if self._body_outstanding():
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.transport.close()

    def _answer(self, error: TabhubError) -> None:
        body = orjson.dumps({"error": {"message": error.message, **error.facts()}})
        self.transport.write(
            b"%bcontent-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%b"
            % (STATUS_LINE[error.status], len(body), body)
        )
