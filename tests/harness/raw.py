"""Hand-made HTTP and WebSocket frames, for data that a well-behaved client does not send."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass

Header = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Answer:
    """A received response."""

    status: int
    headers: dict[str, str]
    body: bytes


def request(method: str, path: str, headers: Iterable[Header] = (), body: bytes = b"", version: str = "1.1") -> bytes:
    """A request as bytes; no header is added."""
    lines = [f"{method} {path} HTTP/{version}", *(f"{name}: {value}" for name, value in headers), "", ""]
    return "\r\n".join(lines).encode("latin-1") + body


def frame(first: int, payload: bytes = b"") -> bytes:
    """A WebSocket frame of a client, masked with zeros. `first` holds the opcode and the FIN bit."""
    size = len(payload)
    if size < 126:
        length = bytes((0x80 | size,))
    elif size < 65536:
        length = b"\xfe" + size.to_bytes(2)
    else:
        length = b"\xff" + size.to_bytes(8)
    return bytes((first,)) + length + b"\0\0\0\0" + payload


class Wire:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def trickle(self, data: bytes) -> None:
        """Send byte by byte, each in its own packet if possible."""
        for at in range(len(data)):
            await self.send(data[at : at + 1])

    async def head(self) -> tuple[int, dict[str, str]]:
        """Status and headers of the next answer."""
        async with asyncio.timeout(30):
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        fields = (line.split(":", 1) for line in head[1:] if line)
        return int(head[0].split(" ")[1]), {name.strip().lower(): value.strip() for name, value in fields}

    async def answer(self) -> Answer:
        """The next answer as a whole."""
        status, headers = await self.head()
        async with asyncio.timeout(30):
            if headers.get("transfer-encoding") == "chunked":
                return Answer(status, headers, await self._chunks())
            return Answer(status, headers, await self.reader.readexactly(int(headers.get("content-length", 0))))

    async def _chunks(self) -> bytes:
        body = b""
        while size := int(await self.reader.readuntil(b"\r\n"), 16):
            body += (await self.reader.readexactly(size + 2))[:-2]
        await self.reader.readexactly(2)
        return body

    async def closed(self) -> bytes:
        """The bytes that arrive until the other side closes the connection."""
        async with asyncio.timeout(30):
            try:
                return await self.reader.read()
            except ConnectionResetError:
                return b""


@asynccontextmanager
async def wire(port: int) -> AsyncIterator[Wire]:
    """Open a connection to a hub."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield Wire(reader, writer)
    finally:
        writer.transport.abort()


async def exchange(port: int, data: bytes) -> Answer:
    """Send these bytes and read one answer."""
    async with wire(port) as connection:
        await connection.send(data)
        return await connection.answer()
