"""One connection to NATS: from its beginning to its end, and what is published on it in order.

Owns the client library and the queue in front of it. Knows nothing of nodes and users. A connection that has ended is
not mended: a new one takes its place, and what was queued on the old one is gone, so that nothing is sent late.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from msgspec.msgpack import Decoder
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError
from nats.errors import SlowConsumerError

from tabhub.errors import ParseError
from tabhub.limits import MB
from tabhub.wire.bus import decode

log = logging.getLogger("tabhub.relay.bus")

T = TypeVar("T")
Listener = Callable[[Msg], Awaitable[None]]

_CONNECT = 5.0
_FAREWELL = 2.0
_PING = 1
_PINGS = 2
_OWN_SHARE = 16 * MB
"""What may wait beyond the bound of the queue: words of the bus itself, without which it cannot go on."""
_TROUBLE = (NatsError, OSError, TimeoutError)


class CannotConnect(Exception):
    """Why there is no connection."""


class NatsLink:
    """A connection; `connect` makes one."""

    def __init__(self, client: Client, most: int, overrun: Callable[[str], None]) -> None:
        self.lost = asyncio.Event()
        self._client = client
        self._most = most
        self._overrun = overrun
        self._queue: deque[tuple[str, bytes, str, Listener | None]] = deque()
        self._queued = 0
        self._more = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()
        self._listening: dict[str, Subscription] = {}
        self._pouring: asyncio.Task[None] | None = None

    @property
    def healthy(self) -> bool:
        """Whether it still stands."""
        return self._client.is_connected and not self.lost.is_set()

    @property
    def largest(self) -> int:
        """The largest payload the server takes."""
        return self._client.max_payload

    def publish(self, subject: str, payload: bytes, reply: str = "") -> bool:
        """Put a message of the bus itself. If even those pile up, the connection is of no use any more."""
        done = self._put(subject, payload, reply, None, self._most + _OWN_SHARE)
        if not done:
            self.lost.set()
        return done

    def carry(self, subject: str, payload: bytes) -> bool:
        """Put a message of the nodes; False if too much waits already."""
        return self._put(subject, payload, "", None, self._most)

    def listen(self, subject: str, listener: Listener) -> None:
        """Hear what is published there from now on."""
        self._put(subject, b"", "", listener, self._most + _OWN_SHARE)

    def unlisten(self, subject: str) -> None:
        """Hear it no more."""
        self._put(subject, b"", "", _nobody, self._most + _OWN_SHARE)

    async def close(self, *, in_order: bool) -> None:
        """End it; in order: after all that was put has left."""
        try:
            async with asyncio.timeout(_FAREWELL):
                if in_order and self.healthy:
                    await self._empty.wait()
                    await self._client.flush()
        except _TROUBLE as error:
            log.warning("the bus did not take the last messages: %s", error)
        self.lost.set()
        if self._pouring is not None:
            self._pouring.cancel()
            await asyncio.gather(self._pouring, return_exceptions=True)
        await _end(self._client)

    def _put(self, subject: str, payload: bytes, reply: str, listener: Listener | None, most: int) -> bool:
        if not self.healthy or self._queued + len(payload) > most:
            return False
        self._queue.append((subject, payload, reply, listener))
        self._queued += len(payload)
        self._empty.clear()
        self._more.set()
        return True

    async def _pour(self) -> None:
        """Hand over what was put, in order."""
        client, queue = self._client, self._queue
        try:
            while True:
                while queue:
                    subject, payload, reply, listener = queue[0]
                    if listener is None:
                        await client.publish(subject, payload, reply)
                    elif listener is not _nobody:
                        if subject not in self._listening:
                            self._listening[subject] = await client.subscribe(subject, cb=listener)
                    elif (old := self._listening.pop(subject, None)) is not None:
                        await old.unsubscribe()
                    queue.popleft()
                    self._queued -= len(payload)
                self._empty.set()
                self._more.clear()
                await self._more.wait()
        except _TROUBLE as error:
            log.info("bus_trouble", extra={"facts": {"reason": _said(error)}})
            self.lost.set()

    async def begin(self, listeners: Sequence[tuple[str, Listener]]) -> None:
        """Listen at these subjects; when it returns, the server knows."""
        for subject, listener in listeners:
            self._listening[subject] = await self._client.subscribe(
                subject, cb=listener, pending_bytes_limit=self._most, pending_msgs_limit=0
            )
        await self._client.flush()
        self._pouring = asyncio.get_running_loop().create_task(self._pour())

    async def closed(self) -> None:
        """The client library says that the connection is gone."""
        self.lost.set()

    async def met(self, error: Exception) -> None:
        """The client library met something; what matters of it ends the connection as well."""
        if isinstance(error, SlowConsumerError):
            log.warning("the bus brings more than can be taken", extra={"facts": {"subject": error.subject}})
            self._overrun(error.subject)
        elif isinstance(error, _TROUBLE):
            log.info("bus_trouble", extra={"facts": {"reason": _said(error)}})
        else:
            log.error("what came over the bus could not be handled", exc_info=error)


async def connect(
    servers: Sequence[str],
    name: str,
    listeners: Sequence[tuple[str, Listener]],
    *,
    most: int,
    overrun: Callable[[str], None],
    token: str | None = None,
) -> NatsLink:
    """A new connection that listens at these subjects; CannotConnect says why there is none."""
    client = Client()
    link = NatsLink(client, most, overrun)
    problem: list[Exception] = []

    async def met(error: Exception) -> None:
        if link.healthy:
            await link.met(error)
        else:
            problem.append(error)

    try:
        async with asyncio.timeout(_CONNECT):
            await client.connect(
                list(servers),
                name=name,
                error_cb=met,
                closed_cb=link.closed,
                allow_reconnect=False,
                max_reconnect_attempts=1,
                reconnect_time_wait=0,
                connect_timeout=2,
                ping_interval=_PING,
                max_outstanding_pings=_PINGS,
                no_echo=True,
                skip_subject_validation=True,
                token=token,
            )
            if all(server.startswith("tls://") for server in servers) and not client._server_info.get("tls_required"):
                raise NatsError("the server speaks no TLS, and tls:// asks for it")
            await link.begin(listeners)
    except _TROUBLE as error:
        await _end(client)
        raise CannotConnect(_said(problem[-1] if problem else error)) from None
    return link


def read(form: Decoder[T], message: Msg) -> T | None:
    """What was published; None if it is not what belongs there."""
    try:
        return decode(form, message.data)
    except ParseError as error:
        log.warning("refused on the bus", extra={"facts": {"subject": message.subject, "reason": error.message}})
        return None


def shown(url: str) -> str:
    """An address without what is secret in it."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}"


async def _end(client: Client) -> None:
    try:
        async with asyncio.timeout(_FAREWELL):
            await client.close()
    except _TROUBLE as error:
        log.info("bus_trouble", extra={"facts": {"reason": _said(error)}})


async def _nobody(message: Msg) -> None:
    """In the queue: no longer listen."""


def _said(error: Exception) -> str:
    return str(error)[:200] or type(error).__name__
