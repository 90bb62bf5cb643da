"""Links from an agent over HTTP to the browsers of its user, through the node in the same process.

Owns the messages between engine and node, and how long the links last: until the token expires, and again with a newer
one. To the node each link is an agent like any other: its messages are counted and its requests mapped, and it ends
with its token.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from tabhub.errors import RelayRefused
from tabhub.limits import Limits
from tabhub.links.browsers import Browsers
from tabhub.links.extension import PROTOCOL_ERROR
from tabhub.links.relay_browsers import RelayBrowsers
from tabhub.links.relay_link import RelayLink
from tabhub.relay.node import Node
from tabhub.trust.jwt import Claims

log = logging.getLogger("tabhub.relay")

_MARGIN = 1.0
"""A connection that ends this many seconds before its token expires ended because of that: the node checks once a
second."""


class LocalLink(RelayLink):
    """An agent's connection to the node in the same process, without a socket."""

    def __init__(self, node: Node, browser_id: str, limits: Limits) -> None:
        self.refused: str | None = None
        """Why the node closed it, once it has."""
        self.client = node.attach("agent", self)
        super().__init__(browser_id, self.client.receive, self._disconnect, limits)

    def send_text(self, data: bytes) -> None:
        """Receive a message of the node: in the next iteration of the loop, because the node is still busy."""
        self.loop.call_soon(self._receive, data)

    def send_close(self, code: int, reason: str) -> None:
        """The node closes the connection, after its earlier messages."""
        self.refused = reason
        self.loop.call_soon(self.connection_lost, f"the relay closed the connection ({code}: {reason})")

    def _receive(self, data: bytes) -> None:
        try:
            self.feed(data)
        except Exception:
            log.exception("error while handling a message of browser %s", self.browser_id)
            self.close(PROTOCOL_ERROR, "a message could not be handled")

    def _disconnect(self, code: int, reason: str) -> None:
        self.client.closed(f"closed with {code}: {reason}")


class UserBrowserLinks:
    """The links of one token."""

    def __init__(
        self, node: Node, claims: Claims, browsers: Browsers, limits: Limits, *, wall: Callable[[], float]
    ) -> None:
        self.claims = claims
        self.paused = False
        """Whether the token has expired and no newer one has arrived."""
        self._node = node
        self._browsers = browsers
        self._limits = limits
        self._wall = wall
        self._relay_browsers = RelayBrowsers(browsers, limits, self._dial)
        self._list_link: LocalLink | None = None
        """The connection over which browsers are listed."""
        self._links: set[LocalLink] = set()
        self._renewed = asyncio.Event()

    @asynccontextmanager
    async def _dial(self, browser_id: str) -> AsyncIterator[LocalLink]:
        """An authenticated connection; it is closed at the end of the block."""
        link = LocalLink(self._node, browser_id, self._limits)
        try:
            link.client.admit(self.claims)
            if link.refused is not None:
                raise RelayRefused(f"The relay refused the connection: {link.refused}.")
            self._links.add(link)
            yield link
        finally:
            self._links.discard(link)
            link.connection_lost("the connection to the relay was closed")
            link.client.closed("closed by its engine")

    async def run(self, pause: Callable[[], None]) -> str:
        """Keep the links; calls `pause` when the token has expired. Returns why they ended for good."""
        try:
            while True:
                reason = await self._run_until_closed()
                if self._node.closing or self.claims.expires - self._wall() > _MARGIN:
                    return reason
                self.paused = True
                pause()
                await self._renewed.wait()
        finally:
            self._relay_browsers.settled.set()

    async def _run_until_closed(self) -> str:
        self._renewed.clear()
        try:
            async with self._dial("relay") as link:
                self._list_link = link
                return await self._relay_browsers.follow(link)
        except RelayRefused as error:
            return error.message
        finally:
            self._list_link = None
            await self._relay_browsers.stop()

    def renew(self, claims: Claims) -> None:
        """Continue, or reconnect, with a newer token of the same user."""
        self.claims = claims
        if self.paused:
            self.paused = False
            self._relay_browsers = RelayBrowsers(self._browsers, self._limits, self._dial)
            self._renewed.set()
        for link in list(self._links):
            link.client.admit(claims)

    async def wait_settled(self) -> None:
        """Wait for a limited time until connected browsers have reported their tabs."""
        settled = self._relay_browsers.settled
        if not settled.is_set():
            try:
                async with asyncio.timeout(self._limits.relay_open):
                    await settled.wait()
            except TimeoutError:
                settled.set()

    def check_rate(self) -> float | None:
        """Count a request; the seconds to wait if it exceeds the rate limit."""
        return self._list_link.client.check_rate() if self._list_link is not None else None
