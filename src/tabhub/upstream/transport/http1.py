"""HTTP/1.1 connections to an external server, kept for the next request: what a call takes instead of a whole client.

Owns sockets and the parsing of answers, by callbacks and without a task. It connects only to the addresses it is given
(upstream.guard has judged them) and knows nothing of what is in a body.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, cast

import httptools

_LARGEST_HEAD = 64 * 1024
_MOST = 100
"""Connections at a time; whoever needs one more has to take another way."""
_MOST_IDLE = 20
_IDLE = 30.0
_CONNECT = 30.0

Addresses = Callable[[str, int], Awaitable[list[str]]]


class Answer(Protocol):
    """Who takes an answer, piece by piece."""

    def head(self, status: int, headers: dict[str, str]) -> None:
        """The head is there; names are in lower case."""
        ...

    def body(self, chunk: bytes) -> None:
        """Some of the body."""
        ...

    def done(self) -> None:
        """The answer is whole."""
        ...

    def broke(self, why: str) -> None:
        """It will not become whole."""
        ...


class Connection(asyncio.Protocol):
    """One connection; it carries one request at a time."""

    def __init__(self, pool: Connections) -> None:
        self._pool = pool
        self._transport: asyncio.Transport | None = None
        self._answer: Answer | None = None
        self._parser: Any = None
        self._headers: dict[str, str] = {}
        self._head_size = 0
        self._whole_head = False
        self._to_the_end = False
        self.idle_until = 0.0

    def send(self, request: bytes, answer: Answer) -> None:
        """Send a request; the answer is told of what comes."""
        self._answer = answer
        self._parser = httptools.HttpResponseParser(self)
        self._begin()
        assert self._transport is not None  # noqa: S101 - it was handed out connected
        self._transport.write(request)

    def _begin(self) -> None:
        self._headers = {}
        self._head_size = 0
        self._whole_head = False
        self._to_the_end = False

    @property
    def open(self) -> bool:
        """Whether a request can be sent."""
        return self._transport is not None and not self._transport.is_closing()

    def close(self) -> None:
        """End it; whoever waits for an answer is told nothing more."""
        self._answer = None
        if self._transport is not None:
            self._transport.abort()

    def pause(self) -> None:
        """Read no more for now."""
        if self.open:
            self._transport.pause_reading()  # type: ignore[union-attr]

    def resume(self) -> None:
        """Read on."""
        if self.open:
            self._transport.resume_reading()  # type: ignore[union-attr]

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Connected."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one without saying so

    def data_received(self, data: bytes) -> None:
        """Something came."""
        if self._answer is None:
            self.close()  # nobody asked
            return
        if not self._whole_head:
            self._head_size += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(f"it answered in no HTTP: {str(error)[:100]}")
        if not self._whole_head and self._head_size > _LARGEST_HEAD:
            self._fail(f"the head of its answer is larger than {_LARGEST_HEAD} bytes")

    def connection_lost(self, exc: Exception | None) -> None:
        """The other side is gone."""
        self._pool.gone(self)
        answer, self._answer = self._answer, None
        if answer is None:
            return
        if self._to_the_end and exc is None:
            answer.done()
        else:
            answer.broke("it closed the connection" if exc is None else f"the connection broke: {exc}")

    def _fail(self, why: str) -> None:
        answer = self._answer
        self.close()
        if answer is not None:
            answer.broke(why)

    # httptools

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header."""
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """The head is whole."""
        status: int = self._parser.get_status_code()
        if status < 200:
            return  # something about the answer, not the answer
        self._whole_head = True
        headers = self._headers
        self._to_the_end = "content-length" not in headers and "transfer-encoding" not in headers
        if self._answer is not None:
            self._answer.head(status, headers)

    def on_body(self, chunk: bytes) -> None:
        """Some of the body."""
        if self._answer is not None:
            self._answer.body(chunk)

    def on_message_complete(self) -> None:
        """The answer is whole."""
        if not self._whole_head:
            self._begin()
            return
        answer, self._answer = self._answer, None
        if self._parser.should_keep_alive() and answer is not None:
            self._pool.keep(self, self._headers.get("keep-alive", ""))
        elif self._transport is not None:
            self._transport.close()
        if answer is not None:
            answer.done()


class Connections:
    """The connections to one server."""

    def __init__(self, addresses: Addresses, context: ssl.SSLContext) -> None:
        self._addresses = addresses
        self._context = context
        self._idle: list[tuple[tuple[bool, str, int], Connection]] = []
        self._all: dict[Connection, tuple[bool, str, int]] = {}

    async def take(self, host: str, port: int, *, secure: bool) -> Connection | None:
        """A connection; None if there are too many. OSError or TabhubError if there is none to be had."""
        place = (secure, host, port)
        now = asyncio.get_running_loop().time()
        while self._idle:
            where, kept = self._idle.pop()
            if where == place and kept.open and now < kept.idle_until:
                return kept
            kept.close()
        if len(self._all) >= _MOST:
            return None
        return await self._connect(place)

    async def _connect(self, place: tuple[bool, str, int]) -> Connection:
        secure, host, port = place
        loop = asyncio.get_running_loop()
        failure = OSError("it has no address")
        tls: dict[str, Any] = {"ssl": self._context, "server_hostname": host} if secure else {}
        for address in await self._addresses(host, port):
            made = Connection(self)
            try:
                async with asyncio.timeout(_CONNECT):
                    await loop.create_connection(lambda made=made: made, address, port, **tls)  # type: ignore[misc]
            except OSError as error:
                failure = error
            else:
                self._all[made] = place
                return made
        raise failure

    def keep(self, connection: Connection, told: str) -> None:
        """A request is over, and its connection is good for another."""
        if len(self._idle) >= _MOST_IDLE:
            connection.close()
            return
        connection.idle_until = asyncio.get_running_loop().time() + _patience(told)
        self._idle.append((self._all[connection], connection))

    def gone(self, connection: Connection) -> None:
        """A connection has ended."""
        self._all.pop(connection, None)
        self._idle = [each for each in self._idle if each[1] is not connection]

    def close(self) -> None:
        """End all of them."""
        for connection in list(self._all):
            connection.close()


def _patience(told: str) -> float:
    """How long a connection is used again: a second less than the server says it waits, where it says so."""
    for part in told.split(","):
        name, _, value = part.strip().partition("=")
        if name.lower() == "timeout" and value.isdigit() and len(value) < 10:
            return min(max(float(value) - 1.0, 0.0), _IDLE)
    return _IDLE
