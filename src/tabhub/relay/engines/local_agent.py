"""An agent of the relay without a socket: a link that reaches the node in the same process.

Owns the messages between the two. To the node it is an agent like all others: its messages are counted, its requests
mapped, and it ends with its token, which was verified with the request it came in.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from tabhub.errors import RelayRefused
from tabhub.limits import Limits
from tabhub.links.extension import PROTOCOL_ERROR
from tabhub.links.relay_link import RelayLink
from tabhub.relay.node import Node
from tabhub.trust.jwt import Claims

log = logging.getLogger("tabhub.relay")


class PeerLink(RelayLink):
    """The link of such an agent."""

    def __init__(self, node: Node, browser_id: str, limits: Limits) -> None:
        self._node = node
        self.refused: str | None = None
        """Why the node closed it, once it has."""
        self.client = node.attach("agent", self)
        super().__init__(browser_id, partial(node.feed, self.client), self._leave, limits)

    def admit(self, claims: Claims) -> None:
        """Authenticate, or continue with a newer token."""
        self._node.admit(self.client, claims)

    def send_text(self, data: bytes) -> None:
        """A message of the node, which is still busy: it is read in the next iteration of the loop."""
        self.loop.call_soon(self._read, data)

    def send_close(self, code: int, reason: str) -> None:
        """The node closes it, after its earlier messages."""
        self.refused = reason
        self.loop.call_soon(self.connection_lost, f"the relay closed the connection ({code}: {reason})")

    def _read(self, data: bytes) -> None:
        try:
            self.feed(data)
        except Exception:
            log.exception("what browser %s sent could not be dealt with", self.browser_id)
            self.close(PROTOCOL_ERROR, "what it sent could not be dealt with")

    def _leave(self, code: int, reason: str) -> None:
        self._node.detach(self.client, f"closed with {code}: {reason}")


@asynccontextmanager
async def peer_link(node: Node, claims: Claims, browser_id: str, limits: Limits) -> AsyncIterator[PeerLink]:
    """An authenticated agent; it disconnects at the end of the block."""
    link = PeerLink(node, browser_id, limits)
    try:
        link.admit(claims)
        if link.refused is not None:
            raise RelayRefused(f"The relay refused the connection: {link.refused}.")
        yield link
    finally:
        link.connection_lost("the connection to the relay was ended")
        node.detach(link.client, "it was ended")
