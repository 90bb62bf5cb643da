"""The hub's own connections to external servers: answers in every form HTTP/1.1 has, and connections used again."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tabhub.upstream.transport.http1 import Connections, _patience
from tests.harness.waiting import until

REQUEST = b"POST /mcp HTTP/1.1\r\nhost: here\r\ncontent-length: 2\r\n\r\n{}"


class Heard:
    """What came as an answer (h1.Answer)."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.data = b""
        self.end: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def head(self, status: int, headers: dict[str, str]) -> None:
        self.status, self.headers = status, headers

    def body(self, chunk: bytes) -> None:
        self.data += chunk

    def done(self) -> None:
        self.end.set_result("done")

    def broke(self, why: str) -> None:
        self.end.set_result(why)


class Site:
    """Answers every request with the same bytes, one at a time if asked to, and counts its visitors."""

    def __init__(self, answer: bytes, *, close: bool = False, slowly: bool = False) -> None:
        self.answer = answer
        self.close = close
        self.slowly = slowly
        self.visitors = 0
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.visitors += 1
        while await reader.read(len(REQUEST)):
            pieces = [bytes([each]) for each in self.answer] if self.slowly else [self.answer]
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0)
            if self.close:
                break
        writer.close()

    async def asked(self, connections: Connections, *, secure: bool = False) -> Heard:
        heard = Heard()
        connection = await connections.take("localhost", self.port, secure=secure)
        assert connection is not None
        connection.send(REQUEST, heard)
        async with asyncio.timeout(30):
            await heard.end
        return heard


async def here(_host: str, _port: int) -> list[str]:
    return ["127.0.0.1"]


@asynccontextmanager
async def standing(site: Site, context: ssl.SSLContext | None = None) -> AsyncIterator[Connections]:
    connections = Connections(here, ssl.create_default_context())
    async with await asyncio.start_server(site.serve, "127.0.0.1", 0, ssl=context) as server:
        site.port = server.sockets[0].getsockname()[1]
        yield connections
        connections.close()
        await until(lambda: not connections._all)


@pytest.mark.parametrize("slowly", [False, True])
@pytest.mark.parametrize(
    ("answer", "close"),
    [
        (b"HTTP/1.1 200 OK\r\nX-One: 1\r\ncontent-length: 5\r\n\r\nhello", False),
        (b"HTTP/1.1 200 OK\r\nx-one: 1\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n", False),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nx-one: 1\r\ncontent-length: 5\r\n\r\nhello", False),
        (b"HTTP/1.1 103 Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\nx-one: 1\r\ncontent-length: 5\r\n\r\nhello", False),
        (b"HTTP/1.1 200 OK\r\nx-one: 1\r\nconnection: close\r\ncontent-length: 5\r\n\r\nhello", True),
        (b"HTTP/1.0 200 OK\r\nx-one: 1\r\n\r\nhello", True),
    ],
)  # fmt: skip
async def test_an_answer_is_the_same_in_every_form(answer: bytes, close: bool, slowly: bool) -> None:
    site = Site(answer, close=close, slowly=slowly)
    async with standing(site) as connections:
        for _ in range(3):
            heard = await site.asked(connections)
            assert (heard.status, heard.headers["x-one"], heard.data, heard.end.result()) == (
                200,
                "1",
                b"hello",
                "done",
            )
        assert site.visitors == (3 if close else 1)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"", "it closed the connection"),
        (b"HTTP/1.1 200 OK\r\ncontent-len", "it closed the connection"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nhello", "it closed the connection"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n", "it closed the connection"),
        (b"220 mail.example ESMTP\r\n", "in no HTTP"),
        (b"HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n", "in no HTTP"),
        (b"HTTP/1.1 200 OK\r\nx: " + b"y" * 70_000, "larger than 65536 bytes"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", "in no HTTP"),
    ],
)  # fmt: skip
async def test_what_is_no_answer_is_told_as_such(answer: bytes, why: str) -> None:
    site = Site(answer, close=True)
    async with standing(site) as connections:
        assert why in (await site.asked(connections)).end.result()


async def test_bytes_nobody_asked_for_end_the_connection() -> None:
    site = Site(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nwrong")
    async with standing(site) as connections:
        for _ in range(2):
            assert (await site.asked(connections)).data == b"hello"


@pytest.mark.parametrize(
    ("told", "seconds"),
    [("", 30.0), ("timeout=5", 4.0), ("timeout=5, max=100", 4.0), ("max=3, Timeout=2", 1.0), ("timeout=900", 30.0),
     ("timeout=0", 0.0), ("timeout=soon", 30.0)],
)  # fmt: skip
def test_a_connection_is_left_before_the_server_ends_it(told: str, seconds: float) -> None:
    assert _patience(told) == seconds


async def test_a_certificate_is_held_against_the_name_not_the_address(tmp_path: Path) -> None:
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -keyout k -out c"
    for name in ("localhost", "elsewhere.example"):
        subject = ["-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}"]
        made = await asyncio.to_thread(
            subprocess.run, [*command.split(), *subject], cwd=tmp_path, capture_output=True, check=False
        )
        assert made.returncode == 0, made.stderr
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tmp_path / "c", tmp_path / "k")
        site = Site(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello")
        async with standing(site, context) as connections:
            connections._context = ssl.create_default_context(cafile=str(tmp_path / "c"))
            if name == "localhost":
                assert (await site.asked(connections, secure=True)).data == b"hello"
            else:
                with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
                    await site.asked(connections, secure=True)
