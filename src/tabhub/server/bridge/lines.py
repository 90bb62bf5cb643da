"""Lines over a stream socket: whole lines in, bounded; bytes out, and a reader that does not keep up is disconnected.

Owns the bytes of one connection. Knows nothing of the content of lines.
"""

from __future__ import annotations

import asyncio
from typing import Protocol, cast

_SHOWN = 400


class Reader(Protocol):
    """Who the lines are for."""

    def opened(self, lines: Lines) -> None:
        """The connection is open."""
        ...

    def line(self, line: bytes) -> None:
        """A whole line has arrived, without its line break."""
        ...

    def too_long(self, beginning: bytes) -> None:
        """A line that was too long has been dropped; this is its beginning."""
        ...

    def lost(self, reason: str) -> None:
        """The connection is closed."""
        ...


class Lines(asyncio.Protocol):
    """One connection."""

    def __init__(self, reader: Reader, *, longest: int, queue: int) -> None:
        self._reader = reader
        self._longest = longest
        self._queue = queue
        self._pending = bytearray()
        self._dropping = False
        self._cut: str | None = None
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self._reader.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        self._pending.clear()
        self._reader.lost(self._cut or (str(exc) if exc is not None else "it was closed"))

    def data_received(self, data: bytes) -> None:
        *whole, rest = data.split(b"\n")
        for part in whole:
            if self._dropping:
                self._dropping = False
                continue
            line = bytes(self._pending + part) if self._pending else part
            self._pending.clear()
            if self.transport is None or self.transport.is_closing():
                return
            if len(line) > self._longest:
                self._reader.too_long(line[:_SHOWN])
            else:
                self._reader.line(line)
        if not self._dropping:
            self._pending += rest
            if len(self._pending) > self._longest:
                beginning = bytes(self._pending[:_SHOWN])
                self._pending.clear()
                self._dropping = True
                self._reader.too_long(beginning)

    def write(self, data: bytes) -> None:
        """Send; a reader that lets too much pile up is disconnected."""
        transport = self.transport
        if transport is None or transport.is_closing():
            return
        transport.write(data)
        if transport.get_write_buffer_size() > self._queue:
            self._cut = "it does not read what it is sent"
            transport.abort()

    def close(self) -> None:
        """Close the connection once everything is written."""
        if self.transport is not None:
            self.transport.close()
