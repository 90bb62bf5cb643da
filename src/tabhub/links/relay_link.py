"""A link to a remote browser: the hub as an agent of a relay, with one WebSocket per browser.

Owns the hub's side of the relay protocol: handshake, control methods and the relay's notifications. Messages of the
browser belong to the extension link; relays.py decides when to connect, and to which browser.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus

from tabhub.errors import InvalidParams, LinkLost, RelayRefused, SetupError, TabhubError
from tabhub.limits import Limits
from tabhub.links.extension import PROTOCOL_ERROR, TOO_SLOW, ExtensionLink
from tabhub.wire import urls as addresses
from tabhub.wire.extension_link import READERS
from tabhub.wire.messages import convert
from tabhub.wire.relay import CONTROL, RELAY_ONLY, Connected, Disconnected

_NAMED = {"tool.progress": "dispatchId", "browser/elicitConfirmation": "callId"}
"""Notifications about one request, and the param that names it: through a relay, as `<connection>:<number>`."""
_ROLES = ("/mcp", "/extension")
_OPEN_TIMEOUT = 10.0
_MAX_TEXT = 2000
_LONGEST_WAIT = 300
"""Seconds that a relay may ask for before the next attempt."""


class RelayLink(ExtensionLink):
    """An agent's connection to a relay; after `connect`, a link to one remote browser."""

    def __init__(
        self, browser_id: str, send: Callable[[bytes], None], close: Callable[[int, str], None], limits: Limits
    ) -> None:
        super().__init__(browser_id, send, close, limits)
        self.local = False
        self.connection = ""
        self.close_code: int | None = None
        """With which the relay has closed the connection."""
        self.changed = asyncio.Event()
        """Set when the relay reports a change, and when the link ends."""

    @property
    def next_request_id(self) -> str:
        """The name of the next request, unique among all agents of the browser."""
        return f"{self.connection}:{super().next_request_id}"

    async def connect(self, browser: str) -> Connected:
        """Make it a link to one of the relay's browsers."""
        connected: Connected = await self.control("connect", extension_id=browser)
        self.connection = connected.connection_id
        return connected

    async def control(self, method: str, **params: Any) -> Any:
        """Send a control method, which the relay itself answers; returns the struct of its result."""
        async with asyncio.timeout(self.limits.call_timeout):
            reply = await self.request(method, params, any_method=True)
        try:
            return convert(method, reply, CONTROL[method][1])
        except InvalidParams as error:
            raise RelayRefused(f"The relay's reply is invalid: {error.message}.") from None

    def deliver(self, method: str, params: dict[str, Any]) -> None:
        """Handle a reply as if the browser had sent it as a notification."""
        if self.closed is None:
            self.handlers[method](self, READERS[method](params))

    def refusal(self, method: str, error: Any) -> TabhubError:
        """Also reads an error the relay sends in place of the browser, with the outcome of the call."""
        data = error.get("data") if isinstance(error, dict) else None
        outcome = data.get("outcome") if isinstance(data, dict) else None
        if isinstance(data, dict) and outcome in ("unknown", "not_sent") and isinstance(error.get("message"), str):
            hint = data["hint"][:_MAX_TEXT] if isinstance(data.get("hint"), str) else ""
            # The relay's message ends with outcome and hint, which LinkLost adds again.
            text = error["message"][:_MAX_TEXT].removesuffix(hint).rstrip()
            text = text.removesuffix(f"(outcome: {outcome})").rstrip()
            return LinkLost(text, sent=outcome == "unknown", hint=hint or None)
        return super().refusal(method, error)

    def relay_closed(self, code: int | None) -> None:
        self.close_code = code

    def connection_lost(self, reason: str) -> None:
        super().connection_lost(reason)
        self.changed.set()

    def _incoming(self, message: dict[str, Any]) -> None:
        method, params = message.get("method"), message.get("params", {})
        if "id" in message or not isinstance(params, dict):
            self.counts.refused += 1  # a relay sends no requests to agents
        elif method == "disconnected":
            try:
                reason = convert(method, params, Disconnected).reason
            except InvalidParams:
                self.counts.refused += 1
                reason = "it did not say why"
            self.connection_lost(f"disconnected by the relay: {reason[:200]}")
        elif method in RELAY_ONLY:
            self.changed.set()
        elif method not in _NAMED:
            super()._incoming(message)
        else:
            param = _NAMED[method]
            connection, _, number = str(params.get(param)).partition(":")
            if connection == self.connection:
                super()._incoming({**message, "params": {**params, param: number}})

    def _answer(self, number: Any, **outcome: Any) -> None:
        """An agent sends no replies; the message has been counted."""


class _SendQueue:
    """Messages not sent yet, in order; `overflow` is called when they exceed `limit` bytes."""

    def __init__(self, limit: int, overflow: Callable[[], None]) -> None:
        self._messages: asyncio.Queue[bytes] = asyncio.Queue()
        self._bytes = 0
        self._limit = limit
        self._overflow = overflow

    def put(self, data: bytes) -> None:
        self._messages.put_nowait(data)
        self._bytes += len(data)
        if self._bytes > self._limit:
            self._overflow()

    async def send(self, socket: ClientConnection) -> None:
        with contextlib.suppress(ConnectionClosed):  # the reader reports it
            while True:
                data = await self._messages.get()
                await socket.send(data, text=True)
                self._bytes -= len(data)


@contextlib.asynccontextmanager
async def relay_link(url: str, token: str, browser_id: str, limits: Limits) -> AsyncIterator[RelayLink]:
    """An authenticated connection to a relay, closed at the end of the block."""
    try:
        socket = await connect(
            f"{url}/mcp",
            max_size=limits.max_frame,
            compression=None,
            open_timeout=_OPEN_TIMEOUT,
            close_timeout=1,
            ping_interval=None,
            user_agent_header=None,
        )
    except (OSError, InvalidHandshake, TimeoutError) as error:
        wait = error.response.headers.get("Retry-After", "") if isinstance(error, InvalidStatus) else ""
        raise RelayRefused(
            f"The relay at {url} cannot be reached: {str(error) or type(error).__name__}.",
            retry_after=min(int(wait), _LONGEST_WAIT) if wait.isascii() and wait.isdigit() and len(wait) < 10 else None,
        ) from None
    closes: list[tuple[int, str]] = []
    queue = _SendQueue(limits.send_queue, lambda: link.close(TOO_SLOW, "the relay does not read its messages"))
    link = RelayLink(browser_id, queue.put, lambda code, reason: closes.append((code, reason)), limits)
    tasks = [asyncio.create_task(queue.send(socket)), asyncio.create_task(_read(socket, link))]
    try:
        await link.control("mcp_handshake", accessToken=token)
        yield link
    finally:
        link.connection_lost("the connection to the relay was closed")
        code, reason = closes[0] if closes else (1000, "")
        await socket.close(code, reason[:100])
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _read(socket: ClientConnection, link: RelayLink) -> None:
    try:
        while True:
            data = await socket.recv(decode=False)
            link.feed(data)
    except ConnectionClosed as error:
        close = error.rcvd
        link.relay_closed(close.code if close else None)
        reason = f"the relay closed the connection ({close.code}: {close.reason})" if close else "the relay went away"
        link.connection_lost(reason)
    except Exception:
        link.close(PROTOCOL_ERROR, "a message of the relay could not be handled")
        raise


def relay_url(text: str) -> str:
    """The URL of a relay without the role at its end; ws:// is allowed for this machine only."""
    base = text.strip().rstrip("/")
    for role in _ROLES:
        base = base.removesuffix(role)
    parts = addresses.split(base)
    if parts is None or parts.scheme not in ("ws", "wss") or not parts.hostname or not addresses.plain(parts):
        raise SetupError(f"Invalid relay URL {text[:100]!r}.", hint="Use a URL like wss://relay.example.com")
    if parts.scheme == "ws" and not addresses.names_this_machine(parts.hostname):
        raise SetupError(
            f"{text[:100]!r} would send the token unencrypted over the network.", hint="Use wss:// instead of ws://."
        )
    return base
