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
        self.wanted: frozenset[str] = frozenset()
        self.asked: set[str] = set()
        """What the server was asked for, on this connection."""

    def want(self, uris: frozenset[str]) -> None:
        """These are followed from now on."""
        if uris != self.wanted:
            self.wanted = uris
            self._changed.set()

    async def changed(self) -> None:
        """Wait until others are followed than before."""
        await self._changed.wait()
        self._changed.clear()

    async def keep(self, link: SdkSession) -> None:
        """See that the server tells of what is followed, for as long as the connection lasts."""
        self.asked.clear()
        if link.modern:
            await link.subscribe(self)
            return
        while True:
            self._changed.clear()
            for uri in sorted(self.wanted - self.asked):
                self.asked.add(uri)
                await self._say(link, SUBSCRIBE, uri)
            for uri in sorted(self.asked - self.wanted):
                self.asked.discard(uri)
                await self._say(link, UNSUBSCRIBE, uri)
            await self._changed.wait()

    async def _say(self, link: SdkSession, method: str, uri: str) -> None:
        try:
            if link.updates:
                await link.request(method, {"uri": uri}, aside=True)
        except UpstreamError as error:
            log.warning("external server %s: %s for %.200r: %s", self._server, method, uri, error.message)
