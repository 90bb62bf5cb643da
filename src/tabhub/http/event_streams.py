"""Event streams: an ordered run of messages, one reader at a time, resumable by event id.

Owns buffering, replay and disconnecting a reader that does not keep up. Knows nothing of the content of messages.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence

from tabhub.http.messages import Header, Request, ResponseStream
from tabhub.limits import Limits
from tabhub.wire import sse

RETRY_MS = 1000
HEADERS: list[Header] = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
]


class EventStream:
    """Messages on their way to one agent."""

    def __init__(self, stream_id: str, limits: Limits, *, resumable: bool) -> None:
        self.id = stream_id
        self.resumable = resumable
        self.done = False
        self.overrun = False
        self.cancelled = False
        """Whether its request was cancelled, so that it ends without an answer."""
        self._limits = limits
        self._events: deque[tuple[int, bytes]] = deque()
        self._bytes = 0
        self._seq = 0
        self._delivered = 0
        self._reader = 0
        self._reading: ResponseStream | None = None
        """The current reader."""
        self._wake = asyncio.Event()

    def append(self, data: bytes) -> None:
        if self.done:
            return
        self._seq += 1
        self._events.append((self._seq, data))
        self._bytes += len(data)
        self._trim()
        self._wake.set()

    def _trim(self) -> None:
        """Drop messages beyond the limits; if one is unread, the stream ends and its slow reader is disconnected."""
        # The newest does not count: one large answer does not make its reader slow.
        older = self._bytes - len(self._events[-1][1])
        while len(self._events) > 1 and (
            len(self._events) > self._limits.stream_events or older > self._limits.stream_bytes
        ):
            seq, data = self._events[0]
            if seq > self._delivered:
                self.overrun = self.done = True
                if self._reading is not None:
                    self._reading.abort()
                return
            self._events.popleft()
            self._bytes -= len(data)
            older -= len(data)

    def finish(self) -> None:
        self.done = True
        self._wake.set()

    def wake(self) -> None:
        """Have the reader check whether it is still connected."""
        self._wake.set()

    def knows(self, seq: int) -> bool:
        """Whether everything after `seq` is still here."""
        return not self._events or self._events[0][0] <= seq + 1

    async def deliver(self, writer: ResponseStream, after: int | None = None, *, prime: bool = False) -> None:
        """Write to a reader from event `after` on, until the stream ends or another reader takes over."""
        self._reader += 1
        reader, seen = self._reader, self._delivered if after is None else after
        self._reading = writer
        self._wake.set()
        if prime and self.resumable:
            await writer.write(sse.priming(f"{self.id}.{seen}", RETRY_MS))
        while reader == self._reader and not writer.disconnected:
            for seq, data in list(self._events):
                if seq > seen:
                    event_id = f"{self.id}.{seq}" if self.resumable else None
                    await writer.write(sse.event(data, event_id))
                    if reader != self._reader:
                        break
                    seen = seq
                    self._delivered = max(self._delivered, seq)
            if self.done:
                break
            self._wake.clear()
            if self._seq > seen:
                continue
            try:
                async with asyncio.timeout(self._limits.stream_keepalive):
                    await self._wake.wait()
            except TimeoutError:
                await writer.write(sse.KEEPALIVE)
        if reader == self._reader:
            self._reading = None


async def serve(
    stream: EventStream,
    request: Request,
    headers: Sequence[Header] = (),
    after: int | None = None,
    *,
    prime: bool = False,
) -> None:
    """Answer a request with a stream, until the stream ends or the client disconnects."""
    request.on_disconnect.append(stream.wake)
    await stream.deliver(request.start_stream([*HEADERS, *headers]), after, prime=prime)
