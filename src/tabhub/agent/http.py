"""HTTP/1.1 as a model's API and the hub speak it: one request, and an answer that is read while it comes.

Owns the connection, its timeouts and bounds, and the reading of chunks and of server-sent events. A task that is
cancelled closes its connection at once. Redirects are not followed: a key goes where the person said. Knows no API.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit

from tabhub.errors import HttpFailed

_MAX_HEAD = 64 * 1024
_CONNECT = 15.0
_CLOSE = 1.0
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait and how much to read."""

    silence: float = 120.0
    most: int = 8 * 1024 * 1024


class Answer:
    """An answer whose head has come."""

    def __init__(self, status: int, headers: Mapping[str, str], reader: asyncio.StreamReader, wait: Patience) -> None:
        self.status = status
        self.headers = headers
        self._reader = reader
        self._wait = wait

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body as it comes."""
        size = 0
        async for piece in self._chunks() if self._chunked else self._counted(self._length):
            size += len(piece)
            if size > self._wait.most:
                raise HttpFailed(f"the answer is larger than {self._wait.most} bytes")
            yield piece

    @property
    def _chunked(self) -> bool:
        return self.headers.get("transfer-encoding", "").lower() == "chunked"

    @property
    def _length(self) -> int | None:
        length = self.headers.get("content-length", "")
        return int(length) if length.isascii() and length.isdigit() else None

    async def body(self) -> bytes:
        """The whole body."""
        return b"".join([piece async for piece in self.pieces()])

    async def events(self) -> AsyncIterator[str]:
        """The data of each server-sent event."""
        decoder = EventDecoder()
        async for piece in self.pieces():
            for data in decoder.feed(piece):
                yield data

    async def _counted(self, left: int | None) -> AsyncIterator[bytes]:
        """So many bytes, or all there are until the connection is closed."""
        while left is None or left > 0:
            piece = await _within(self._wait.silence, self._reader.read(65_536 if left is None else min(65_536, left)))
            if not piece:
                if left is None:
                    return
                raise HttpFailed("the connection was closed in the middle of the answer")
            left = None if left is None else left - len(piece)
            yield piece

    async def _chunks(self) -> AsyncIterator[bytes]:
        while True:
            try:
                size = int((await self._line()).split(b";")[0].strip(), 16)
            except ValueError:
                raise HttpFailed("the answer has a broken chunk") from None
            if size <= 0:
                return
            async for piece in self._counted(size):
                yield piece
            await self._line()

    async def _line(self) -> bytes:
        try:
            return await _within(self._wait.silence, self._reader.readuntil(b"\n"))
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            raise HttpFailed("the connection was closed in the middle of the answer") from None


class EventDecoder:
    """Server-sent events out of bytes, however they are cut; only their data matters here."""

    def __init__(self) -> None:
        self._line = b""
        self._data: list[bytes] = []

    def feed(self, piece: bytes) -> list[str]:
        """The data of the events that are complete."""
        *lines, self._line = (self._line + piece).split(b"\n")
        found = []
        for line in lines:
            field, _, value = line.rstrip(b"\r").partition(b":")
            if field == b"data":
                self._data.append(value.removeprefix(b" "))
            elif not field and not value and self._data:
                found.append(b"\n".join(self._data).decode("utf-8", "replace"))
                self._data = []
        return found


@contextlib.asynccontextmanager
async def exchange(
    method: str, url: str, headers: Mapping[str, str], body: bytes | None, wait: Patience | None = None
) -> AsyncIterator[Answer]:
    """Send a request and give its answer as soon as the head has come; the connection lives as long as the block."""
    wait = wait or Patience()
    place = urlsplit(url)
    secure = place.scheme == "https"
    host, port = place.hostname or "", place.port or (443 if secure else 80)
    tls: dict[str, Any] = {"ssl": ssl.create_default_context(), "server_hostname": host} if secure else {}
    try:
        reader, writer = await _within(_CONNECT, asyncio.open_connection(host, port, limit=_MAX_HEAD, **tls))
    except (OSError, UnicodeError) as error:
        raise HttpFailed(f"{host}:{port} cannot be reached: {_why(error)}") from None
    try:
        target = (place.path or "/") + (f"?{place.query}" if place.query else "")
        lines = [f"{method} {target} HTTP/1.1", f"Host: {place.netloc.rpartition('@')[2]}", "Connection: close"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        if body is not None:
            lines.append(f"Content-Length: {len(body)}")
        writer.write("\r\n".join(lines).encode("latin-1", "replace") + b"\r\n\r\n" + (body or b""))
        await _within(wait.silence, writer.drain())
        status, fields = await _head(reader, wait)
        yield Answer(status, fields, reader, wait)
    except OSError as error:
        raise HttpFailed(f"the connection to {host}:{port} broke: {_why(error)}") from None
    finally:
        writer.close()
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(_CLOSE):
                await writer.wait_closed()


async def _head(reader: asyncio.StreamReader, wait: Patience) -> tuple[int, dict[str, str]]:
    while True:
        try:
            raw = await _within(wait.silence, reader.readuntil(b"\r\n\r\n"))
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            raise HttpFailed("it closed the connection without an answer") from None
        first, *rest = raw.decode("latin-1").split("\r\n")
        words = first.split(" ", 2)
        if len(words) < 2 or not words[0].startswith("HTTP/1.") or not words[1].isdigit():
            raise HttpFailed("what answers does not speak HTTP")
        if int(words[1]) >= 200:
            fields = (line.partition(":") for line in rest if line)
            return int(words[1]), {name.strip().lower(): value.strip() for name, _, value in fields}


async def _within(seconds: float, work: Awaitable[_T]) -> _T:
    try:
        async with asyncio.timeout(seconds):  # wait_for may swallow a cancellation (Python 3.11)
            return await work
    except TimeoutError:
        raise HttpFailed(f"nothing came for {seconds:g} s") from None


def _why(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error)
