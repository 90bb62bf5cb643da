"""Links from an agent over HTTP to the browsers of its user, through the node in the same process.

Owns how long they last: as long as the token, and longer with a newer one, also after a pause without any.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from tabhub.errors import RelayRefused
from tabhub.limits import Limits
from tabhub.links.browsers import Browsers
from tabhub.links.relay_browsers import RelayBrowsers
from tabhub.relay.engines.local_agent import PeerLink, peer_link
from tabhub.relay.node import Node
from tabhub.trust.jwt import Claims

_EXPIRED = 1.0
"""A connection that ends this many seconds before its token ends with it: the node checks once a second."""


class UserBrowserLinks:
    """The connections one token opens."""

    def __init__(
        self, node: Node, claims: Claims, browsers: Browsers, limits: Limits, *, wall: Callable[[], float]
    ) -> None:
        self.claims = claims
        self.paused = False
        """Whether the token has ended and no newer one has come yet."""
        self._node = node
        self._browsers = browsers
        self._limits = limits
        self._wall = wall
        self._road = RelayBrowsers(browsers, limits, self._dial)
        self._overseer: PeerLink | None = None
        self._peers: set[PeerLink] = set()
        self._renewed = asyncio.Event()

    @asynccontextmanager
    async def _dial(self, ident: str) -> AsyncIterator[PeerLink]:
        async with peer_link(self._node, self.claims, ident, self._limits) as link:
            self._peers.add(link)
            try:
                yield link
            finally:
                self._peers.discard(link)

    async def run(self, pause: Callable[[], None]) -> str:
        """Keep the connections; calls `pause` when the token has expired. Returns why they ended for good."""
        try:
            while True:
                reason = await self._once()
                if self._node.closing or self.claims.expires - self._wall() > _EXPIRED:
                    return reason
                self.paused = True
                pause()
                await self._renewed.wait()
        finally:
            self._road.settled.set()

    async def _once(self) -> str:
        self._renewed.clear()
        try:
            async with self._dial("relay") as link:
                self._overseer = link
                return await self._road.follow(link)
        except RelayRefused as error:
            return error.message
        finally:
            self._overseer = None
            await self._road.stop()

    def renew(self, claims: Claims) -> None:
        """Continue, or reconnect, with a newer token of the same user."""
        self.claims = claims
        if self.paused:
            self.paused = False
            self._road = RelayBrowsers(self._browsers, self._limits, self._dial)
            self._renewed.set()
        for link in list(self._peers):
            link.admit(claims)

    async def settled(self) -> None:
        """Wait a little until connected browsers have reported their tabs; calls report what is missing."""
        road = self._road
        if not road.settled.is_set():
            try:
                async with asyncio.timeout(self._limits.relay_open):
                    await road.settled.wait()
            except TimeoutError:
                road.settled.set()

    def weigh(self) -> float | None:
        """Count a request. Returns the seconds to wait if it is one too many."""
        return self._node.check_rate(self._overseer.client) if self._overseer is not None else None
