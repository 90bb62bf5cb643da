"""The short road over a connection: requests and results that only change their id on the way.

Owns what connections.py does for such a message, and nothing more: whatever is out of the ordinary gives None and goes
the longer way, which begins anew. Pure, as the rest of the relay's state.
"""

from __future__ import annotations

from tabhub.errors import RateLimited
from tabhub.relay.records import Agent, Browser, Connection, Pending, Send, Tables, ToNode
from tabhub.relay.users import Users
from tabhub.wire import fast_forward as wire
from tabhub.wire import nodes, relay

Forwarded = tuple[Connection | None, int, bytes]
"""A message for a client of this node; or, with a connection, for the other side of it on another node."""


class FastForward:
    """The short road of one node."""

    def __init__(self, tables: Tables, users: Users) -> None:
        self._tables = tables
        self._users = users
        self._counts = tables.counts
        self._reader = wire.Reader(tables.limits)
        self._most = tables.limits.relay_calls
        self._patience = tables.limits.call_timeout_max

    def request(self, agent: Agent, data: bytes, now: float) -> Forwarded | None:
        """An agent's request for the browser it is connected to."""
        connection = agent.connection
        if connection is None or len(connection.pending) >= self._most:
            return None
        ident = self._reader.request(data)
        if ident is None:
            return None
        own = str(ident)
        mapped = f"{connection.ident}:{own}"
        if mapped in connection.pending:
            return None
        wait = self._users.over_limit(agent, now)
        if wait is not None:
            self._counts.rate_limited += 1
            error = RateLimited("Too many messages.", retry_after=int(wait) + 1)
            return None, agent.client, relay.failure(ident, error)
        connection.pending[mapped] = Pending(ident, now + self._patience)
        self._counts.forwarded += 1
        forwarded = wire.mapped_request(mapped, len(own), data)
        browser = connection.browser
        if browser is not None:
            return None, browser.client, forwarded
        return connection, 0, forwarded

    def answer(self, browser: Browser, data: bytes) -> Forwarded | None:
        """A browser's result for the agent that asked for it."""
        mapped = self._reader.answer(data)
        if mapped is None:
            return None
        connection = browser.connections.get(mapped.partition(":")[0])
        if connection is None:
            return None
        if connection.agent is None:
            return connection, 0, data
        return self._up(connection, connection.agent, mapped, data)

    def far_answer(self, connection: Connection, agent: Agent, data: bytes) -> Forwarded | None:
        """The same, of a browser on another node."""
        mapped = self._reader.answer(data)
        return self._up(connection, agent, mapped, data) if mapped is not None else None

    def _up(self, connection: Connection, agent: Agent, mapped: str, data: bytes) -> Forwarded | None:
        call = connection.pending.get(mapped)
        if call is None or type(call.ident) is not int:
            return None
        del connection.pending[mapped]
        self._counts.answered += 1
        return None, agent.client, wire.unmapped_answer(mapped, call.ident, data)


def effect_of(passed: Forwarded) -> Send | ToNode:
    """What is to be done with a message that passed."""
    connection, client, data = passed
    if connection is None or connection.node is None:
        return Send(client, data)
    kind = nodes.ToBrowser if connection.agent is not None else nodes.ToAgent
    return ToNode(connection.node, kind(connection.ident, data))
