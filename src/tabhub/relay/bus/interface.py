"""What the nodes of a relay say to one another: an interface, and its form inside one process.

Owns who is where (the browsers of a user, by node), messages from node to node, the counts behind the limits of a
user, and revoked tokens. It carries bytes and understands none of them: that is wire/relay.py's and state.py's.

Rules every bus keeps:
- A message arrives at most once, and those of one node to another in the order they were sent. Nothing is tried again.
- A node that has died is reported by `node_lost` within 5 s, and so is one that could not be heard for that long.
- While it is not `healthy`, `send` says False, `browsers` raises BusUnavailable, and nothing waits to be sent later.
  What was announced and joined is announced and joined again by the bus itself once it is back.
- The listener are called on the event loop, one call at a time, and never from inside a call to the bus.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from tabhub.errors import BusUnavailable


@dataclass(frozen=True, slots=True)
class Presence:
    """A browser that is connected to a node."""

    user: str
    extension_id: str
    name: str
    node: str


class BusListener(Protocol):
    """Who listens to the bus: a node."""

    def message_received(self, node: str, message: bytes) -> None:
        """Another node sent this one a message."""
        ...

    def node_lost(self, node: str) -> None:
        """Another node has gone, or cannot be heard any more."""
        ...

    def browsers_changed(self, user: str) -> None:
        """A browser of a user that was joined came or went on another node."""
        ...

    def usage_reported(self, user: str, count: int) -> None:
        """Another node has taken so many messages of a user that was joined."""
        ...

    def tokens_revoked(self, entries: Sequence[str]) -> None:
        """Tokens were revoked elsewhere."""
        ...

    def bus_changed(self, healthy: bool) -> None:
        """The bus has gone or is back."""
        ...


class Bus(Protocol):
    """The road between nodes."""

    @property
    def node(self) -> str:
        """The id of this node: new for each process."""
        ...

    @property
    def healthy(self) -> bool:
        """Whether other nodes can be reached."""
        ...

    async def start(self, listener: BusListener) -> None:
        """Listen; raises BusUnavailable if it cannot be reached at all."""
        ...

    async def close(self) -> None:
        """Say good-bye: the others get `node_lost` at once. Messages sent before still leave."""
        ...

    def join(self, user: str) -> None:
        """This node has someone of that user (browser or agent)."""
        ...

    def leave(self, user: str) -> None:
        """The last one of that user has left this node."""
        ...

    def announce(self, browser: Presence) -> None:
        """A browser is connected to this node; again with the same id to give it another name."""
        ...

    def withdraw(self, browser: Presence) -> None:
        """It no longer is."""
        ...

    async def browsers(self, user: str) -> tuple[Presence, ...]:
        """The browsers of a user on all other nodes, in the order of their ids."""
        ...

    def send(self, node: str, message: bytes) -> bool:
        """Send to one node; False if it certainly did not leave. True says only that it may arrive."""
        ...

    def report_usage(self, user: str, count: int) -> None:
        """Tell the nodes that have joined this user how many messages of it were taken here since the last time."""
        ...

    def revoke(self, entries: Sequence[str]) -> None:
        """Tell all nodes of revoked tokens."""
        ...


class MemoryNetwork:
    """Where the buses of one process meet."""

    def __init__(self) -> None:
        self.buses: dict[str, MemoryBus] = {}


class MemoryBus:
    """A bus of one process: alone by default, or with others on the same exchange."""

    def __init__(self, node: str, exchange: MemoryNetwork | None = None) -> None:
        self._node = node
        self._exchange = exchange if exchange is not None else MemoryNetwork()
        self._listener: BusListener | None = None
        self._healthy = False
        self._users: set[str] = set()
        self._browsers: dict[str, Presence] = {}

    @property
    def node(self) -> str:
        """The id of this node."""
        return self._node

    @property
    def healthy(self) -> bool:
        """Whether it is started and not cut off."""
        return self._healthy

    async def start(self, listener: BusListener) -> None:
        """Listen."""
        self._listener = listener
        self._healthy = True
        self._exchange.buses[self._node] = self

    async def close(self) -> None:
        """Leave the exchange."""
        if self._exchange.buses.pop(self._node, None) is None:
            return
        self._healthy = False
        for other in self._others():
            other.notify(lambda listener: listener.node_lost(self._node))

    def cut_off(self, cut: bool) -> None:
        """For tests: the road is gone, or back."""
        if cut:
            for other in self._others():
                other.notify(lambda listener: listener.node_lost(self._node))
        self._healthy = not cut
        self.notify(lambda listener: listener.bus_changed(not cut))
        if not cut:
            for browser in self._browsers.values():
                self._changed(browser.user)

    def join(self, user: str) -> None:
        """Someone of that user is here."""
        self._users.add(user)

    def leave(self, user: str) -> None:
        """Nobody is."""
        self._users.discard(user)

    def announce(self, browser: Presence) -> None:
        """A browser came."""
        self._browsers[browser.extension_id] = browser
        self._changed(browser.user)

    def withdraw(self, browser: Presence) -> None:
        """A browser went."""
        if self._browsers.pop(browser.extension_id, None) is not None:
            self._changed(browser.user)

    async def browsers(self, user: str) -> tuple[Presence, ...]:
        """Ask the others."""
        if not self._healthy:
            raise BusUnavailable("The relay's bus is unavailable: browsers on other nodes cannot be reached.")
        found = [b for other in self._others() for b in other._browsers.values() if b.user == user]
        return tuple(sorted(found, key=lambda browser: browser.extension_id))

    def send(self, node: str, message: bytes) -> bool:
        """Hand a message over."""
        other = self._exchange.buses.get(node)
        if not self._healthy or other is None or not other._healthy:
            return False
        other.notify(lambda listener: listener.message_received(self._node, message))
        return True

    def report_usage(self, user: str, count: int) -> None:
        """Tell those who have joined the user."""
        for other in self._others():
            if user in other._users:
                other.notify(lambda listener: listener.usage_reported(user, count))

    def revoke(self, entries: Sequence[str]) -> None:
        """Tell all."""
        known = tuple(entries)
        for other in self._others():
            other.notify(lambda listener: listener.tokens_revoked(known))

    def notify(self, what: Callable[[BusListener], None]) -> None:
        """Have the listener hear something at the loop's next turn."""
        if self._listener is not None:
            asyncio.get_running_loop().call_soon(what, self._listener)

    def _others(self) -> list[MemoryBus]:
        """Those on the exchange that can be heard from here."""
        if not self._healthy and self._node in self._exchange.buses:
            return []
        return [bus for bus in self._exchange.buses.values() if bus is not self and bus._healthy]

    def _changed(self, user: str) -> None:
        for other in self._others():
            if user in other._users:
                other.notify(lambda listener: listener.browsers_changed(user))
