"""The debugging pipe to a browser we started: JSON messages, each ended by a zero byte.

Owns the framing. The pipe is used for what only it can do: loading the extension, and ending the browser by closing it.
Everything about tabs goes through the extension.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import orjson

from tabhub.errors import PipeClosedError, PipeRefusedError


class DebuggingPipe:
    """Our end of the pipe, for one command at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._last_id = 0

    async def request(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send one command and return its result; PipeRefusedError or PipeClosedError otherwise."""
        # The writer closes before the reader sees the end when the browser exits at once; uvloop then refuses to write.
        if self._writer.is_closing():
            raise PipeClosedError(f"The pipe was closed before {method} was sent.")
        self._last_id += 1
        self._writer.write(orjson.dumps({"id": self._last_id, "method": method, "params": params or {}}) + b"\0")
        reply: dict[str, Any] = {}
        try:
            while reply.get("id") != self._last_id:
                reply = orjson.loads((await self._reader.readuntil(b"\0"))[:-1])
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, orjson.JSONDecodeError) as error:
            raise PipeClosedError(f"The browser closed the debugging pipe: {error}") from None
        if "error" in reply:
            raise PipeRefusedError(f"{method}: {reply['error'].get('message', 'refused')}")
        result: dict[str, Any] = reply.get("result", {})
        return result

    def close(self) -> None:
        """Close our end, which makes the browser exit."""
        self._writer.close()

    async def wait_closed(self) -> None:
        """Read until the browser's end is closed, too."""
        with suppress(OSError):
            await self._reader.read()
