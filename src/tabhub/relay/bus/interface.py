"""The bus between the nodes of a relay: its interface, and an implementation within one process.

Owns presence (the browsers of a user, by node), messages from node to node, the usage counts behind a user's rate
limit, and revoked tokens. It carries bytes and does not interpret them: that is the job of wire/nodes.py and state.py.

Rules for every bus:
- A message is delivered at most once, and messages from one node to another in order. Nothing is retried.
- A node that died or was unreachable for that long is reported by `node_lost` within 5 s.
- While the bus is not `healthy`, `send` returns False, `browsers` raises BusUnavailable, and nothing is queued.
  Once it is healthy again, the bus itself repeats announcements and joins.
- The listener is called on the event loop, one call at a time, and never from inside a call to the bus.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from tabhub.errors import BusUnavailable


@dataclass(frozen=True, slots=True)
class Presence:
    """A browser connected to a node."""

    user: str
    extension_id: str
    name: str
    node: str


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

    def tokens_revoked(self, entries: Sequence[str]) -> None: ...

    def bus_changed(self, healthy: bool) -> None: ...


class Bus(Protocol):
    """The connection of one node to all others."""

    @property
    def node(self) -> str:
        """The id of this node: new for each process."""
        ...

    @property
    def healthy(self) -> bool:
        """Whether other nodes can be reached."""
        ...

    async def start(self, listener: BusListener) -> None:
        """Connect; raises BusUnavailable if that fails."""
        ...

    async def close(self) -> None:
        """Disconnect: the others get `node_lost` at once. Messages sent before are still delivered."""
        ...

    def join(self, user: str) -> None:
        """This node has a client of that user."""
        ...

    def leave(self, user: str) -> None:
        """This node no longer has a client of that user."""
        ...

    def announce(self, browser: Presence) -> None:
        """A browser is connected to this node; repeated to change its name."""
        ...

    def withdraw(self, browser: Presence) -> None:
        """A browser disconnected from this node."""
        ...

    async def browsers(self, user: str) -> tuple[Presence, ...]:
        """The browsers of a user on all other nodes, ordered by id."""
        ...

    def send(self, node: str, message: bytes) -> bool:
        """Send to one node. False: it was certainly not sent. True: it may arrive."""
        ...

    def report_usage(self, user: str, count: int) -> None:
        """Report the messages accepted here since the last report to the nodes that joined this user."""
        ...

    def revoke(self, entries: Sequence[str]) -> None:
        """Report revoked tokens to all nodes."""
        ...


class MemoryNetwork:
    """Connects the memory buses of one process."""

    def __init__(self) -> None:
        self.buses: dict[str, MemoryBus] = {}


class MemoryBus:
    """A bus within one process, alone or with others on the same network."""

    def __init__(self, node: str, network: MemoryNetwork | None = None) -> None:
        self._node = node
        self._network = network if network is not None else MemoryNetwork()
        self._listener: BusListener | None = None
        self._healthy = False
        self._users: set[str] = set()
        self._browsers: dict[str, Presence] = {}

    @property
    def node(self) -> str:
        return self._node

    @property
    def healthy(self) -> bool:
        return self._healthy

    async def start(self, listener: BusListener) -> None:
        self._listener = listener
        self._healthy = True
        self._network.buses[self._node] = self

    async def close(self) -> None:
        if self._network.buses.pop(self._node, None) is None:
            return
        self._healthy = False
        for other in self._others():
            other.notify(lambda listener: listener.node_lost(self._node))

    def cut_off(self, cut: bool) -> None:
        """For tests: disconnect from the other nodes, or reconnect."""
        if cut:
            for other in self._others():
                other.notify(lambda listener: listener.node_lost(self._node))
        self._healthy = not cut
        self.notify(lambda listener: listener.bus_changed(not cut))
        if not cut:
            for browser in self._browsers.values():
                self._changed(browser.user)

    def join(self, user: str) -> None:
        self._users.add(user)

    def leave(self, user: str) -> None:
        self._users.discard(user)

    def announce(self, browser: Presence) -> None:
        self._browsers[browser.extension_id] = browser
        self._changed(browser.user)

    def withdraw(self, browser: Presence) -> None:
        if self._browsers.pop(browser.extension_id, None) is not None:
            self._changed(browser.user)

    async def browsers(self, user: str) -> tuple[Presence, ...]:
        if not self._healthy:
            raise BusUnavailable("The relay's bus is unavailable: browsers on other nodes cannot be reached.")
        found = [b for other in self._others() for b in other._browsers.values() if b.user == user]
        return tuple(sorted(found, key=lambda browser: browser.extension_id))

    def send(self, node: str, message: bytes) -> bool:
        other = self._network.buses.get(node)
        if not self._healthy or other is None or not other._healthy:
            return False
        other.notify(lambda listener: listener.message_received(self._node, message))
        return True

    def report_usage(self, user: str, count: int) -> None:
        for other in self._others():
            if user in other._users:
                other.notify(lambda listener: listener.usage_reported(user, count))

    def revoke(self, entries: Sequence[str]) -> None:
        known = tuple(entries)
        for other in self._others():
            other.notify(lambda listener: listener.tokens_revoked(known))

    def notify(self, what: Callable[[BusListener], None]) -> None:
        """Call the listener in the next iteration of the loop."""
        if self._listener is not None:
            asyncio.get_running_loop().call_soon(what, self._listener)

    def _others(self) -> list[MemoryBus]:
        """The buses that can be reached from this one."""
        if not self._healthy and self._node in self._network.buses:
            return []
        return [bus for bus in self._network.buses.values() if bus is not self and bus._healthy]

    def _changed(self, user: str) -> None:
        for other in self._others():
            if user in other._users:
                other.notify(lambda listener: listener.browsers_changed(user))
