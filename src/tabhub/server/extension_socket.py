"""`/ws`: where the extension connects.

Owns the handshake (key, browser id) and the lifetime of the connection. Messages are handled in links.extension.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from tabhub.config.settings import Config
from tabhub.errors import Unauthorized
from tabhub.http.messages import Request
from tabhub.http.websocket import Upgrade, WebSocket, WebSocketRoute
from tabhub.limits import Limits
from tabhub.links.browsers import Browsers
from tabhub.links.extension import PROTOCOL_ERROR, SHUTTING_DOWN, TOO_SLOW, WRONG_KEY, ExtensionLink
from tabhub.server.wire_log import MessageLog
from tabhub.trust.tokens import parse_link_offer, same_token
from tabhub.trust.value_mask import ValueMask

log = logging.getLogger("tabhub.ws")


@dataclass(eq=False)
class ExtensionSocket:
    """Accepts connections of extensions."""

    browsers: Browsers
    key: bytes = field(repr=False)
    limits: Limits
    log_messages: bool
    mask: ValueMask
    links: set[ExtensionLink] = field(default_factory=set, init=False)

    def apply_settings(self, config: Config) -> None:
        """A change of `logMessages` applies to browsers that connect from now on."""
        self.log_messages = config.log_messages

    def replace_key(self, key: bytes) -> None:
        """The key was rotated: connections made with the old one are closed."""
        self.key = key
        for link in list(self.links):
            link.close(WRONG_KEY, "the key was rotated")
            self.browsers.detach(link)

    def route(self, request: Request) -> WebSocketRoute:
        """Admit a connection; its Host and Origin are already checked."""
        offered = request.headers.get(b"sec-websocket-protocol", b"").decode("latin-1")
        offer = parse_link_offer(offered)
        if offer is None or not same_token(offer.key, self.key):
            raise Unauthorized(
                "The key of the extension is missing or wrong.",
                hint="Only the browser extension connects here; agents use /mcp.",
            )
        browser_id = offer.browser_id

        def connect(upgrade: Upgrade) -> WebSocket:
            return WebSocket(upgrade, lambda socket: _Connection(self, browser_id, socket), self.limits.send_queue)

        return WebSocketRoute(offer.protocol, connect)

    def close(self) -> None:
        for link in list(self.links):
            link.close(SHUTTING_DOWN, "the hub is shutting down")


class _Connection:
    """One extension's connection (http.websocket.Receiver)."""

    def __init__(self, endpoint: ExtensionSocket, browser_id: str, socket: WebSocket) -> None:
        self._endpoint = endpoint
        wire = MessageLog(browser_id, endpoint.key.decode(), endpoint.mask) if endpoint.log_messages else None
        send: Callable[[bytes], None] = partial(wire.pass_on, "to", socket.send_text) if wire else socket.send_text
        self._link = link = ExtensionLink(browser_id, send, socket.send_close, endpoint.limits)
        self.receive: Callable[[bytes], None] = partial(wire.pass_on, "from", link.feed) if wire else link.feed
        endpoint.links.add(link)
        endpoint.browsers.attach(link)
        log.info("browser %s connected", browser_id)
        self._heartbeat = asyncio.create_task(endpoint.browsers.watch(link))

    def receive_binary(self) -> None:
        self._link.close(PROTOCOL_ERROR, "messages must be text")

    def overflow(self) -> None:
        self._link.close(TOO_SLOW, "the browser does not read what it is sent")

    def closed(self, reason: str) -> None:
        self._heartbeat.cancel()
        self._endpoint.links.discard(self._link)
        self._link.connection_lost(reason)
        self._endpoint.browsers.detach(self._link)
        log.info("browser %s disconnected: %s", self._link.browser_id, reason)
