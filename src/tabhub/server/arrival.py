"""Requests must arrive: a head that is too large, and a request that is too slow, end their connection.

Owns both bounds, for every connection and before anything else looks at it; uvicorn with httptools has neither. A
request that arrives in one piece, as nearly all do, costs one comparison.
"""

from __future__ import annotations

import asyncio

import orjson
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from tabhub.errors import Outcome, TabhubError, TooLarge
from tabhub.limits import DEFAULTS, Limits
from tabhub.server.turn import Turn


class SlowRequest(TabhubError):
    """The request did not arrive in time."""

    status = 408
    category = "timeout"
    outcome: Outcome | None = "not_sent"


class LargeHead(TooLarge):
    """The request's line and headers are larger than any client needs."""

    status = 431


class ArrivingHttp(HttpToolsProtocol):
    """uvicorn's HTTP protocol with both bounds."""

    limits: Limits = DEFAULTS
    turn: Turn | None = None
    _timer: asyncio.TimerHandle | None = None
    _head = 0
    _upgraded = False

    @classmethod
    def within(cls, limits: Limits) -> type[ArrivingHttp]:
        """The protocol for one hub's limits."""
        return type(cls.__name__, (cls,), {"limits": limits, "turn": Turn()})

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client is there: its first request is awaited."""
        super().connection_made(transport)
        self._await_rest()

    def data_received(self, data: bytes) -> None:
        """Take bytes, and see whether a request is whole now."""
        super().data_received(data)
        cycle = self.cycle
        if cycle is not None and cycle.scope is self.scope and not cycle.more_body:
            if self._timer is not None:
                self._stop_waiting()
        elif not self._upgraded and not self.transport.is_closing():
            self._incomplete(len(data))

    def handle_websocket_upgrade(self) -> None:
        """The connection is no longer ours."""
        self._upgraded = True
        self._stop_waiting()
        super().handle_websocket_upgrade()
        protocol = self.transport.get_protocol()
        if isinstance(protocol, WebSocketsSansIOProtocol) and not protocol.handshake_initiated:
            # uvicorn would say nothing and keep the connection: headers longer than a WebSocket may have.
            self._answer(LargeHead("The headers of this WebSocket request cannot be read."))
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing more will come."""
        self._stop_waiting()
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
                self._refuse(LargeHead(f"The request's headers are larger than {self.limits.max_head} bytes."))
                return
        if self._timer is None:
            self._await_rest()

    def _late(self) -> None:
        self._timer = None
        if self.transport.is_closing():
            return
        answering = self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete
        if answering:  # cutting it would break the answer; look again when that is through
            self._await_rest()
        elif self.scope is None or (self._body_outstanding() and self.cycle.response_complete):
            self.transport.close()
        else:
            self._refuse(SlowRequest(f"The request did not arrive within {self.limits.header_timeout:g} s."))

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
