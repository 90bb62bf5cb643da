"""The debugging pipe to a browser we started: JSON messages, each ended by a zero byte.

Owns the framing and the matching of replies. It is used for what only the pipe can do (load the extension, and end
the browser by closing); everything about tabs goes through the extension.
"""

from __future__ import annotations

import asyncio
from typing import Any

import orjson

from tabhub.errors import PipeClosedError, PipeRefusedError


class DebuggingPipe:
    """One side of the pipe. Reading starts at once, so that the browser never waits for us."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._next_id = 0
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._closed = False
        self.reading = asyncio.create_task(self._read(), name="debugging-pipe")
        """Ends when the browser has closed its end."""

    async def request(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send one command and return its result; PipeRefusedError or PipeClosedError otherwise."""
        # The writer closes before the reader sees the end when the browser dies at once; uvloop then refuses to write.
        if self._closed or self._writer.is_closing():
            raise PipeClosedError(f"The pipe was closed before {method} was sent.")
        self._next_id += 1
        number = self._next_id
        reply: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = reply
        try:
            self._writer.write(orjson.dumps({"id": number, "method": method, "params": params or {}}) + b"\0")
            answer = await reply
        finally:
            self._waiting.pop(number, None)
        if "error" in answer:
            raise PipeRefusedError(f"{method}: {answer['error'].get('message', 'refused')}")
        result: dict[str, Any] = answer.get("result", {})
        return result

    def close(self) -> None:
        """Close our end, which tells the browser to end."""
        self._writer.close()

    async def _read(self) -> None:
        rest = b""
        try:
            while chunk := await self._reader.read(65536):
                *messages, rest = (rest + chunk).split(b"\0")
                for message in messages:
                    self._take(orjson.loads(message))
        except (OSError, orjson.JSONDecodeError) as error:
            self._end(f"The debugging pipe broke: {error}")
        finally:
            self._end("The browser closed the debugging pipe.")

    def _take(self, message: dict[str, Any]) -> None:
        reply = self._waiting.get(message.get("id", 0))
        if reply is not None and not reply.done():
            reply.set_result(message)

    def _end(self, reason: str) -> None:
        self._closed = True
        for reply in self._waiting.values():
            if not reply.done():
                reply.set_exception(PipeClosedError(reason))
