"""The HTTP client for asyncio: every form of response, reused connections, bounds and streamed bodies."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tabhub.client_errors import HttpError
from tabhub.net.async_http import Bounds, ConnectionPool, _idle_seconds, request
from tests.harness.waiting import until

REQUEST = b"POST /mcp HTTP/1.1\r\nhost: here\r\ncontent-length: 2\r\n\r\n{}"


class Received:
    """Collects a response (ResponseHandler)."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.data = b""
        self.end: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def on_head(self, status: int, headers: dict[str, str]) -> None:
        self.status, self.headers = status, headers

    def on_body(self, chunk: bytes) -> None:
        self.data += chunk

    def on_end(self) -> None:
        self.end.set_result("end")

    def on_error(self, reason: str) -> None:
        self.end.set_result(reason)


class Server:
    """Answers every request with the same bytes, optionally one at a time, and counts connections."""

    def __init__(self, response: bytes, *, close: bool = False, slowly: bool = False) -> None:
        self.response = response
        self.close = close
        self.slowly = slowly
        self.connections = 0
        self.port = 0

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

    async def ask(self, pool: ConnectionPool, *, secure: bool = False) -> Received:
        received = Received()
        connection = await pool.acquire("localhost", self.port, secure=secure)
        assert connection is not None
        connection.send(REQUEST, received)
        async with asyncio.timeout(30):
            await received.end
        return received


async def loopback(_host: str, _port: int) -> list[str]:
    return ["127.0.0.1"]


@asynccontextmanager
async def running(
    server: Server, context: ssl.SSLContext | None = None, trusted: ssl.SSLContext | None = None
) -> AsyncIterator[ConnectionPool]:
    pool = ConnectionPool(loopback, trusted or ssl.create_default_context())
    async with await asyncio.start_server(server.serve, "127.0.0.1", 0, ssl=context) as listener:
        server.port = listener.sockets[0].getsockname()[1]
        yield pool
        pool.close()
        await until(lambda: not pool._all)


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
async def test_every_form_of_response_is_parsed_and_connections_are_reused(
    response: bytes, close: bool, slowly: bool
) -> None:
    server = Server(response, close=close, slowly=slowly)
    async with running(server) as pool:
        for _ in range(3):
            got = await server.ask(pool)
            assert (got.status, got.headers["x-one"], got.data, got.end.result()) == (200, "1", b"hello", "end")
        assert server.connections == (3 if close else 1)


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
    async with running(server) as pool:
        assert reason in (await server.ask(pool)).end.result()


async def test_unrequested_bytes_close_the_connection() -> None:
    response = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nwrong"
    server = Server(response)
    async with running(server) as pool:
        for _ in range(2):
            assert (await server.ask(pool)).data == b"hello"


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("", 30.0), ("timeout=5", 4.0), ("timeout=5, max=100", 4.0), ("max=3, Timeout=2", 1.0), ("timeout=900", 30.0),
     ("timeout=0", 0.0), ("timeout=soon", 30.0)],
)  # fmt: skip
def test_an_idle_connection_is_dropped_before_the_server_closes_it(header: str, seconds: float) -> None:
    assert _idle_seconds(header) == seconds


async def test_a_certificate_is_verified_against_the_host_name_not_the_address(tmp_path: Path) -> None:
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -keyout k -out c"
    for name in ("localhost", "elsewhere.example"):
        subject = ["-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}"]
        made = await asyncio.to_thread(
            subprocess.run, [*command.split(), *subject], cwd=tmp_path, capture_output=True, check=False
        )
        assert made.returncode == 0, made.stderr
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tmp_path / "c", tmp_path / "k")
        trusted = ssl.create_default_context(cafile=str(tmp_path / "c"))
        server = Server(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello")
        async with running(server, context, trusted) as pool:
            if name == "localhost":
                assert (await server.ask(pool, secure=True)).data == b"hello"
            else:
                with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
                    await server.ask(pool, secure=True)


async def fetch(server: Server, bounds: Bounds | None = None, one: str = "1") -> bytes:
    async with request("GET", f"http://127.0.0.1:{server.port}/a?b=c", {"X-One": one}, None, bounds) as response:
        assert response.status == 200
        return await response.body()


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
