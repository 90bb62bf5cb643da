"""`/ws`: where the extension connects.

Owns the handshake (origin, secret, browser id) and the life of the socket; what is said on it is links/'s.
"""

from __future__ import annotations

import asyncio
import logging

from tabhub.http.responses import Receive, Scope, Send
from tabhub.http.websocket import EXTENSION, LinkProtocol, refuse
from tabhub.limits import Limits
from tabhub.links.browsers import Browsers
from tabhub.links.extension import PROTOCOL_ERROR, SHUTTING_DOWN, TOO_SLOW, WRONG_SECRET, ExtensionLink
from tabhub.server.wire_log import MessageLog
from tabhub.trust.tokens import parse_link_offer, same_token

log = logging.getLogger("tabhub.ws")


class ExtensionSocket:
    """Accepts extensions."""

    def __init__(self, browsers: Browsers, secret: bytes, limits: Limits) -> None:
        self._browsers = browsers
        self._secret = secret
        self._limits = limits
        self._open: set[ExtensionLink] = set()
        self.log_messages = False
        """Whether what passes is written down, of browsers that connect from now on."""

    def replace_secret(self, secret: bytes) -> None:
        """The secret was rotated: whoever used the old one is out."""
        self._secret = secret
        for link in list(self._open):
            link.close(WRONG_SECRET, "the secret was rotated")
            self._browsers.detach(link)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection; Host and Origin have been looked at."""
        offer = parse_link_offer(scope.get("subprotocols", ()))
        await receive()
        if offer is None or not same_token(offer.secret, self._secret):
            await refuse(send, 401, b"The secret is missing or wrong.")
            return
        await send({"type": "websocket.accept", "subprotocol": offer.protocol})
        socket: LinkProtocol = scope["extensions"][EXTENSION]
        noted = None
        if self.log_messages:
            noted = MessageLog(offer.browser_id, socket.send_text, self._secret.decode())
        link = ExtensionLink(
            offer.browser_id, noted.send if noted else socket.send_text, socket.send_close, self._limits
        )
        socket.take_over(
            noted.hearing(link.feed) if noted else link.feed,
            self._limits.send_queue,
            overrun=lambda: link.close(TOO_SLOW, "the browser does not read what it is sent"),
        )
        self._open.add(link)
        self._browsers.attach(link)
        watch = asyncio.create_task(self._browsers.watch(link))
        log.info("browser %s connected", offer.browser_id)
        try:
            while True:
                message = await receive()
                if message["type"] == "websocket.disconnect":
                    reason = message.get("reason") or f"the connection was closed ({message.get('code', 1006)})"
                    break
                link.close(PROTOCOL_ERROR, "messages must be text")
        finally:
            watch.cancel()
            self._open.discard(link)
        link.lost(reason)
        self._browsers.detach(link)
        log.info("browser %s disconnected: %s", offer.browser_id, reason)

    def close(self) -> None:
        """The hub is shutting down."""
        for link in list(self._open):
            link.close(SHUTTING_DOWN, "the hub is shutting down")
