"""The HTTP client for asyncio: every form of response, bounds and streamed bodies."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tabhub.client_errors import HttpError
from tabhub.net.async_http import Bounds, Connections, request


class Server:
    """Answers every request with the same bytes, optionally one at a time."""

    def __init__(self, response: bytes, *, close: bool = False, slowly: bool = False) -> None:
        self.response = response
        self.close = close
        self.slowly = slowly
        self.port = 0
        self.connections = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        while await reader.read(65536):
            pieces = [bytes([each]) for each in self.response] if self.slowly else [self.response]
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0)
            if self.close:
                break
        writer.close()


@asynccontextmanager
async def running(server: Server, context: ssl.SSLContext | None = None) -> AsyncIterator[None]:
    async with await asyncio.start_server(server.serve, "127.0.0.1", 0, ssl=context) as listener:
        server.port = listener.sockets[0].getsockname()[1]
        yield


async def fetch(
    server: Server, bounds: Bounds | None = None, one: str = "1", origin: str = "http://127.0.0.1"
) -> bytes:
    async with request("GET", f"{origin}:{server.port}/a?b=c", {"X-One": one}, None, bounds) as response:
        assert response.status == 200
        return await response.body()


@pytest.mark.parametrize("slowly", [False, True])
@pytest.mark.parametrize(
    ("response", "close"),
    [
        (b"HTTP/1.1 200 OK\r\nX-One: 1\r\ncontent-length: 5\r\n\r\nhello", False),
        (b"HTTP/1.1 200 OK\r\nx-one: 1\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n", False),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nx-one: 1\r\ncontent-length: 5\r\n\r\nhello", False),
        (b"HTTP/1.1 103 Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\nx-one: 1\r\ncontent-length: 5\r\n\r\nhello", False),
        (b"HTTP/1.1 200 OK\r\nx-one: 1\r\nconnection: close\r\ncontent-length: 5\r\n\r\nhello", True),
        (b"HTTP/1.0 200 OK\r\nx-one: 1\r\n\r\nhello", True),
    ],
)  # fmt: skip
async def test_every_form_of_response_is_parsed(response: bytes, close: bool, slowly: bool) -> None:
    server = Server(response, close=close, slowly=slowly)
    async with running(server), request("POST", f"http://127.0.0.1:{server.port}/", {}, b"{}") as got:
        assert (got.status, got.headers["x-one"], await got.body()) == (200, "1", b"hello")
        assert "link" not in got.headers, "a header of an interim response"


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        (b"", "closed the connection without a response"),
        (b"HTTP/1.1 200 OK\r\ncontent-len", "closed the connection without a response"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nhello", "in the middle of the response"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n", "in the middle of the response"),
        (b"220 mail.example ESMTP\r\n", "not valid HTTP"),
        (b"HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n", "not valid HTTP"),
        (b"HTTP/1.1 200 OK\r\nx: " + b"y" * 70_000, "larger than 65536 bytes"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", "not valid HTTP"),
    ],
)  # fmt: skip
async def test_a_broken_response_is_reported_with_its_reason(response: bytes, reason: str) -> None:
    server = Server(response, close=True)
    async with running(server):
        with pytest.raises(HttpError, match=reason):
            await fetch(server)


async def test_bytes_after_the_response_are_ignored() -> None:
    response = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhelloHTTP/1.1 500 No\r\ncontent-length: 5\r\n\r\nwrong"
    server = Server(response)
    async with running(server):
        assert await fetch(server) == b"hello"


async def test_a_certificate_is_verified_against_the_host_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -keyout k -out c"
    for name in ("localhost", "elsewhere.example"):
        subject = ["-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}"]
        made = await asyncio.to_thread(
            subprocess.run, [*command.split(), *subject], cwd=tmp_path, capture_output=True, check=False
        )
        assert made.returncode == 0, made.stderr
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tmp_path / "c", tmp_path / "k")
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "c"))
        server = Server(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello")
        async with running(server, context):
            if name == "localhost":
                assert await fetch(server, origin="https://localhost") == b"hello"
            else:
                with pytest.raises(HttpError, match="Hostname mismatch"):
                    await fetch(server, origin="https://localhost")


async def test_a_single_request_reads_a_body_of_many_buffers_and_respects_its_bound() -> None:
    body = b"0123456789" * 200_000
    server = Server(b"HTTP/1.1 200 OK\r\n\r\n" + body, close=True)
    async with running(server):
        assert await fetch(server) == body
        with pytest.raises(HttpError, match="larger than 1000 bytes"):
            await fetch(server, Bounds(max_body=1000))


async def test_a_silent_server_is_given_up() -> None:
    server = Server(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhe")
    async with running(server):
        with pytest.raises(HttpError, match=r"no data arrived for 0\.2 s"):
            await fetch(server, Bounds(silence=0.2))


async def test_a_header_with_a_line_break_is_not_sent() -> None:
    server = Server(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
    async with running(server):
        with pytest.raises(HttpError, match="'X-One' contains a line break"):
            await fetch(server, one="1\r\nX-Two: 2")


async def test_an_unreachable_host_is_named() -> None:
    with pytest.raises(HttpError, match=r"127\.0\.0\.1:1 cannot be reached: .*refused"):
        async with request("GET", "http://127.0.0.1:1/", {}):
            pass


async def fetch_twice(server: Server, connections: Connections) -> list[bytes]:
    bodies = []
    for _ in range(2):
        async with connections.request("GET", f"http://name.example:{server.port}/", {}) as response:
            bodies.append(await response.body())
        await asyncio.sleep(0)
    return bodies


async def to_this_machine(_host: str, _port: int) -> list[str]:
    return ["127.0.0.1"]


@pytest.mark.parametrize(
    ("response", "close", "opened"),
    [
        (b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello", False, 1),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", False, 1),
        (b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 5\r\n\r\nhello", False, 2),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\n\r\n", False, 2),
        (b"HTTP/1.1 200 OK\r\n\r\nhello", True, 2),
    ],
)
async def test_a_connection_is_reused_only_after_a_complete_response(response: bytes, close: bool, opened: int) -> None:
    server = Server(response, close=close)
    connections = Connections(resolve=to_this_machine)
    async with running(server):
        assert await fetch_twice(server, connections) == [b"hello", b"hello"]
        assert server.connections == opened
        connections.close()


async def test_the_next_address_is_tried_when_one_cannot_be_reached() -> None:
    async def two(_host: str, _port: int) -> list[str]:
        return ["127.0.0.2", "127.0.0.1"]

    server = Server(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello")
    connections = Connections(resolve=two)
    async with running(server):
        assert await fetch_twice(server, connections) == [b"hello", b"hello"]
        connections.close()


async def test_values_of_a_repeated_header_are_joined() -> None:
    server = Server(b"HTTP/1.1 200 OK\r\nx-one: 1\r\nX-One: 2\r\ncontent-length: 0\r\n\r\n")
    async with running(server), request("GET", f"http://127.0.0.1:{server.port}/", {}) as response:
        assert response.headers["x-one"] == "1, 2"
