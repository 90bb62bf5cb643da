"""The extension's socket without detours: frames go straight from the wire to the link and back.

Owns sending and receiving on an accepted WebSocket without a queue and a task switch for every frame. Whole text
frames, which is nearly all there is, are read and written here by hand; handshake, control frames, fragments, whatever
breaks the rules, and closing stay uvicorn's and websockets', which get such frames one by one and whole. Also owns
backpressure: a reader that lets too much pile up is cut.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from tabhub.http.responses import Send

try:
    from websockets.speedups import apply_mask
except ImportError:  # websockets was built without its C part
    from websockets.utils import apply_mask

EXTENSION = "tabhub.socket"
"""Where the app finds the socket in an ASGI scope's extensions."""
_TEXT = 0x81
_LAST_DATA_OPCODE = 2
_LARGE = 4096
_EMPTY_PONG = b"\x8a\x80\x00\x00\x00\x00"


def text_frame(data: bytes) -> bytes:
    """A whole, unmasked text frame."""
    size = len(data)
    if size < 126:
        return bytes((_TEXT, size)) + data
    if size < 65536:
        return b"\x81\x7e" + size.to_bytes(2, "big") + data
    return b"\x81\x7f" + size.to_bytes(8, "big") + data


class _Size(NamedTuple):
    """How long a frame is, and how much of it comes before its payload."""

    head: int
    whole: int


def _frame_size(data: bytes, at: int, end: int) -> _Size | None:
    """The size of the masked frame that begins here, as far as it can be told; None if it is not masked."""
    if end - at < 2:
        return _Size(2, 2)
    size = data[at + 1]
    if not size & 0x80:
        return None
    size &= 0x7F
    if size < 126:
        return _Size(6, 6 + size)
    head = 8 if size == 126 else 14
    if end - at < head:
        return _Size(head, head)
    return _Size(head, head + int.from_bytes(data[at + 2 : at + head - 4], "big"))


class LinkProtocol(WebSocketsSansIOProtocol):
    """uvicorn's WebSocket, which the app can take over once it has accepted it."""

    sink: Callable[[bytes], None] | None = None
    _bound = 0
    _longest = 0
    _overrun: Callable[[], None] | None = None
    _turn = False
    """Whether a frame was sent in this turn of the loop: then more wait for its end, and leave in one write."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._held: list[bytes] = []
        self._begun = bytearray()
        """The frame that has arrived in part."""
        self._missing = 0
        """Bytes without which it cannot be whole."""
        self._in_fragments = False
        self._joined = bytearray()
        """The message of which fragments have arrived."""

    def handle_connect(self, event: Any) -> None:
        """Let the app find this object."""
        origins = event.headers.get_all("Origin")
        if len(origins) > 1:  # one refusal for all: the guard's, not the handshake's
            del event.headers["Origin"]
            event.headers["origin"] = ", ".join(origins)
        super().handle_connect(event)
        if hasattr(self, "scope"):
            self.scope["extensions"][EXTENSION] = self  # type: ignore[assignment]

    async def send(self, message: Any) -> None:
        """As uvicorn's, which takes a connection that was answered with an HTTP status for one never answered."""
        await super().send(message)
        if message["type"] == "websocket.http.response.body":
            self.handshake_complete = True

    def take_over(self, sink: Callable[[bytes], None], bound: int, overrun: Callable[[], None]) -> None:
        """From here on text frames go to `sink`; more than `bound` bytes unread by the peer call `overrun`."""
        self.sink = sink
        self._bound = bound
        self._overrun = overrun
        self._longest = self.config.ws_max_size

    def send_text(self, data: bytes) -> None:
        """Send one text message; after the end there is nobody to send to."""
        if self.close_sent or self.disconnected:
            return
        if self._turn:
            self._held.append(text_frame(data))
            return
        self._turn = True
        self.loop.call_soon(self._flush)
        self._write(text_frame(data))

    def _flush(self) -> None:
        """The turn of the loop is over: send what was held in it."""
        self._turn = False
        if self._held:
            held, self._held = self._held, []
            if not (self.close_sent or self.disconnected):
                self._write(b"".join(held))

    def _write(self, frames: bytes) -> None:
        self.transport.write(frames)
        if not self.writable.is_set() and self._piled_up():
            overrun, self._overrun = self._overrun, None
            if overrun is not None:
                overrun()
                self.transport.abort()

    def _piled_up(self) -> bool:
        """Whether the peer, which does not read at the moment, has let too much wait."""
        return self.transport.get_write_buffer_size() > self._bound

    def send_close(self, code: int, reason: str) -> None:
        """Close with a code; the peer has a moment to answer."""
        if self.close_sent or self.disconnected or self.transport.is_closing():
            return
        self._flush()
        self.conn.send_close(code, reason.encode()[:120].decode("utf-8", "ignore"))
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = True
        # Not `close`: that would wait for a peer that takes nothing any more to take the rest.
        self.close_timer = self.loop.call_later(self.close_timeout, self.transport.abort)

    def data_received(self, data: bytes) -> None:
        """Take bytes: whole text messages go to the sink, everything else the usual way."""
        if self.sink is None:
            super().data_received(data)
            return
        if self._begun:
            self._begun += data
            self._missing -= len(data)
            if self._missing > 0:
                return
            data = bytes(self._begun)
            self._begun.clear()
        at, end = 0, len(data)
        while at < end:
            size = _frame_size(data, at, end)
            if size is None or size.whole - size.head > self._longest:
                super().data_received(data[at:])  # not a client's frame, or too large: closed with the right code
                return
            stop = at + size.whole
            if stop > end:
                self._begun += data[at:]
                self._missing = stop - end
                return
            if data[at] == _TEXT and not self._in_fragments:
                start = at + size.head
                if not self.close_sent:
                    self.sink(apply_mask(data[start:stop], data[start - 4 : start]))
            else:
                self._note_fragments(data[at])
                super().data_received(data[at:stop])
                if self.transport.is_closing():
                    return  # it said good-bye, or broke the rules: what it sent behind that counts for nothing
                if size.whole > _LARGE:  # the parser holds its last frame until the next: let that be a small one
                    self.conn.receive_data(_EMPTY_PONG)
                    self.conn.events_received()
            at = stop

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go of what never became whole: the objects around it are not gone before they are collected."""
        super().connection_lost(exc)
        self._let_go()

    def _let_go(self) -> None:
        self._begun.clear()
        self._joined.clear()
        self._held.clear()
        self.frames = []

    def _note_fragments(self, first: int) -> None:
        """Between the first and the last frame of a message in fragments, all frames go the usual way."""
        opcode, final = first & 0x0F, first & 0x80
        if opcode <= _LAST_DATA_OPCODE:
            self._in_fragments = not final

    def handle_ping(self) -> None:
        """Answer; who asks and does not read the answers lets them pile up as anything else."""
        self._write(b"".join(self.conn.data_to_send()))

    def handle_cont(self, event: Any) -> None:
        """Put fragments together as they come: kept one by one, those of no size could be without number."""
        if not self._joined:
            self._joined += self.frames[0]
            self.frames = [b""]
        self._joined += event.data
        if event.fin:
            self.frames = [bytes(self._joined)]
            self._joined = bytearray()
            self.send_receive_event_to_app()

    def send_receive_event_to_app(self) -> None:
        """A whole message has arrived."""
        sink = self.sink
        if sink is None or self.curr_msg_data_type != "text":
            super().send_receive_event_to_app()
            return
        data = self.frames[0] if len(self.frames) == 1 else b"".join(self.frames)
        self.frames = []
        if self.close_sent:
            return
        sink(bytes(data))


async def refuse(send: Send, status: int, body: bytes) -> None:
    """Answer a WebSocket request with an HTTP status instead."""
    await send(
        {
            "type": "websocket.http.response.start",
            "status": status,
            "headers": [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"%d" % len(body))],
        }
    )
    await send({"type": "websocket.http.response.body", "body": body})
