"""A relay as a link: the hub as an agent of a relay, one WebSocket for each remote browser.

Owns the hub's side of the relay's protocol: handshake, control methods, and what the relay says by itself. What
browsers say is the extension link's; when to connect, and to which browser, is relays.py's.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from tabhub.errors import LinkLost, RelayRefused, SetupError, TabhubError
from tabhub.limits import Limits
from tabhub.links.extension import PROTOCOL_ERROR, TOO_SLOW, ExtensionLink
from tabhub.wire import urls as addresses
from tabhub.wire.relay import RELAY_WORDS

_NAMED = {"tool.progress": "dispatchId", "browser/elicitConfirmation": "callId"}
"""What a browser tells of a request, and where it names it: as the relay does, by connection and number."""
_ROLES = ("/mcp", "/extension")
_OPENING = 10.0
_WORDS = 2000


class RelayLink(ExtensionLink):
    """One agent's connection to a relay; once `connection` is set, a link to one remote browser."""

    def __init__(
        self, browser_id: str, send: Callable[[bytes], None], close: Callable[[int, str], None], limits: Limits
    ) -> None:
        super().__init__(browser_id, send, close, limits)
        self.local = False
        self.connection = ""
        self.ended = asyncio.Event()
        self.on_status: Callable[[], None] = lambda: None
        """Told whenever the relay says that something has changed."""

    @property
    def upcoming(self) -> str:
        """The name of the next request: agents of one browser must not hear of each other's."""
        return f"{self.connection}:{super().upcoming}"

    async def control(self, method: str, **params: Any) -> dict[str, Any]:
        """Ask the relay itself."""
        async with asyncio.timeout(self.limits.call_timeout):
            answer = await self.issue(method, params)
        if not isinstance(answer, dict):
            raise RelayRefused(f"The relay's answer to {method} is not an object.")
        return answer

    def heard(self, method: str, params: dict[str, Any]) -> None:
        """Take what was asked for as if the browser had told it by itself."""
        self.handlers[method](self, params)

    def refusal(self, method: str, error: Any) -> TabhubError:
        """Also what the relay answers in the browser's place: that the road is broken, and how far the call came."""
        data = error.get("data") if isinstance(error, dict) else None
        outcome = data.get("outcome") if isinstance(data, dict) else None
        if isinstance(data, dict) and outcome in ("unknown", "not_sent") and isinstance(error.get("message"), str):
            hint = data["hint"][:_WORDS] if isinstance(data.get("hint"), str) else ""
            # The relay's words hold all of it; each part is said once.
            said = error["message"][:_WORDS].removesuffix(hint).rstrip().removesuffix(f"(outcome: {outcome})").rstrip()
            return LinkLost(said, sent=outcome == "unknown", hint=hint or None)
        return super().refusal(method, error)

    def lost(self, reason: str) -> None:
        """The road is broken, on either side of the relay."""
        super().lost(reason)
        self.ended.set()

    def _incoming(self, message: dict[str, Any]) -> None:
        method, params = message.get("method"), message.get("params", {})
        if "id" in message or not isinstance(params, dict):
            self.counts.refused += 1  # an agent of a relay is asked nothing
        elif method == "disconnected":
            self.lost(f"the relay says: {str(params.get('reason', 'the browser has gone'))[:200]}")
        elif method in RELAY_WORDS:
            self.on_status()
        elif method not in _NAMED:
            super()._incoming(message)
        else:
            place = _NAMED[method]
            connection, _, number = str(params.get(place)).partition(":")
            if connection == self.connection:
                super()._incoming({**message, "params": {**params, place: number}})

    def _answer(self, number: Any, **outcome: Any) -> None:
        """An agent of a relay answers nothing; what is wrong has been counted."""


class _Outbox:
    """What is to be sent, in order; bounded."""

    def __init__(self, most: int, overrun: Callable[[], None]) -> None:
        self._waiting: deque[bytes] = deque()
        self._bytes = 0
        self._most = most
        self._overrun = overrun
        self._news = asyncio.Event()

    def put(self, data: bytes) -> None:
        self._waiting.append(data)
        self._bytes += len(data)
        self._news.set()
        if self._bytes > self._most:
            self._overrun()

    async def send(self, socket: ClientConnection) -> None:
        with contextlib.suppress(ConnectionClosed):  # the reader says so
            while True:
                await self._news.wait()
                self._news.clear()
                while self._waiting:
                    data = self._waiting.popleft()
                    await socket.send(data, text=True)
                    self._bytes -= len(data)


@contextlib.asynccontextmanager
async def relay_link(url: str, token: str, browser_id: str, limits: Limits) -> AsyncIterator[RelayLink]:
    """A connection to a relay that has been let in; it ends with the block."""
    try:
        socket = await connect(
            f"{url}/mcp",
            max_size=limits.max_frame,
            compression=None,
            open_timeout=_OPENING,
            close_timeout=1,
            ping_interval=None,
            user_agent_header=None,
        )
    except (OSError, InvalidHandshake, TimeoutError) as error:
        raise RelayRefused(f"The relay at {url} cannot be reached: {str(error) or type(error).__name__}.") from None
    farewell: list[tuple[int, str]] = []
    outbox = _Outbox(limits.send_queue, lambda: link.close(TOO_SLOW, "the relay does not read what it is sent"))
    link = RelayLink(browser_id, outbox.put, lambda code, reason: farewell.append((code, reason)), limits)
    tasks = [asyncio.create_task(outbox.send(socket)), asyncio.create_task(_read(socket, link))]
    try:
        await link.control("mcp_handshake", accessToken=token)
        yield link
    finally:
        link.lost("the connection to the relay was ended")
        code, reason = farewell[0] if farewell else (1000, "")
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
        said = error.rcvd
        link.lost(f"the relay closed the connection ({said.code}: {said.reason})" if said else "the relay has gone")
    except Exception:
        link.close(PROTOCOL_ERROR, "what the relay sent could not be dealt with")
        raise


def relay_url(text: str) -> str:
    """The address of a relay without the role at its end; plain WebSockets are for this machine only."""
    base = text.strip().rstrip("/")
    for role in _ROLES:
        base = base.removesuffix(role)
    parts = addresses.split(base)
    if parts is None or parts.scheme not in ("ws", "wss") or not parts.hostname or not addresses.plain(parts):
        raise SetupError(f"{text[:100]!r} is not the address of a relay.", hint="It is like wss://relay.example.com")
    if parts.scheme == "ws" and not addresses.names_this_machine(parts.hostname):
        raise SetupError(
            f"{text[:100]!r} would carry the token over the network in the clear.", hint="Use wss:// instead of ws://."
        )
    return base
