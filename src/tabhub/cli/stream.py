"""HTTP/1.1 to the hub over asyncio streams: one request, its head, then its body as JSON or as server-sent events.

Owns the bytes. It knows neither MCP nor where the hub is.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

CONNECT_TIMEOUT = 3.0
_MAX_HEAD = 64 * 1024
_MAX_BODY = 256 * 1024 * 1024


class Broken(ConnectionError):
    """The connection ended, or what came over it was not HTTP, before the answer was complete."""


@dataclass(frozen=True, slots=True)
class Event:
    """One server-sent event."""

    data: bytes
    id: str | None
    retry: int | None


class Exchange:
    """One request and its answer, on a connection of its own; closing it tells the hub that nobody waits."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.status = 0
        self.headers: dict[str, str] = {}

    @classmethod
    async def open(
        cls, host: str, port: int, *, method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> Exchange:
        """Connect and send; ConnectionError (not Broken) means that nothing was sent."""
        try:
            reader, writer = await asyncio.wait_for(
                asyncio.open_connection(host, port, limit=_MAX_HEAD), CONNECT_TIMEOUT
            )
        except (OSError, TimeoutError) as error:
            raise ConnectionRefusedError(str(error)) from None
        exchange = cls(reader, writer)
        lines = [f"{method} {path} HTTP/1.1", f"Host: {host}:{port}", "Connection: close"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        if body is not None:
            lines.append(f"Content-Length: {len(body)}")
        writer.write("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + (body or b""))
        return exchange

    async def head(self) -> None:
        """Wait for status and headers."""
        try:
            while self.status < 200:
                first = (await self._reader.readline()).split(b" ", 2)
                if len(first) < 2 or not first[0].startswith(b"HTTP/1.") or not first[1].isdigit():
                    raise Broken("the answer is not HTTP")
                self.status = int(first[1])
                self.headers = {}
                while (field := (await self._reader.readline()).rstrip(b"\r\n")) != b"":
                    name, _, value = field.decode("latin-1").partition(":")
                    self.headers[name.strip().lower()] = value.strip()
                    if len(self.headers) > 200:
                        raise Broken("the answer has too many headers")
        except Broken:
            raise
        except (OSError, ValueError) as error:
            raise Broken(str(error)) from None

    @property
    def streaming(self) -> bool:
        """Whether the answer is a stream of events."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower() == "text/event-stream"

    async def body(self) -> bytes:
        """The whole body."""
        data = bytearray()
        async for part in self._parts():
            data += part
            if len(data) > _MAX_BODY:
                raise Broken("the answer is too large")
        return bytes(data)

    async def events(self) -> AsyncIterator[Event]:
        """The events of a stream, as they come; the iterator ends with the stream."""
        buffer = bytearray()
        data: list[bytes] = []
        ident: str | None = None
        retry: int | None = None
        async for part in self._parts():
            buffer += part
            if len(buffer) > _MAX_BODY:
                raise Broken("an event is too large")
            while (end := buffer.find(b"\n")) >= 0:
                row = bytes(buffer[:end]).rstrip(b"\r")
                del buffer[: end + 1]
                if not row:
                    if data or ident is not None or retry is not None:
                        yield Event(b"\n".join(data), ident, retry)
                    data, ident, retry = [], None, None
                    continue
                name, _, value = row.partition(b":")
                value = value.removeprefix(b" ")
                if name == b"data":
                    data.append(value)
                elif name == b"id":
                    ident = value.decode("latin-1")
                elif name == b"retry" and value.isdigit():
                    retry = int(value)

    async def _parts(self) -> AsyncIterator[bytes]:
        try:
            if self.headers.get("transfer-encoding", "").lower() == "chunked":
                while (size := int((await self._reader.readline()).split(b";")[0], 16)) > 0:
                    yield await self._reader.readexactly(size)
                    await self._reader.readline()
                return
            length = self.headers.get("content-length")
            left = int(length) if length is not None else None
            while left is None or left > 0:
                part = await self._reader.read(65536 if left is None else min(left, 65536))
                if not part:
                    if left is not None:
                        raise Broken("the answer was cut off")
                    return
                left = None if left is None else left - len(part)
                yield part
        except Broken:
            raise
        except (OSError, ValueError, asyncio.IncompleteReadError) as error:
            raise Broken(str(error) or "the connection ended") from None

    def close(self) -> None:
        """End the connection at once."""
        self._writer.transport.abort()
