"""Ending a relay node without failing calls: its connections end once they are quiet, its clients are closed gradually.

Owns when that happens. Pure, as the rest of the state. For a moment everything goes on, so that several requests that
belong together are not cut apart; then connections refuse new requests, and those that run may finish. A connection
with an agent on another node is drained by that node, which knows the requests that run.
"""

from __future__ import annotations

from tabhub.relay.connections import Connections
from tabhub.relay.records import Agent, Browser, Tables, ToNode
from tabhub.wire import nodes

REASON = "The relay restarts: reconnect"
_QUIET = 1.0
"""Seconds without a request after which a connection ends."""
REFUSE_AFTER = 2.0
"""Seconds for which new requests are still forwarded."""
_SLICES = 10
"""Parts in which idle clients are closed, one per step, so that they do not reach the other nodes at the same time."""
_SMALLEST_SLICE = 100


class Draining:
    """The connections and clients of a node that is about to end, and the connections to other such nodes."""

    def __init__(self, tables: Tables, connections: Connections) -> None:
        self._tables = tables
        self._connections = connections
        self._quiet_since: dict[str, float] = {}
        """Connections without requests, and since when."""
        self._draining: dict[str, float] = {}
        """Connections that drain, and when they begin to refuse requests."""
        self._slice = 0

    def begin(self, now: float) -> None:
        """This node drains."""
        tables = self._tables
        tables.draining = True
        self._slice = max(_SMALLEST_SLICE, len(tables.clients()) // _SLICES)
        for connection in tables.connections.values():
            if connection.agent is not None:
                self._draining.setdefault(connection.ident, now + REFUSE_AFTER)
            elif connection.node is not None:
                tables.out.append(ToNode(connection.node, nodes.Drain(connection.ident)))

    def requested(self, node: str, ident: str, now: float) -> None:
        """Another node drains, which has the browser of this connection."""
        connection = self._tables.connections.get(ident)
        if connection is not None and connection.node == node and connection.agent is not None:
            self._draining.setdefault(ident, now + REFUSE_AFTER)

    def step(self, now: float) -> None:
        """To be called several times a second while this node drains, and with every tick."""
        for ident, refuse_at in list(self._draining.items()):
            connection = self._tables.connections.get(ident)
            if connection is None:
                del self._draining[ident]
                self._quiet_since.pop(ident, None)
            elif self._tables.draining and connection.agent is not None and connection.agent.internal:
                continue  # its engine ends it, when its calls have ended
            elif connection.pending:
                self._quiet_since.pop(ident, None)
                connection.refuses = connection.refuses or now >= refuse_at
            elif now >= refuse_at or now - self._quiet_since.setdefault(ident, now) >= _QUIET:
                self._connections.end(connection, REASON)

    def closable(self) -> list[Agent | Browser]:
        """Clients without a connection that may be closed in this step."""
        found: list[Agent | Browser] = []
        if self._tables.draining:
            found += [a for a in self._tables.agents.values() if not (a.connection or a.opening or a.internal)]
            found += [b for b in self._tables.browsers.values() if not b.connections]
        return found[: self._slice]
