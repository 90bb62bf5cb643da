"""Fewer system calls: what is written to a connection within one turn of the event loop leaves as one write.

Owns buffering between the server's protocols and their transports. A write is the costliest thing a quick call does (it
wakes the other process), and a response is two of them, a burst of calls to one browser as many as there are calls.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_ENOUGH = 64 * 1024
"""Bytes that are written at once instead of waiting, so that flow control sees them."""


class Cork:
    """A transport that gathers writes."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._held: list[bytes] = []
        self._size = 0
        self.is_closing = transport.is_closing

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send with the rest of this turn."""
        if not self._held:
            self._loop.call_soon(self.flush)
        self._held.append(data)
        self._size += len(data)
        if self._size > _ENOUGH:
            self.flush()

    def flush(self) -> None:
        """Send what is held."""
        held = self._held
        if held:
            self._held = []
            self._size = 0
            self._transport.write(held[0] if len(held) == 1 else b"".join(held))

    def close(self) -> None:
        """Send what is held, then close."""
        self.flush()
        self._transport.close()


class CorkedHttp(HttpToolsProtocol):
    """uvicorn's HTTP protocol on a corked transport; a WebSocket that grows out of it inherits the cork."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Put the cork in."""
        super().connection_made(Cork(transport, self.loop))  # type: ignore[arg-type]
