"""One request, its caller, and what is sent before its answer.

Owns the choice between plain JSON and an event stream: the first notification turns the answer into a stream. A call
that sends none never comes here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

import msgspec

from tabhub.calls.protocols import Answers
from tabhub.core.sessions import Session
from tabhub.errors import ClientDisconnected, MissingCapability
from tabhub.http.event_streams import HEADERS, EventStream
from tabhub.http.messages import Header, Request
from tabhub.wire.jsonrpc import encode_notification
from tabhub.wire.mcp import CAPABILITY_OF


class Exchange(Protocol):
    """How a running call reaches the client that made it."""

    via: str
    """How the request came, for the audit log."""
    on_disconnect: list[Callable[[], None]]
    """Called when the client disconnects before it is answered."""

    @property
    def resumable(self) -> bool:
        """Whether the client can read the answer later on another connection."""
        ...

    def notify(self, message: bytes) -> None:
        """Send a message before the answer."""
        ...


class HttpExchange(msgspec.Struct, eq=False):
    """One POST and its response."""

    request: Request
    on_disconnect: list[Callable[[], None]]
    new_stream: Callable[[], EventStream]
    headers: Sequence[Header] = ()
    prime: bool = False
    via: str = "mcp"
    stream: EventStream | None = None
    """Set with the first notification: then the answer goes there too."""
    writer: asyncio.Task[None] | None = None

    @property
    def resumable(self) -> bool:
        return self.stream is not None and self.stream.resumable

    def notify(self, message: bytes) -> None:
        if self.request.disconnected and not self.resumable:
            return
        if self.stream is None:
            self.stream = self.new_stream()
            self.on_disconnect.append(self.stream.wake)
            self.writer = asyncio.ensure_future(self._write(self.stream))
        self.stream.append(message)

    async def _write(self, stream: EventStream) -> None:
        writer = self.request.start_stream([*HEADERS, *self.headers])
        await stream.deliver(writer, prime=self.prime)

    async def finish(self, answers: Sequence[bytes]) -> None:
        """End the stream with the answers."""
        if self.stream is None or self.writer is None:
            return
        for answer in answers:
            self.stream.append(answer)
        self.stream.finish()
        with suppress(ClientDisconnected):  # a resumable stream keeps the answer for the client's next connection
            await self.writer


class McpCaller(msgspec.Struct, eq=False):
    """One call of an MCP client, in either era (calls.protocols.Caller)."""

    exchange: Exchange
    session: Session
    params: Mapping[str, Any]
    via: str
    token: str | int | None
    """The progress token the client gave."""
    capabilities: Mapping[str, Any]
    answers: Answers | None
    structured: bool

    def progress(self, progress: float, total: float | None, message: str | None) -> None:
        if self.token is None:
            return
        params: dict[str, Any] = {"progressToken": self.token, "progress": progress}
        if total is not None:
            params["total"] = total
        if message is not None:
            params["message"] = message
        self.exchange.notify(encode_notification("notifications/progress", params))

    def send_log(self, level: str, logger: str, data: Any) -> None:
        params = {"level": level, "logger": logger, "data": data}
        self.exchange.notify(encode_notification("notifications/message", params))

    def can(self, capability: str) -> bool:
        return isinstance(self.capabilities.get(capability), dict)

    def require(self, tool: str, method: str) -> None:
        """MissingCapability unless the client can answer requests with this method."""
        if not self.can(CAPABILITY_OF[method]):
            raise MissingCapability(tool, CAPABILITY_OF[method])
