"""One tool call over a connection of the hub's own, and the handling of its answer.

Owns the reading of an answer, plain or as an event stream, and resuming a stream that broke off. Messages go to the
queue of the SDK's session as they arrive. An answer that says the server did not accept the request (login, redirect,
unknown session) is not handled here: the request is then sent by the SDK.
"""

from __future__ import annotations

from contextvars import Context
from typing import Any, Literal, Protocol

import mcp_types as types
from mcp.shared.message import SessionMessage
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from tabhub.errors import BadInput
from tabhub.net.async_http import Connection
from tabhub.upstream.transport.guarded_http import LOST
from tabhub.upstream.transport.message_queue import MessageQueue
from tabhub.upstream.transport.messages import read_message
from tabhub.wire.sse_reader import Event, EventReader

NOT_TAKEN = frozenset({301, 302, 303, 307, 308, 401, 403, 404})
"""Answers that mean the request was not carried out, and can be sent again."""
_VERSION = "mcp-protocol-version"
_COME_BACK = 1.0
_TRIES = 2
_ERROR_BODY = 1024 * 1024


class CallSender(Protocol):
    """What a call needs of its sender (http_calls.HttpCalls)."""

    queue: MessageQueue
    largest: int

    def finished(self, call: HttpCall) -> None:
        """The request has its answer, or will have none."""
        ...

    def send_by_sdk(self, call: HttpCall) -> None:
        """Send the request by the SDK's own transport."""
        ...

    def resume_later(self, call: HttpCall, after: float) -> None:
        """Request the rest of a stream after `after` seconds."""
        ...


class HttpCall:
    """One request (net.async_http.ResponseHandler)."""

    def __init__(self, sender: CallSender, given: SessionMessage, context: Context) -> None:
        assert isinstance(given.message, types.JSONRPCRequest)  # noqa: S101 - only requests have answers
        self._sender = sender
        self.given = given
        self.id = given.message.id
        self.context = context
        self.connection: Connection | None = None
        self.last_id: str | None = None
        self._mode: Literal["json", "events", "error", "other"] = "other"
        self._parts: list[bytes] = []
        self._size = 0
        self._status = 0
        self._events: EventReader | None = None
        self._retry: int | None = None
        self._tries = 0
        self._over = False

    @property
    def headers(self) -> dict[str, str]:
        headers: dict[str, str] | None = getattr(self.given.metadata, "headers", None)
        return headers or {}

    @property
    def modern(self) -> bool:
        """Whether closing the request cancels it."""
        return any(
            name.lower() == _VERSION and value in MODERN_PROTOCOL_VERSIONS for name, value in self.headers.items()
        )

    def abort(self) -> None:
        self._over = True
        self._close_connection()

    def fail(self, code: int, message: str) -> None:
        """Answer in the server's place."""
        if not self._over:
            self._over = True
            error = types.ErrorData(code=code, message=message)
            self._put(types.JSONRPCError(jsonrpc="2.0", id=self.id, error=error))
            self._sender.finished(self)

    # ResponseHandler

    def on_head(self, status: int, headers: dict[str, str]) -> None:
        self._parts, self._size = [], 0
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if self.last_id is not None and (status != 200 or kind != "text/event-stream"):
            self._mode = "other"  # the stream cannot be resumed
        elif status in NOT_TAKEN:
            self._close_connection()
            self._over = True
            self._sender.send_by_sdk(self)
        elif status == 202:
            self._close_connection()
            self.fail(types.INVALID_REQUEST, "it accepted the request and announced that no answer would follow")
        elif not 200 <= status < 300:
            self._mode, self._status = "error", status
        elif kind == "application/json":
            self._mode = "json"
        elif kind == "text/event-stream":
            self._mode = "events"
            self._tries = 0
            self._events = EventReader(self._sender.largest, self.last_id)
        else:
            self._close_connection()
            self.fail(types.INVALID_REQUEST, f"it answered with {kind[:100] or 'no content type'}")

    def on_body(self, chunk: bytes) -> None:
        if self._over:
            return
        if self._events is not None:
            self._stream(self._events, chunk)
            return
        self._size += len(chunk)
        if self._size > (_ERROR_BODY if self._mode == "error" else self._sender.largest):
            self._close_connection()
            self.fail(types.PARSE_ERROR, f"its answer is larger than {self._sender.largest} bytes")
        elif self._mode in ("json", "error"):
            self._parts.append(chunk)

    def on_end(self) -> None:
        self.connection = None
        if self._over:
            return
        if self._mode == "json":
            self._answer(b"".join(self._parts))
        elif self._mode == "error":
            self._error_answer(b"".join(self._parts))
        else:
            self._interrupted("its event stream ended without an answer")

    def on_error(self, why: str) -> None:
        self.connection = None
        if not self._over:
            self._interrupted(why)

    def resume_failed(self, why: str) -> None:
        """The rest of a stream cannot be fetched."""
        self._events = None
        self._interrupted(why)

    # what is in it

    def _answer(self, body: bytes) -> None:
        try:
            message = read_message(body)
        except ValidationError:
            self.fail(types.PARSE_ERROR, f"its answer is no JSON-RPC message: {body[:80]!r}")
            return
        if not self._deliver(message):
            self.fail(types.INVALID_REQUEST, "it answered with a message that is no answer to this request")

    def _deliver(self, message: Any) -> bool:
        """Pass on the answer if it is this request's; an error without an id is."""
        if isinstance(message, types.JSONRPCError) and message.id is None:
            message.id = self.id
        if not isinstance(message, types.JSONRPCResponse | types.JSONRPCError) or message.id != self.id:
            return False
        self._over = True
        self._put(message)
        self._sender.finished(self)
        return True

    def _error_answer(self, body: bytes) -> None:
        try:
            message: Any = read_message(body)
        except ValidationError:
            message = None
        if isinstance(message, types.JSONRPCError):
            message.id = self.id
            self._deliver(message)
        else:
            self.fail(types.INTERNAL_ERROR, f"it answered with status {self._status}")

    def _stream(self, events: EventReader, chunk: bytes) -> None:
        try:
            found = events.feed(chunk)
        except BadInput:
            self._close_connection()
            self.fail(types.PARSE_ERROR, f"an event of its answer is larger than {self._sender.largest} bytes")
            return
        for event in found:
            if not self._over:
                self._event(event)
        self.last_id, self._retry = events.last_id, events.retry if events.retry is not None else self._retry
        if not self._over and self._sender.queue.full and (connection := self.connection) is not None:
            connection.pause()
            self._sender.queue.on_space(connection.resume)

    def _event(self, event: Event) -> None:
        if event.kind != "message" or not event.data:
            return
        try:
            message = read_message(event.data)
        except ValidationError:
            self._close_connection()
            self.fail(types.PARSE_ERROR, f"an event of its answer is no JSON-RPC message: {event.data[:80]!r}")
            return
        if self._deliver(message):
            # Most servers end the stream now, and the connection can be used again; one that does not is left.
            return
        if not isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
            self._put(message)

    def _interrupted(self, why: str) -> None:
        """The answer did not arrive; a stream with event ids is resumed."""
        if self.last_id is None:
            self.fail(LOST, why)
            return
        if self._events is None:
            self._tries += 1
        self._events = None
        if self._tries > _TRIES:
            self.fail(LOST, f"{why}, and it could not be resumed")
            return
        self._sender.resume_later(self, _COME_BACK if self._retry is None else self._retry / 1000)

    def _put(self, message: Any) -> None:
        self._sender.queue.put(SessionMessage(message), self.context)

    def _close_connection(self) -> None:
        connection, self.connection = self.connection, None
        if connection is not None:
            connection.close()
