"""One request and what is sent before its answer.

Owns the choice between plain JSON and an event stream: the first notification turns the answer into a stream. A quick
call touches none of that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

import msgspec

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


class HttpExchange(msgspec.Struct, eq=False):
    """One POST and its response."""

    request: Request
    new_stream: Callable[[], EventStream]
    headers: Sequence[Header] = ()
    prime: bool = False
    via: str = "mcp"
    stream: EventStream | None = None
    writer: asyncio.Task[None] | None = None

    @property
    def resumable(self) -> bool:
        return self.stream is not None and self.stream.resumable

    def on_disconnect(self, callback: Callable[[], None]) -> None:
        self.request.on_disconnect.append(callback)

    def notify(self, message: bytes) -> None:
        if self.request.disconnected and not self.resumable:
            return
        if self.stream is None:
            self.stream = self.new_stream()
            self.request.on_disconnect.append(self.stream.wake)
            self.writer = asyncio.ensure_future(self._write(self.stream))
        self.stream.append(message)

    async def _write(self, stream: EventStream) -> None:
        writer = self.request.start_stream([*HEADERS, *self.headers])
        await stream.deliver(writer, prime=self.prime)

    async def finish(self, answers: Sequence[bytes], status: int = 200) -> Response | None:
        """The response, or None once the answers have been streamed."""
        if self.stream is None or self.writer is None:
            body = answers[0] if len(answers) == 1 else b"[%b]" % b",".join(answers)
            return Response(status, body, (JSON, *self.headers))
        for answer in answers:
            self.stream.append(answer)
        self.stream.finish()
        with suppress(ClientDisconnected):  # a resumable stream keeps the answer for the client's next connection
            await self.writer
        return None
