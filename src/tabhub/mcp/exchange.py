"""One POST and its answer: plain JSON, or an event stream from the first notification on.

Owns the choice between the two and the watch over a client that leaves. A quick call touches none of the machinery.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from tabhub.http.event_streams import HEADERS, EventStream, gone
from tabhub.http.responses import JSON, Header, Receive, Send, answered, at_once, respond


class Exchange:
    """The answer to one request."""

    via = "mcp"
    """How the request came, for the audit log."""

    __slots__ = (
        "_headers",
        "_new_stream",
        "_prime",
        "_receive",
        "_send",
        "_watcher",
        "_when_left",
        "_writer",
        "left",
        "stream",
    )

    def __init__(
        self,
        receive: Receive,
        send: Send,
        *,
        new_stream: Callable[[], EventStream],
        headers: Sequence[Header] = (),
        prime: bool = False,
    ) -> None:
        self._receive = receive
        self._send = send
        self._new_stream = new_stream
        self._headers = headers
        self._prime = prime
        self._writer: asyncio.Future[None] | None = None
        self._watcher: asyncio.Task[None] | None = None
        self.stream: EventStream | None = None
        self.left = False
        self._when_left: list[Callable[[], None]] = []

    def notify(self, data: bytes) -> None:
        """Send a message before the answer; the first one turns the answer into a stream."""
        if self.left and (self.stream is None or not self.stream.resumable):
            return
        if self.stream is None:
            self.stream = self._new_stream()
            self._writer = asyncio.ensure_future(self._write(self.stream))
        self.stream.append(data)

    async def _write(self, stream: EventStream) -> None:
        await self._send({"type": "http.response.start", "status": 200, "headers": [*HEADERS, *self._headers]})
        await stream.deliver(self._send, prime=self._prime)

    def when_left(self, tell: Callable[[], None]) -> None:
        """Call `tell` once the client is seen to have left; each call of a batch has its own."""
        self._when_left.append(tell)

    def watch(self) -> None:
        """Begin to notice a client that closes the request."""
        if self._watcher is None:
            self._watcher = asyncio.ensure_future(self._watch())

    async def _watch(self) -> None:
        await gone(self._receive)
        self.left = True
        if self._writer is not None:
            self._writer.cancel()
        for tell in self._when_left:
            tell()

    def at_once(self) -> bool:
        """Whether an answer given now leaves with those of this turn, for which lines of the audit log may wait."""
        send = getattr(self, "_send", None)  # an exchange over something else than HTTP has none
        return self.stream is None and not self.left and at_once(send) and self._watcher is None

    def finished(self, data: bytes, status: int = 200) -> bool:
        """Send the answer if that takes no waiting, as nearly always; otherwise `finish` has to be awaited."""
        if self.stream is not None or self.left or self._watcher is not None:
            return False
        if answered(self._send, status, data, (JSON, *self._headers)):
            self._when_left.clear()
            return True
        return False

    async def finish(self, data: bytes, status: int = 200) -> None:
        """Send the answer."""
        try:
            if self.stream is not None and self._writer is not None:
                self.stream.append(data)
                self.stream.finish()
                await asyncio.wait((self._writer,))
                if not self._writer.cancelled():
                    self._writer.result()
            elif not self.left:
                await respond(self._send, status, data, [JSON, *self._headers])
        finally:
            self._when_left.clear()  # what is told knows this exchange: a circle the collector would have to find
            if self._watcher is not None:
                self._watcher.cancel()
