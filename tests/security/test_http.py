"""HTTP that two parsers could read differently: requests and their boundaries are unambiguous."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
import pytest
import uvloop
from hypothesis import given, settings
from hypothesis import strategies as st

from tabhub.errors import NotFound, TabhubError
from tabhub.http.messages import Request, Response, Route, error_response
from tabhub.http.protocol import HttpProtocol
from tabhub.http.websocket import WebSocketRoute
from tabhub.http.write_batch import WriteBatch
from tabhub.limits import DEFAULTS
from tests.harness.hub import RunningHub
from tests.harness.raw import Header, exchange, request, wire

BODY = b'{"arguments":{"value":"here"}}'
LENGTH = ("Content-Length", str(len(BODY)))
CHUNKS = b"%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY)
CHUNKED = ("Transfer-Encoding", "chunked")
HTTP2: list[Header] = [("Connection", "Upgrade, HTTP2-Settings"), ("Upgrade", "h2c"), ("HTTP2-Settings", "AAEAAEAA")]


def headers(hub: RunningHub) -> list[Header]:
    return [("Host", f"127.0.0.1:{hub.port}"), *hub.person.bearer.items(), ("Content-Type", "application/json")]


@pytest.mark.parametrize("step", [1, 7, 100_000])
async def test_client_that_offers_an_http2_upgrade_is_answered_over_http1(hub: RunningHub, step: int) -> None:
    path = "/tools/probe_echo/call"
    asking = request("POST", path, [*headers(hub), *HTTP2, LENGTH], BODY)
    in_chunks = request("POST", path, [*headers(hub), *HTTP2, CHUNKED], CHUNKS)
    looking = request("GET", "/health", [*headers(hub), *HTTP2])
    plain = request("POST", path, [*headers(hub), LENGTH], BODY)
    async with wire(hub.port) as line:
        for data in (asking, in_chunks, looking, plain, asking):
            for at in range(0, len(data), step):
                await line.send(data[at : at + step])
            answer = await line.answer()
            assert answer.status == 200
            assert data is looking or b'"value":"here"' in answer.body
        await line.send(asking + looking + in_chunks + plain)
        assert [(await line.answer()).status for _ in range(4)] == [200] * 4


async def test_body_of_an_upgrade_request_is_not_parsed_as_a_request(hub: RunningHub) -> None:
    inner = request("POST", "/reload", [*headers(hub), ("Content-Length", "0")])
    head = request("POST", "/mcp", [*headers(hub), *HTTP2, ("Content-Length", str(len(inner)))])
    async with wire(hub.port) as line:
        await line.send(head)
        await line.send(inner)
        assert (await line.answer()).status == 400
        await line.send(request("GET", "/health", headers(hub)))
        assert b"reloadCount" in (await line.answer()).body
    assert hub.hub.reload.count == 0


async def test_trailer_fields_are_not_headers(hub: RunningHub) -> None:
    trailing = CHUNKS[:-2] + f"Authorization: Bearer {hub.person_key}\r\n\r\n".encode()
    host = ("Host", f"127.0.0.1:{hub.port}")
    async with wire(hub.port) as line:
        await line.send(request("POST", "/tools/probe_echo/call", [host, CHUNKED], trailing))
        assert (await line.answer()).status == 401


async def test_client_that_pipelines_without_reading_is_disconnected(hub: RunningHub) -> None:
    asking = request("GET", "/health", headers(hub))
    async with wire(hub.port) as line:
        await line.send(asking * 20)
        assert [(await line.answer()).status for _ in range(20)] == [200] * 20
    async with wire(hub.port) as line:
        await line.send(request("POST", "/tools/probe_echo/call", [*headers(hub), LENGTH], BODY) + asking * 500)
        answers = await line.closed()
    assert answers.count(b"HTTP/1.1 200") < 500
    assert (await exchange(hub.port, asking)).status == 200


Asked = tuple[str, bytes]


class Ends(asyncio.Transport):
    """A transport that only records whether it was closed."""

    closed = False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return {"sockname": ("127.0.0.1", 9515), "peername": ("127.0.0.1", 1)}.get(name, default)

    def write(self, data: Any) -> None: ...

    def writelines(self, list_of_data: Any) -> None: ...

    def is_closing(self) -> bool:
        return self.closed

    def can_write_eof(self) -> bool:
        return False

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = True

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


class Admitting:
    """An application that admits every request, and records them."""

    def __init__(self) -> None:
        self.seen: list[Asked] = []

    def route(self, request: Request) -> Route:
        return self.serve

    async def serve(self, request: Request) -> Response:
        self.seen.append((request.path, request.body))
        return Response(200)

    def refusal(self, request: Request, error: TabhubError) -> Response:
        return error_response(error)

    def websocket(self, request: Request) -> WebSocketRoute:
        raise NotFound("There is no WebSocket here.")

    async def read(self, *pieces: bytes) -> tuple[list[Asked], bool]:
        """The requests in these bytes, and whether the connection was closed."""
        transport = Ends()
        protocol = HttpProtocol(self, DEFAULTS, WriteBatch(), set())
        protocol.connection_made(transport)
        refused = False
        for piece in pieces:
            if not transport.closed:
                protocol.data_received(piece)
            for _ in range(6):
                await asyncio.sleep(0)
            refused = refused or protocol.refusing
        protocol.connection_lost(None)
        return self.seen, transport.closed or refused


def as_h11_reads(data: bytes) -> tuple[list[Asked], bool]:
    """The requests in these bytes, and whether they are invalid."""
    line, found = h11.Connection(h11.SERVER), list[Asked]()
    line.receive_data(data)
    path, body = "", b""
    try:
        while True:
            event = line.next_event()
            if isinstance(event, h11.Request):
                path, body = event.target.decode("latin-1"), b""
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                found.append((path, body))
                line.send(h11.Response(status_code=200, headers=[("content-length", "0")]))
                line.send(h11.EndOfMessage())
                if line.our_state is h11.MUST_CLOSE:
                    return found, False
                line.start_next_cycle()
            else:
                return found, False
    except h11.RemoteProtocolError:
        return found, True


BODIES = [
    b"",
    b"{}",
    b"\r\n\r\n",
    b"\r\nContent-Length: 5\r\n\r\nabcde",
    b"0\r\n\r\nGET /x HTTP/1.1\r\nHost: a\r\n\r\n",
]
HEADS = [
    b"POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%b",
    b"POST /mcp HTTP/1.1\r\ncontent-length: %d\r\nHost: a\r\n\r\n%b",
    b"POST /y HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nContent-Length: %d\r\nUpgrade: h2c\r\n\r\n%b",
]
ODD = [*(bytes((code,)) for code in b"\r\n\0 \t:50+-,;\x0b\xff"), b"\r\n", b"\r\n\r\n", b"\n\n", b" folded\r\n"]
ODD += [b"Content-Length: 3\r\n", b"content-length: 3\r\n", b"Transfer-Encoding: chunked\r\n", b"Connection: close\r\n"]
ODD += [b"Transfer-Encoding : chunked\r\n", b"Transfer-Encoding: gzip, chunked\r\n", b"Upgrade: h2c\r\n"]


@st.composite
def streams(draw: st.DrawFn) -> tuple[bytes, int]:
    """One to three requests with up to two misplaced elements, and where the bytes are split."""
    whole = [(draw(st.sampled_from(HEADS)), draw(st.sampled_from(BODIES))) for _ in range(draw(st.integers(1, 3)))]
    data = b"".join(head % (len(body), body) for head, body in whole)
    for odd in draw(st.lists(st.sampled_from(ODD), max_size=2)):
        lines = [at + 2 for at in range(len(data)) if data[at : at + 2] == b"\r\n"]
        at = draw(st.sampled_from(lines) | st.integers(0, len(data)))
        data = data[:at] + odd + data[at:]
    return data, draw(st.integers(0, len(data)))


@settings(max_examples=300)
@given(streams())
def test_the_hub_and_another_parser_see_the_same_requests(case: tuple[bytes, int]) -> None:
    data, cut = case
    pieces = [piece for piece in (data[:cut], data[cut:]) if piece]
    requests, ended = uvloop.run(Admitting().read(*pieces))
    found, broken = as_h11_reads(data)
    if broken or ended:  # either may refuse earlier than the other; the guard refuses requests without a host
        shorter = min(len(found), len(requests))
        assert requests[:shorter] == found[:shorter]
    else:
        assert requests == found
