"""WebSocket frames however they are split: the same messages and answers as from the websockets library."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import pairwise
from typing import Any

import uvloop
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from websockets.frames import Frame, Opcode
from websockets.http11 import Request as HandshakeRequest
from websockets.server import ServerProtocol

from tabhub.errors import NotFound, TabhubError
from tabhub.http.messages import Request, Response, Route, error_response
from tabhub.http.protocol import HttpProtocol
from tabhub.http.websocket import WebSocket, WebSocketRoute
from tabhub.http.write_batch import WriteBatch
from tabhub.limits import DEFAULTS
from tests.security.test_http import Ends

LARGEST = 500
HANDSHAKE = (
    b"GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
KEY = b"\x01\x9f\x7e\x80"


def frame(first: int, payload: bytes, *, masked: bool = True, length: int | None = None, wide: int = 0) -> bytes:
    """A frame; `length` is the length it claims, `wide` the number of bytes that encode it."""
    size = len(payload) if length is None else length
    wide = wide or (0 if size < 126 else 2 if size < 65536 else 8)
    mask = 0x80 if masked else 0
    said = bytes((mask | size,)) if not wide else bytes((mask | (126 if wide == 2 else 127),)) + size.to_bytes(wide)
    hidden = bytes(byte ^ KEY[at % 4] for at, byte in enumerate(payload)) if masked else payload
    return bytes((first,)) + said + (KEY if masked else b"") + hidden


class Written(Ends):
    """A transport that records what was written."""

    def __init__(self) -> None:
        super().__init__()
        self.out = b""

    protocol: asyncio.Protocol

    def set_protocol(self, protocol: Any) -> None:
        self.protocol = protocol

    def write(self, data: Any) -> None:
        self.out += b"" if self.closed else bytes(data)

    def writelines(self, list_of_data: Any) -> None:
        for data in list_of_data:
            self.write(data)

    def get_write_buffer_size(self) -> int:
        return 0


class Messages:
    """Records the text messages of a connection."""

    def __init__(self) -> None:
        self.got: list[bytes] = []

    def receive(self, message: bytes) -> None:
        self.got.append(message)

    def receive_binary(self) -> None: ...

    def overflow(self) -> None: ...

    def closed(self, reason: str) -> None: ...


class SocketApp:
    """An application that admits every WebSocket."""

    def __init__(self) -> None:
        self.messages = Messages()

    def route(self, request: Request) -> Route:
        raise NotFound("There are only WebSockets here.")

    def refusal(self, request: Request, error: TabhubError) -> Response:
        return error_response(error)

    def websocket(self, request: Request) -> WebSocketRoute:
        return WebSocketRoute(None, lambda upgrade: WebSocket(upgrade, lambda _: self.messages, 1_000_000))


async def as_the_hub_reads(pieces: list[bytes]) -> tuple[list[bytes], bytes]:
    """The text messages in these bytes, and what is written in reply."""
    app, transport = SocketApp(), Written()
    transport.protocol = HttpProtocol(app, replace(DEFAULTS, max_frame=LARGEST), WriteBatch(), set())
    transport.protocol.connection_made(transport)
    for piece in [HANDSHAKE, *pieces]:
        if not transport.closed:
            transport.protocol.data_received(piece)
        for _ in range(5):
            await asyncio.sleep(0)
    transport.protocol.connection_lost(None)
    return app.messages.got, transport.out.partition(b"\r\n\r\n")[2]


def as_websockets_reads(pieces: list[bytes]) -> tuple[list[bytes], bytes]:
    """The same, read by the library."""
    server = ServerProtocol(max_size=LARGEST)
    server.receive_data(HANDSHAKE)
    (request,) = server.events_received()
    assert isinstance(request, HandshakeRequest)
    server.send_response(server.accept(request))
    server.data_to_send()
    got, out, message, text = list[bytes](), b"", b"", False
    for piece in pieces:
        server.receive_data(piece)
        for event in server.events_received():
            if not isinstance(event, Frame) or event.opcode not in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT):
                continue
            if event.opcode is not Opcode.CONT:
                message, text = b"", event.opcode is Opcode.TEXT
            message += bytes(event.data)
            if event.fin and text:
                got.append(message)
        out += b"".join(server.data_to_send())
    return got, out


PAYLOADS = [b"", b"a", b"\xc3\xbf", b"x" * 125, b"x" * 126, b"x" * LARGEST, b"x" * (LARGEST + 1), b"x" * (LARGEST + 14)]
CLOSES = [b"", b"\x03", b"\x03\xe8", b"\x03\xe8bye", b"\x03\xec", b"\x03\xe8\xff", b"\x00\x01", b"\x0b\xb8"]
payloads = st.sampled_from(PAYLOADS)
frames = st.one_of(
    st.builds(frame, st.sampled_from([0x81, 0x81, 0x01, 0x80, 0x00, 0x82, 0x02]), payloads),
    st.builds(frame, st.sampled_from([0x89, 0x8A, 0x09]), payloads),
    st.builds(frame, st.just(0x88), st.sampled_from(CLOSES)),
    st.builds(frame, st.integers(0, 255), payloads),
    st.builds(frame, st.just(0x81), payloads, wide=st.sampled_from([2, 8])),
    st.builds(frame, st.just(0x81), payloads, masked=st.just(False)),
    st.builds(
        frame, st.just(0x81), st.just(b""), length=st.sampled_from([LARGEST + 1, 1 << 40, 1 << 63]), wide=st.just(8)
    ),
)
BYE = frame(0x88, b"\x03\xe8")


def closes_between_fragments(sent: list[bytes]) -> bool:
    """Whether a close frame comes between fragments: the hub honours it, the library takes it for a violation."""
    fragmented = False
    for each in sent:
        opcode, last = each[0] & 0x0F, bool(each[0] & 0x80)
        if opcode == Opcode.CLOSE and fragmented:
            return True
        if opcode in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT):
            fragmented = not last
    return False


@settings(max_examples=300)
@given(st.lists(frames, min_size=1, max_size=6), st.lists(st.integers(0, 3000), max_size=4))
@example([BYE, frame(0x81, b"behind the good-bye")], [])
@example([frame(0x81, b"x" * (LARGEST + 1))], [])
def test_hub_and_websockets_library_interpret_frames_alike(sent: list[bytes], cuts: list[int]) -> None:
    assume(not closes_between_fragments(sent))
    data = b"".join(sent)
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    pieces = [data[begin:end] for begin, end in pairwise(places)]
    got, out = uvloop.run(as_the_hub_reads(pieces))
    expected, answers = as_websockets_reads(pieces)
    assert got == expected
    assert out == answers
