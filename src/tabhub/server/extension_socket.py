"""`/ws`: where the extension connects.

Owns the handshake (secret, browser id) and the lifetime of the connection. Messages are handled in links.extension.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from tabhub.config.settings import Config
from tabhub.errors import Unauthorized
from tabhub.http.messages import Request
from tabhub.http.websocket import Upgrade, WebSocket, WebSocketRoute
from tabhub.limits import Limits
from tabhub.links.browsers import Browsers
from tabhub.links.extension import PROTOCOL_ERROR, SHUTTING_DOWN, TOO_SLOW, WRONG_SECRET, ExtensionLink
from tabhub.server.wire_log import MessageLog
from tabhub.trust.tokens import parse_link_offer, same_token

log = logging.getLogger("tabhub.ws")


class ExtensionSocket:
    """Accepts connections of extensions."""

    def __init__(self, browsers: Browsers, secret: bytes, limits: Limits, *, log_messages: bool = False) -> None:
        self._browsers = browsers
        self._secret = secret
        self._limits = limits
        self._open: set[ExtensionLink] = set()
        self._log_messages = log_messages

    def apply_settings(self, config: Config) -> None:
        """A change of `logMessages` applies to browsers that connect from now on."""
        self._log_messages = config.log_messages

    def replace_secret(self, secret: bytes) -> None:
        """The secret was rotated: connections made with the old one are closed."""
        self._secret = secret
        for link in list(self._open):
            link.close(WRONG_SECRET, "the secret was rotated")
            self._browsers.detach(link)

    def route(self, request: Request) -> WebSocketRoute:
        """Admit a connection; its Host and Origin are already checked."""
        offered = request.headers.get(b"sec-websocket-protocol", b"").decode("latin-1")
        offer = parse_link_offer(offered)
        if offer is None or not same_token(offer.secret, self._secret):
            raise Unauthorized("The secret is missing or wrong.")
        browser_id = offer.browser_id

        def connect(upgrade: Upgrade) -> WebSocket:
            return WebSocket(upgrade, lambda socket: _Connection(self, browser_id, socket), self._limits.send_queue)

        return WebSocketRoute(offer.protocol, connect)

    def attach(self, browser_id: str, socket: WebSocket) -> tuple[ExtensionLink, Callable[[str | bytes], None]]:
        """A link for a new connection, and the function that its messages go to."""
        noted = MessageLog(browser_id, self._secret.decode()) if self._log_messages else None
        send = socket.send_text if noted is None else noted.logged("to", socket.send_text)
        link = ExtensionLink(browser_id, send, socket.send_close, self._limits)
        self._open.add(link)
        self._browsers.attach(link)
        log.info("browser %s connected", browser_id)
        return link, link.feed if noted is None else noted.logged("from", link.feed)

    def detach(self, link: ExtensionLink, reason: str) -> None:
        self._open.discard(link)
        link.connection_lost(reason)
        self._browsers.detach(link)
        log.info("browser %s disconnected: %s", link.browser_id, reason)

    def watch(self, link: ExtensionLink) -> asyncio.Task[None]:
        """Send heartbeats on a link and close it when it stays silent."""
        return asyncio.create_task(self._browsers.watch(link))

    def close(self) -> None:
        for link in list(self._open):
            link.close(SHUTTING_DOWN, "the hub is shutting down")


class _Connection:
    """One extension's connection (http.websocket.Receiver)."""

    def __init__(self, endpoint: ExtensionSocket, browser_id: str, socket: WebSocket) -> None:
        self._endpoint = endpoint
        self._link, self.receive = endpoint.attach(browser_id, socket)
        self._heartbeat = endpoint.watch(self._link)

    def receive_binary(self) -> None:
        self._link.close(PROTOCOL_ERROR, "messages must be text")

    def overflow(self) -> None:
        self._link.close(TOO_SLOW, "the browser does not read what it is sent")

    def closed(self, reason: str) -> None:
        self._heartbeat.cancel()
        self._endpoint.detach(self._link, reason)
