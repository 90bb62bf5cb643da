"""The bus between the nodes of a relay: its interface, which is at the same time the bus of a single node.

Owns presence (the browsers of a user, by node), messages from node to node, the usage counts behind a user's rate
limit, and revoked tokens. It carries bytes and does not interpret them: that is the job of wire/nodes.py and state.py.

Rules for every bus:
- A message is delivered at most once, and messages from one node to another in order. Nothing is retried.
- A node that died or was unreachable for that long is reported by `node_lost` within 5 s.
- A node that connects has the lists of revoked tokens of the others before `start` returns, or before the bus is
  `healthy` again; nodes whose lists differ exchange them within seconds.
- While the bus is not `healthy`, `send` returns False, `browsers` raises BusUnavailable, and nothing is queued.
  Once it is healthy again, the bus itself repeats announcements and joins.
- The listener is called on the event loop, one call at a time, and never from inside a call to the bus.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

VARIABLE = "TABHUB_RELAY_BUS_TOKEN"
"""Environment variable with the token of the bus; in a URL it would be visible in the process list."""


@dataclass(frozen=True, slots=True)
class Presence:
    """A browser connected to a node."""

    user: str
    extension_id: str
    name: str
    node: str
    admitted: int = 0
    """Milliseconds since 1970, by the clock of its node. Of two connections of one browser the newer one stays."""

    @property
    def age(self) -> tuple[int, str]:
        """By which connections of one browser are compared, with the same result on all nodes."""
        return self.admitted, self.node


class BusListener(Protocol):
    """Receives the events of the bus: a node."""

    def message_received(self, node: str, message: bytes) -> None: ...

    def node_lost(self, node: str) -> None:
        """Another node stopped or can no longer be reached."""
        ...

    def browsers_changed(self, user: str) -> None:
        """A browser of a joined user connected to or disconnected from another node."""
        ...

    def usage_reported(self, user: str, count: int) -> None:
        """Another node accepted `count` messages of a joined user."""
        ...

    def tokens_revoked(self, entries: Sequence[str]) -> None:
        """Entries of another node's list, new or not."""
        ...

    def revoked_entries(self) -> Sequence[str]:
        """This node's list."""
        ...

    def revoked_digest(self, minute: int) -> tuple[int, int]:
        """The number of entries that end after this minute, and their digest."""
        ...

    def bus_changed(self, healthy: bool) -> None: ...


class Bus:
    """The connection of one node to all others; this one is for a single node, which has no others."""

    def __init__(self, node: str) -> None:
        self.node = node
        """The id of this node: new for each process."""

    @property
    def healthy(self) -> bool:
        """Whether other nodes can be reached."""
        return True

    async def start(self, listener: BusListener) -> None:
        """Connect; if no server can be reached, that goes on in the background. Raises BusUnavailable if refused."""

    async def close(self) -> None:
        """Disconnect: the others get `node_lost` at once. Messages sent before are still delivered."""

    def join(self, user: str) -> None:
        """This node has a client of that user."""

    def leave(self, user: str) -> None:
        """This node no longer has a client of that user."""

    def announce(self, browser: Presence) -> None:
        """A browser is connected to this node; repeated to change its name."""

    def withdraw(self, browser: Presence) -> None:
        """A browser disconnected from this node."""

    async def browsers(self, user: str) -> tuple[Presence, ...]:
        """The browsers of a user on all other nodes, ordered by id."""
        return ()

    def send(self, node: str, message: bytes) -> bool:
        """Send to one node. False: it was certainly not sent. True: it may arrive."""
        return False

    def report_usage(self, user: str, count: int) -> None:
        """Report the messages accepted here since the last report to the nodes that joined this user."""

    def revoke(self, entries: Sequence[str]) -> None:
        """Report newly revoked tokens to all nodes."""
