"""One request and what is sent before its answer.

Owns the choice between plain JSON and an event stream: the first notification turns the answer into a stream. A quick
call touches none of that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

from tabhub.errors import ClientDisconnected
from tabhub.http.event_streams import HEADERS, EventStream
from tabhub.http.messages import JSON, Header, Request, Response


class Exchange(Protocol):
    """How a running call reaches the client that made it."""

    via: str
    """How the request came, for the audit log."""

    @property
    def resumable(self) -> bool:
        """Whether the client can read the answer later on another connection."""
        ...

    def notify(self, message: bytes) -> None:
        """Send a message before the answer."""
        ...

    def on_disconnect(self, callback: Callable[[], None]) -> None:
        """Call this when the client disconnects before it is answered."""
        ...


class HttpExchange:
    """One POST and its response."""

    via = "mcp"
    __slots__ = ("_headers", "_new_stream", "_prime", "_request", "_stream", "_writer")

    def __init__(
        self,
        request: Request,
        *,
        new_stream: Callable[[], EventStream],
        headers: Sequence[Header] = (),
        prime: bool = False,
    ) -> None:
        self._request = request
        self._new_stream = new_stream
        self._headers = headers
        self._prime = prime
        self._stream: EventStream | None = None
        self._writer: asyncio.Task[None] | None = None

    @property
    def resumable(self) -> bool:
        return self._stream is not None and self._stream.resumable

    def on_disconnect(self, callback: Callable[[], None]) -> None:
        self._request.on_disconnect.append(callback)

    def notify(self, message: bytes) -> None:
        if self._request.disconnected and not self.resumable:
            return
        if self._stream is None:
            self._stream = self._new_stream()
            self._request.on_disconnect.append(self._stream.wake)
            self._writer = asyncio.ensure_future(self._write(self._stream))
        self._stream.append(message)

    async def _write(self, stream: EventStream) -> None:
        writer = self._request.start_stream([*HEADERS, *self._headers])
        await stream.deliver(writer, prime=self._prime)

    async def finish(self, answers: Sequence[bytes], status: int = 200) -> Response | None:
        """The response, or None once the answers have been streamed."""
        if self._stream is None or self._writer is None:
            body = answers[0] if len(answers) == 1 else b"[%b]" % b",".join(answers)
            return Response(status, body, (JSON, *self._headers))
        for answer in answers:
            self._stream.append(answer)
        self._stream.finish()
        with suppress(ClientDisconnected):  # a resumable stream keeps the answer for the client's next connection
            await self._writer
        return None
