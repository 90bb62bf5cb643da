"""A WebSocket connection: frames to messages, messages to frames.

Owns sending and receiving without a queue or a task for every frame, and backpressure: a peer that lets too much pile
up is disconnected. The protocol itself is websockets' sans-I/O implementation, which reads every frame but the common
one: a whole, short text message costs less when it is unmasked here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, NamedTuple, Protocol

from websockets.frames import CloseCode, Frame, Opcode
from websockets.http11 import Request as HandshakeRequest
from websockets.server import ServerProtocol

from tabhub.errors import BadInput, HeadersTooLarge
from tabhub.http.messages import Request
from tabhub.http.write_batch import WriteBatch
from tabhub.limits import Limits

_MAX_REASON = 120
"""Bytes of a close reason; the protocol allows 123."""
VERSION = (b"sec-websocket-version", b"13")
"""The header of a refused handshake: the version of the protocol that is spoken here."""
ABNORMAL = 1006
"""The close code of a connection that ended without a close frame."""
GOING_AWAY = 1001
_TEXT = Opcode.TEXT
_WHOLE_TEXT = 0x81
"""The first byte of a frame that is a whole text message."""
_MASKED = 0x80
_OPCODE = 0x0F
"""The bits of the first byte that are the opcode."""
_EMPTY_CONTINUATION = bytes((0x80, _MASKED, 0, 0, 0, 0))
"""The last fragment of a message, without data, as a client sends it."""
_TWO_BYTES = _MASKED + 126
"""The second byte of a frame whose length follows in two bytes."""
_SHORT = 1024
"""Bytes up to which a message is unmasked here; websockets has faster code for long ones."""
_ALL = 1 << 64


class Receiver(Protocol):
    """Who the messages of a connection are for."""

    def receive(self, message: bytes) -> None:
        """A text message has arrived."""
        ...

    def receive_binary(self) -> None:
        """A binary message has arrived; nothing uses them."""
        ...

    def overflow(self) -> None:
        """The peer does not read what it is sent; the connection is aborted next."""
        ...

    def closed(self, reason: str) -> None:
        """The connection is closed."""
        ...


class Upgrade(NamedTuple):
    """A connection after the handshake."""

    transport: asyncio.Transport
    protocol: ServerProtocol
    batch: WriteBatch
    connections: set[Any]
    longest: int
    """Bytes that a message may have."""


class WebSocketRoute(NamedTuple):
    """How an admitted WebSocket is opened."""

    subprotocol: str | None
    connect: Callable[[Upgrade], WebSocket]


class WebSocket(asyncio.Protocol):
    """One accepted connection."""

    close_timeout = 10.0
    """Seconds a peer has to answer a close frame."""

    def __init__(self, upgrade: Upgrade, open_receiver: Callable[[WebSocket], Receiver], max_queue: int) -> None:
        self.transport, self._protocol, self._batch, self._connections, self._longest = upgrade
        self.loop = asyncio.get_running_loop()
        self._max_queue = max_queue
        self._closing = False
        self._overflowed = False
        self._write_paused = False
        self._close_timer: asyncio.TimerHandle | None = None
        self._header = b""
        """The beginning of a frame whose header has not arrived whole."""
        self._rest = 0
        """Bytes still to arrive of a frame of which the protocol has the beginning."""
        self._fragments = bytearray()
        self._fragmented: Opcode | None = None
        """The kind of the message of which fragments have arrived."""
        self._connections.add(self)
        self._receiver = open_receiver(self)

    # sending

    def send_text(self, data: bytes) -> None:
        """Send one text message; on a closed connection it is dropped."""
        if self._closing:
            return
        size = len(data)
        if size < 126:
            header = b"\x81%c" % size
        else:
            header = b"\x81\x7e" + size.to_bytes(2) if size < 1 << 16 else b"\x81\x7f" + size.to_bytes(8)
        self._batch.write(self.transport, header + data)
        if self._write_paused:
            self._check_queue()

    def queued(self) -> int:
        """Bytes the peer has not read."""
        return self.transport.get_write_buffer_size() if self._write_paused else 0

    def _check_queue(self) -> None:
        if self.queued() > self._max_queue and not self._overflowed:
            self._overflowed = True
            self._receiver.overflow()
            self.transport.abort()

    def send_close(self, code: int, reason: str) -> None:
        """Send a close frame; the peer has a moment to answer."""
        if self._closing or self.transport.is_closing():
            return
        self._batch.flush(self.transport)
        self._protocol.send_close(code, reason.encode()[:_MAX_REASON].decode("utf-8", "ignore"))
        self._flush_protocol()
        self._begin_closing()

    def _begin_closing(self) -> None:
        self._closing = True
        if self._close_timer is None and not self.transport.is_closing():
            # `transport.close` would wait for a peer that no longer reads.
            self._close_timer = self.loop.call_later(self.close_timeout, self.transport.abort)

    def shut_down(self) -> None:
        """The server stops: its application has closed what it wants to close with a reason."""
        self.send_close(GOING_AWAY, "the server is shutting down")

    def cancel(self) -> None:
        """Close the connection at once."""
        self.transport.abort()

    def _flush_protocol(self) -> None:
        """Write what the protocol itself has to say: handshake, pongs, close frames."""
        for data in self._protocol.data_to_send():
            if data:
                self._batch.write(self.transport, data)
            else:  # the end of what is sent
                self._batch.flush(self.transport)
                self.transport.close()

    # receiving

    def data_received(self, data: bytes) -> None:
        if self._header:
            data, self._header = self._header + data, b""
        protocol, at, end = self._protocol, 0, len(data)
        if self._rest:
            at = min(self._rest, end)
            self._rest -= at
            self._pass_on(protocol, data[:at])
        while at < end:
            size = _frame_size(data, at, end, self._longest)
            if size is None:
                self._header = data[at:]
                return
            stop = at + size
            if size <= _SHORT and stop <= end and data[at] == _WHOLE_TEXT and self._fragmented is None:
                begin = at + (6 if data[at + 1] < _TWO_BYTES else 8 if data[at + 1] == _TWO_BYTES else 14)
                length = stop - begin
                key = int.from_bytes((data[begin - 4 : begin] * (length // 4 + 1))[:length])
                text = (int.from_bytes(data[begin:stop]) ^ key).to_bytes(length)
                self._receive_frame(_TEXT, True, text)
            else:
                if self._fragmented is not None and data[at] & _OPCODE == Opcode.CLOSE:
                    self._drop_fragments(protocol)
                self._rest = max(stop - end, 0)
                self._pass_on(protocol, data[at:stop])
            at = stop

    def _drop_fragments(self, protocol: ServerProtocol) -> None:
        """A close frame follows, which may come between fragments; the protocol takes it only after a whole message."""
        self._fragmented = None
        self._fragments.clear()
        protocol.receive_data(_EMPTY_CONTINUATION)
        protocol.events_received()

    def _pass_on(self, protocol: ServerProtocol, data: bytes) -> None:
        """Let the protocol read a frame, or a part of one."""
        protocol.receive_data(data)
        for event in protocol.events_received():
            if type(event) is Frame:
                self._receive_frame(event.opcode, event.fin, bytes(event.data))
                event.data = b""  # the parser keeps its last frame until the next one
        self._flush_protocol()
        if self._write_paused:  # a peer that pings and does not read the answers
            self._check_queue()
        if protocol.close_expected():
            self._begin_closing()

    def _receive_frame(self, opcode: Opcode, fin: bool, data: bytes) -> None:
        if opcode is _TEXT and fin:
            self._receive_text(data)
        elif opcode is Opcode.CONT or opcode is _TEXT or opcode is Opcode.BINARY:
            self._receive_fragment(opcode, fin, data)
        elif opcode is Opcode.PONG:
            self.pong_received()

    def _receive_fragment(self, opcode: Opcode, fin: bool, data: bytes) -> None:
        """Join fragments as they arrive: empty ones, kept one by one, could be without number."""
        if opcode is not Opcode.CONT:
            self._fragmented = opcode
        self._fragments += data
        if not fin:
            return
        kind, self._fragmented = self._fragmented, None
        message = bytes(self._fragments)
        self._fragments = bytearray()
        if kind is _TEXT:
            self._receive_text(message)
        elif not self._closing:
            self._receiver.receive_binary()

    def _receive_text(self, message: bytes) -> None:
        if self._closing:
            return
        if not message.isascii():
            try:
                message.decode()
            except UnicodeDecodeError:
                self._protocol.fail(CloseCode.INVALID_DATA, "a text message is not UTF-8")
                self._closing = True
                self._flush_protocol()
                return
        self._receiver.receive(message)

    def pong_received(self) -> None: ...

    def pause_writing(self) -> None:
        self._write_paused = True

    def resume_writing(self) -> None:
        self._write_paused = False

    def eof_received(self) -> None:
        self._closing = True
        self._protocol.receive_eof()

    def connection_lost(self, exc: Exception | None) -> None:
        self._closing = True
        self._connections.discard(self)
        if self._close_timer is not None:
            self._close_timer.cancel()
        self._protocol.receive_eof()
        code = self._protocol.close_code or ABNORMAL
        reason = self._protocol.close_reason or f"the connection was closed ({code})"
        self.release()
        self._receiver.closed(reason)

    def release(self) -> None:
        """Free what never became a whole message; objects around this one may live longer."""
        self._closing = True
        self._fragments.clear()
        self._protocol = ServerProtocol()


def _frame_size(data: bytes, at: int, end: int, longest: int) -> int | None:
    """The bytes of the frame at this place; None if its header is incomplete. An invalid one has all that follows."""
    if end - at < 2:
        return None
    length = data[at + 1] - _MASKED
    if 0 <= length < 126:
        return length + 6 if length <= longest else _ALL
    if length < 0:
        return _ALL
    header = 8 if length == 126 else 14
    if end - at < header - 4:
        return None
    length = int.from_bytes(data[at + 2 : at + header - 4])
    return header + length if length <= longest else _ALL


def shake_hands(
    request: Request, transport: asyncio.Transport, subprotocol: str | None, limits: Limits, batch: WriteBatch
) -> ServerProtocol:
    """Answer the opening handshake; an error if the request is not one."""
    if request.version == "1.0":
        raise BadInput("A WebSocket handshake needs HTTP/1.1.")
    protocol = ServerProtocol(
        select_subprotocol=lambda _, offered: next((each for each in offered if each == subprotocol), None),
        max_size=limits.max_frame,
    )
    fields = b"".join([b"%b: %b\r\n" % field for field in request.raw_headers])
    protocol.receive_data(b"GET / HTTP/1.1\r\n%b\r\n" % fields)
    events = protocol.events_received()
    if not events or not isinstance(events[0], HandshakeRequest):
        raise HeadersTooLarge("The headers of this WebSocket request cannot be read.")
    response = protocol.accept(events[0])
    if response.status_code != HTTPStatus.SWITCHING_PROTOCOLS:
        raise BadInput(f"This is not a WebSocket handshake: {protocol.handshake_exc}.")
    protocol.send_response(response)
    for data in protocol.data_to_send():
        batch.write(transport, data)
    return protocol
