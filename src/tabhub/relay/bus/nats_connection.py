"""One connection to NATS: from its beginning to its end.

Owns the socket. Knows nothing of nodes and users. What is published leaves at once or not at all, in order. A
connection that has ended is not mended: a new one takes its place, so that nothing is sent late.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from typing import TypeVar, cast
from urllib.parse import unquote, urlsplit

from msgspec.msgpack import Decoder

from tabhub.errors import BusConnectFailed, ParseError
from tabhub.limits import MB
from tabhub.wire import nats as wire
from tabhub.wire.bus import decode
from tabhub.wire.nats import Message

log = logging.getLogger("tabhub.relay.bus.interface")

T = TypeVar("T")
Listener = Callable[[Message], None]

_PORT = 4222
_CONNECT = 3.0
_FAREWELL = 2.0
_UNANSWERED = 6
_OWN_SHARE = 16 * MB
"""What may wait beyond the bound: words of the bus itself, without which it cannot go on."""


class NatsConnection(asyncio.Protocol):
    """A connection; `connect` makes one."""

    def __init__(self, most: int) -> None:
        self.lost = asyncio.Event()
        self.largest = MB
        self._most = most
        self._transport: asyncio.Transport
        self._reader = wire.Reader()
        self._listeners: dict[int, Listener] = {}
        self._numbers: dict[str, int] = {}
        self._last = 0
        self._unanswered = 0
        self._out: list[bytes] = []
        self._waits = 0
        self._loop = asyncio.get_running_loop()
        self._info: asyncio.Future[wire.Info] = self._loop.create_future()
        self._pong: asyncio.Future[None] | None = None
        self.trouble = "the connection was closed"

    @property
    def healthy(self) -> bool:
        """Whether it still stands."""
        return not self.lost.is_set()

    def publish(self, subject: str, payload: bytes, reply: str = "") -> bool:
        """Say something of the bus itself. If even that piles up, the connection is of no use any more."""
        done = self._write(wire.publish(subject, payload, reply), self._most + _OWN_SHARE)
        if not done and self.healthy:
            self._end("more waits to be sent than can be kept")
        return done

    def carry(self, subject: str, payload: bytes) -> bool:
        """Send a message of the nodes; False if too much waits already."""
        return self._write(wire.publish(subject, payload), self._most)

    def listen(self, subject: str, listener: Listener) -> None:
        """Hear what is published there from now on."""
        if subject in self._numbers:
            return
        self._last += 1
        self._numbers[subject] = self._last
        self._listeners[self._last] = listener
        self._write(wire.subscribe(subject, self._last), self._most + _OWN_SHARE)

    def unlisten(self, subject: str) -> None:
        """Hear it no more."""
        number = self._numbers.pop(subject, None)
        if number is not None:
            del self._listeners[number]
            self._write(wire.unsubscribe(number), self._most + _OWN_SHARE)

    def tick(self) -> None:
        """See whether the server still answers: to be called twice a second."""
        self._unanswered += 1
        if self._unanswered > _UNANSWERED:
            self._end("the server does not answer")
        else:
            self._write(wire.PING, self._most + _OWN_SHARE)

    async def close(self) -> None:
        """End it, after all that was published has left."""
        if self.healthy:
            try:
                await self._settled(_FAREWELL)
            except (BusConnectFailed, TimeoutError) as error:
                log.warning("the bus did not take the last messages: %s", error)
        self._end("it was closed")

    async def introduce(self, url: str, name: str, token: str | None) -> None:
        """The first words of both sides; nothing secret is said before the connection is as safe as was asked for."""
        parts = urlsplit(url)
        async with asyncio.timeout(_CONNECT):
            info = (await self._info).facts
            wanted = parts.scheme == "tls"
            if wanted and not (info.get("tls_required") or info.get("tls_available")):
                raise BusConnectFailed("the server speaks no TLS, and tls:// asks for it")
            tls = wanted or bool(info.get("tls_required"))
            if tls:
                loop, context = asyncio.get_running_loop(), ssl.create_default_context()
                secured = await loop.start_tls(self._transport, self, context, server_hostname=parts.hostname)
                self._transport = cast("asyncio.Transport", secured)
            user = unquote(parts.username) if parts.username is not None else None
            password = unquote(parts.password) if parts.password is not None else None
            if user is not None and password is None:
                user, token = None, user
            self._write(wire.connect(name, user, password, token if user is None else None, tls), self._most)
            most = info.get("max_payload")
            self.largest = most if isinstance(most, int) and most > 0 else MB
        await self._settled(_CONNECT)

    async def _settled(self, seconds: float) -> None:
        """Wait until the server has taken all that was written."""
        self._pong = asyncio.get_running_loop().create_future()
        self._unanswered = 0
        self._write(wire.PING, self._most + _OWN_SHARE)
        async with asyncio.timeout(seconds):
            await self._pong

    def _write(self, data: bytes, most: int) -> bool:
        if self.lost.is_set() or self._waits + self._transport.get_write_buffer_size() + len(data) > most:
            return False
        if not self._out:
            self._loop.call_soon(self._flush)
        self._out.append(data)
        self._waits += len(data)
        return True

    def _flush(self) -> None:
        """What was written in one turn of the loop leaves as one: the server is woken once, and so is who listens."""
        data, self._waits = b"".join(self._out), 0
        self._out.clear()
        if not self.lost.is_set():
            self._transport.write(data)

    # what the socket brings

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The socket is there."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Bytes of the server."""
        try:
            for event in self._reader.feed(data):
                if type(event) is Message:
                    self._bring(event)
                else:
                    self._take(cast("wire.Info | wire.Refusal | bytes", event))
        except (ParseError, UnicodeDecodeError) as error:
            self._end(str(error))

    def connection_lost(self, exc: Exception | None) -> None:
        """The socket is gone."""
        self._end(str(exc) if exc is not None else self.trouble)

    def _bring(self, message: Message) -> None:
        listener = self._listeners.get(message.number)
        if listener is None:
            return
        try:
            listener(message)
        except Exception:
            log.exception("what came over the bus could not be handled")

    def _take(self, event: wire.Info | wire.Refusal | bytes) -> None:
        if event == wire.PING:
            self._write(wire.PONG, self._most + _OWN_SHARE)
        elif event == wire.PONG:
            self._unanswered = 0
            if self._pong is not None and not self._pong.done():
                self._pong.set_result(None)
        elif isinstance(event, wire.Info):
            if not self._info.done():
                self._info.set_result(event)
        elif isinstance(event, wire.Refusal):
            self._end(event.reason)

    def _end(self, why: str) -> None:
        if self.lost.is_set():
            return
        self.trouble = why
        self.lost.set()
        for waiting in (self._info, self._pong):
            if waiting is not None and not waiting.done():
                waiting.set_exception(BusConnectFailed(why))
                waiting.exception()  # it may be that nobody waits
        self._transport.close()


async def connect(url: str, name: str, *, most: int, token: str | None = None) -> NatsConnection:
    """A new connection; BusConnectFailed says why there is none."""
    link = NatsConnection(most)
    try:
        parts = urlsplit(url)
        async with asyncio.timeout(_CONNECT):
            loop = asyncio.get_running_loop()
            await loop.create_connection(lambda: link, parts.hostname or "127.0.0.1", parts.port or _PORT)
        await link.introduce(url, name, token)
    except (BusConnectFailed, OSError, ValueError, TimeoutError) as error:
        link.lost.set()
        if hasattr(link, "_transport"):
            link._transport.abort()
        raise BusConnectFailed(str(error)[:200] or "it does not answer") from None
    return link


def read(form: Decoder[T], message: Message) -> T | None:
    """What was published; None if it is not what belongs there."""
    try:
        return decode(form, message.payload)
    except ParseError as error:
        log.warning("refused on the bus", extra={"facts": {"subject": message.subject, "reason": error.message}})
        return None


def shown(url: str) -> str:
    """An address without what is secret in it."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}"
