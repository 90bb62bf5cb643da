"""Buses within one process, for tests; between processes NATS does this."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from tabhub.errors import BusUnavailable
from tabhub.relay.bus.interface import Bus, BusListener, Presence


class MemoryNetwork:
    """Connects the buses of one process."""

    def __init__(self) -> None:
        self.buses: dict[str, MemoryBus] = {}


class MemoryBus(Bus):
    """The bus of one node, alone or with others on the same network."""

    def __init__(self, node: str, network: MemoryNetwork | None = None) -> None:
        super().__init__(node)
        self._network = network if network is not None else MemoryNetwork()
        self._listener: BusListener | None = None
        self._healthy = False
        self._users: set[str] = set()
        self._browsers: dict[str, Presence] = {}

    @property
    def healthy(self) -> bool:
        return self._healthy

    async def start(self, listener: BusListener) -> None:
        self._listener = listener
        self._healthy = True
        self._network.buses[self.node] = self
        for other in self._others():
            if other._listener is not None and (entries := other._listener.revoked_entries()):
                listener.tokens_revoked(entries)

    async def close(self) -> None:
        if self._network.buses.pop(self.node, None) is None:
            return
        self._healthy = False
        for other in self._others():
            other.notify(lambda listener: listener.node_lost(self.node))

    def cut_off(self, cut: bool) -> None:
        """Disconnect from the other nodes, or reconnect."""
        if cut:
            for other in self._others():
                other.notify(lambda listener: listener.node_lost(self.node))
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
        other.notify(lambda listener: listener.message_received(self.node, message))
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
        if not self._healthy and self.node in self._network.buses:
            return []
        return [bus for bus in self._network.buses.values() if bus is not self and bus._healthy]

    def _changed(self, user: str) -> None:
        for other in self._others():
            if user in other._users:
                other.notify(lambda listener: listener.browsers_changed(user))
