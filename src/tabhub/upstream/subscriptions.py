"""The resource subscriptions of one server.

Owns which resources agents are subscribed to, and which the server has on the current connection. A stateless server
has one stream for all of them (SdkSession.subscribe); one with a handshake gets a request for each.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from tabhub.core.resources import SUBSCRIBE, UNSUBSCRIBE
from tabhub.errors import UpstreamError

if TYPE_CHECKING:
    from tabhub.upstream.sdk_session import SdkSession

log = logging.getLogger("tabhub.upstream")


class ServerSubscriptions:
    """What agents are subscribed to at one server."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._changed = asyncio.Event()
        self.uris: frozenset[str] = frozenset()
        self.subscribed: set[str] = set()
        """The subscriptions that the server has on this connection."""

    def set_wanted(self, uris: frozenset[str]) -> None:
        if uris != self.uris:
            self.uris = uris
            self._changed.set()

    async def changed(self) -> None:
        await self._changed.wait()
        self._changed.clear()

    async def run(self, session: SdkSession) -> None:
        """Keep the server's subscriptions in line with the agents', for as long as the connection lasts."""
        self.subscribed.clear()
        if session.modern:
            await session.subscribe()
            return
        while True:
            self._changed.clear()
            for uri in sorted(self.uris - self.subscribed):
                self.subscribed.add(uri)
                await self._send(session, SUBSCRIBE, uri)
            for uri in sorted(self.subscribed - self.uris):
                self.subscribed.discard(uri)
                await self._send(session, UNSUBSCRIBE, uri)
            await self._changed.wait()

    async def _send(self, session: SdkSession, method: str, uri: str) -> None:
        try:
            if session.supports_subscriptions:
                await session.request(method, {"uri": uri}, background=True)
        except UpstreamError as error:
            log.warning("external server %s: %s for %.200r: %s", self._server, method, uri, error.message)
