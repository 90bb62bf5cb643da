"""The extension's socket without detours: frames go straight from the wire to the link and back.

Owns sending and receiving on an accepted WebSocket without a queue and a task switch for every frame; handshake,
control frames, fragments and closing stay uvicorn's and websockets'. A text frame of a server is its length and its
bytes, so it is written here by hand. Also owns backpressure: a reader that lets too much pile up is cut.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

EXTENSION = "tabhub.socket"
"""Where the app finds the socket in an ASGI scope's extensions."""
_TEXT = 0x81


def text_frame(data: bytes) -> bytes:
    """A whole, unmasked text frame."""
    size = len(data)
    if size < 126:
        return bytes((_TEXT, size)) + data
    if size < 65536:
        return b"\x81\x7e" + size.to_bytes(2, "big") + data
    return b"\x81\x7f" + size.to_bytes(8, "big") + data


class LinkProtocol(WebSocketsSansIOProtocol):
    """uvicorn's WebSocket, which the app can take over once it has accepted it."""

    sink: Callable[[str], None] | None = None
    _bound = 0
    _overrun: Callable[[], None] | None = None

    def handle_connect(self, event: Any) -> None:
        """Let the app find this object."""
        super().handle_connect(event)
        if hasattr(self, "scope"):
            self.scope["extensions"][EXTENSION] = self  # type: ignore[assignment]

    def take_over(self, sink: Callable[[str], None], bound: int, overrun: Callable[[], None]) -> None:
        """From here on text frames go to `sink`; more than `bound` bytes unread by the peer call `overrun`."""
        self.sink = sink
        self._bound = bound
        self._overrun = overrun

    def send_text(self, data: bytes) -> None:
        """Send one text message; after the end there is nobody to send to."""
        if self.close_sent or self.disconnected:
            return
        self.transport.write(text_frame(data))
        if not self.writable.is_set() and self.transport.get_write_buffer_size() > self._bound:
            overrun, self._overrun = self._overrun, None
            if overrun is not None:
                overrun()
                self.transport.abort()

    def send_close(self, code: int, reason: str) -> None:
        """Close with a code; the peer has a moment to answer."""
        if self.close_sent or self.disconnected or self.transport.is_closing():
            return
        self.conn.send_close(code, reason.encode()[:120].decode("utf-8", "ignore"))
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = True
        self.close_timer = self.loop.call_later(self.close_timeout, self.transport.close)

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
        try:
            text = data.decode()
        except UnicodeDecodeError:
            self.conn.send_close(1007)
            self.handle_parser_exception()
            return
        sink(text)
