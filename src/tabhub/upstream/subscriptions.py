"""The resources of one server whose changes somebody wants to hear of, and asking the server for that.

Owns which these are and which of them the server was asked for on the connection that stands. A server of the
stateless era is asked by one stream for all of them (link.Link.follow); one of the handshake era, one by one.
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
    """What is followed of one server."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._changed = asyncio.Event()
        self.uris: frozenset[str] = frozenset()
        self.subscribed: set[str] = set()
        """What the server was asked for, on this connection."""

    def set_wanted(self, uris: frozenset[str]) -> None:
        """These are followed from now on."""
        if uris != self.uris:
            self.uris = uris
            self._changed.set()

    async def changed(self) -> None:
        """Wait until others are followed than before."""
        await self._changed.wait()
        self._changed.clear()

    async def run(self, session: SdkSession) -> None:
        """See that the server tells of what is followed, for as long as the connection lasts."""
        self.subscribed.clear()
        if session.modern:
            await session.subscribe(self)
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
