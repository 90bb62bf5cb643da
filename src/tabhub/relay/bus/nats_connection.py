"""One connection to a NATS server.

Owns the socket. Knows nothing of nodes and users. Messages are sent in order, and at once or not at all. A closed
connection is not reopened but replaced by a new one, so that nothing is sent late.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast
from urllib.parse import unquote, urlsplit

from msgspec.msgpack import Decoder

from tabhub.errors import BusConnectFailed, BusRefused, ParseError
from tabhub.limits import MB
from tabhub.wire import nats as wire
from tabhub.wire.nats import Message
from tabhub.wire.nodes import decode

log = logging.getLogger("tabhub.relay.bus.interface")

T = TypeVar("T")
Listener = Callable[[Message], None]

_PORT = 4222
_CONNECT_TIMEOUT = 3.0
_CLOSE_TIMEOUT = 2.0
_UNANSWERED = 6
_RESERVE = 16 * MB
"""Bytes that messages of the bus itself may queue beyond the limit for node messages."""


class NatsConnection(asyncio.Protocol):
    """A connection, created by `connect`."""

    def __init__(self, url: str, max_queue: int) -> None:
        self.url = url
        self.on_info: Callable[[NatsConnection], None] = lambda _: None
        """Called when the server has sent facts about its cluster."""
        self.others: tuple[object, ...] = ()
        """Where the servers of its cluster are, as it says itself."""
        self.leaving = False
        """Whether the server is about to shut down."""
        self.lost = asyncio.Event()
        self.largest = MB
        self._max_queue = max_queue
        self._transport: asyncio.Transport
        self._reader = wire.Reader()
        self._listeners: dict[int, Listener] = {}
        self._subscriptions: dict[str, int] = {}
        self._last = 0
        self._unanswered = 0
        self._out: list[bytes] = []
        self._queued = 0
        self._loop = asyncio.get_running_loop()
        self._info: asyncio.Future[wire.Info] = self._loop.create_future()
        self._pong: asyncio.Future[None] | None = None
        self.close_reason = "the connection was closed"

    @property
    def healthy(self) -> bool:
        return not self.lost.is_set()

    def publish(self, subject: str, payload: bytes, reply: str = "") -> bool:
        """Publish a message of the bus itself. The connection closes if its queue is full even for these."""
        done = self._write(wire.publish(subject, payload, reply), self._max_queue + _RESERVE)
        if not done and self.healthy:
            self._end("the send queue is full")
        return done

    def publish_bounded(self, subject: str, payload: bytes) -> bool:
        """Publish a message between nodes; False if the send queue is full."""
        return self._write(wire.publish(subject, payload), self._max_queue)

    def subscribe(self, subject: str, listener: Listener, queue: str = "") -> None:
        if subject in self._subscriptions:
            return
        self._last += 1
        self._subscriptions[subject] = self._last
        self._listeners[self._last] = listener
        self._write(wire.subscribe(subject, self._last, queue), self._max_queue + _RESERVE)

    def unsubscribe(self, subject: str) -> None:
        number = self._subscriptions.pop(subject, None)
        if number is not None:
            del self._listeners[number]
            self._write(wire.unsubscribe(number), self._max_queue + _RESERVE)

    def tick(self) -> None:
        """Check that the server still answers; to be called twice a second."""
        self._unanswered += 1
        if self._unanswered > _UNANSWERED:
            self._end("the server does not answer")
        else:
            self._write(wire.PING, self._max_queue + _RESERVE)

    async def close(self) -> None:
        """Close after everything published has been sent."""
        if self.healthy:
            try:
                await self._sync(_CLOSE_TIMEOUT)
            except (BusConnectFailed, TimeoutError) as error:
                log.warning("the last messages may not have reached the bus: %s", error)
        self._end("closed by this node")

    async def handshake(self, name: str, token: str | None) -> None:
        """Exchange the opening messages; credentials are sent only after TLS is established, if it is required."""
        parts = urlsplit(self.url)
        async with asyncio.timeout(_CONNECT_TIMEOUT):
            info = (await self._info).facts
            wanted = parts.scheme == "tls"
            if wanted and not (info.get("tls_required") or info.get("tls_available")):
                raise BusRefused("the server does not support TLS, which tls:// requires")
            tls = wanted or bool(info.get("tls_required"))
            if tls:
                loop, context = asyncio.get_running_loop(), ssl.create_default_context()
                secured = await loop.start_tls(self._transport, self, context, server_hostname=parts.hostname)
                self._transport = cast("asyncio.Transport", secured)
            user = unquote(parts.username) if parts.username is not None else None
            password = unquote(parts.password) if parts.password is not None else None
            if user is not None and password is None:
                user, token = None, user
            self._write(wire.connect(name, user, password, token if user is None else None, tls), self._max_queue)
            max_payload = info.get("max_payload")
            self.largest = max_payload if isinstance(max_payload, int) and max_payload > 0 else MB
            if not tls:  # before TLS is established, anyone might have sent them
                self._note_cluster(info)
        await self._sync(_CONNECT_TIMEOUT)

    async def _sync(self, seconds: float) -> None:
        """Wait until the server has processed everything written."""
        self._pong = asyncio.get_running_loop().create_future()
        self._unanswered = 0
        self._write(wire.PING, self._max_queue + _RESERVE)
        async with asyncio.timeout(seconds):
            await self._pong

    def _write(self, data: bytes, limit: int) -> bool:
        if self.lost.is_set() or self._queued + self._transport.get_write_buffer_size() + len(data) > limit:
            return False
        if not self._out:
            self._loop.call_soon(self._flush)
        self._out.append(data)
        self._queued += len(data)
        return True

    def _flush(self) -> None:
        """Send what was written in one loop iteration together: one wakeup for the server and for subscribers."""
        data, self._queued = b"".join(self._out), 0
        self._out.clear()
        if not self.lost.is_set():
            self._transport.write(data)

    # called by the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        try:
            for event in self._reader.feed(data):
                if type(event) is Message:
                    self._deliver(event)
                else:
                    self._handle_control(cast("wire.Info | wire.ServerError | bytes", event))
        except (ParseError, UnicodeDecodeError) as error:
            self._end(str(error))

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(str(exc) if exc is not None else self.close_reason)

    def _deliver(self, message: Message) -> None:
        listener = self._listeners.get(message.subscription)
        if listener is None:
            return
        try:
            listener(message)
        except Exception:
            log.exception("error while handling a message from the bus")

    def _handle_control(self, event: wire.Info | wire.ServerError | bytes) -> None:
        if event == wire.PING:
            self._write(wire.PONG, self._max_queue + _RESERVE)
        elif event == wire.PONG:
            self._unanswered = 0
            if self._pong is not None and not self._pong.done():
                self._pong.set_result(None)
        elif isinstance(event, wire.Info):
            if not self._info.done():
                self._info.set_result(event)
            else:
                self._note_cluster(event.facts)
        elif isinstance(event, wire.ServerError):
            self._end(event.reason, BusRefused if "authorization" in event.reason.lower() else BusConnectFailed)

    def _note_cluster(self, facts: Mapping[str, Any]) -> None:
        others = facts.get("connect_urls")
        self.others = tuple(others) if isinstance(others, list) else ()
        self.leaving = self.leaving or facts.get("ldm") is True
        self.on_info(self)

    def _end(self, reason: str, kind: type[BusConnectFailed] = BusConnectFailed) -> None:
        if self.lost.is_set():
            return
        self.close_reason = reason
        self.lost.set()
        for waiting in (self._info, self._pong):
            if waiting is not None and not waiting.done():
                waiting.set_exception(kind(reason))
                waiting.exception()  # nothing may be awaiting it
        self._transport.close()


async def connect(url: str, name: str, *, max_queue: int, token: str | None = None) -> NatsConnection:
    """Open a connection, or raise BusConnectFailed with the reason."""
    connection = NatsConnection(url, max_queue)
    try:
        parts = urlsplit(url)
        async with asyncio.timeout(_CONNECT_TIMEOUT):
            loop = asyncio.get_running_loop()
            await loop.create_connection(lambda: connection, parts.hostname or "127.0.0.1", parts.port or _PORT)
        await connection.handshake(name, token)
    except (BusConnectFailed, OSError, ValueError, TimeoutError) as error:
        connection.lost.set()
        if hasattr(connection, "_transport"):
            connection._transport.abort()
        refused = isinstance(error, BusRefused | ssl.SSLCertVerificationError)
        raise (BusRefused if refused else BusConnectFailed)(str(error)[:200] or "no answer") from None
    return connection


def read(form: Decoder[T], message: Message) -> T | None:
    """Decode a message; None, and a log entry, if it is malformed."""
    try:
        return decode(form, message.payload)
    except ParseError as error:
        log.warning(
            "malformed message on the bus", extra={"facts": {"subject": message.subject, "reason": error.message}}
        )
        return None


def without_credentials(url: str) -> str:
    """The URL without user and password."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}"
