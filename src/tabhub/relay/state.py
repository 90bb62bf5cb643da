"""A relay node without its sockets: facts in, effects out.

Owns the order of things and the clockwork; agents.py, browsers.py and connections.py own their sides. Every method
takes what happened and returns what is to be done, in that order; nothing here waits, reads a clock or makes up an id.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from tabhub.errors import InvalidToken, ParseError
from tabhub.limits import Limits
from tabhub.relay.agents import Agents
from tabhub.relay.browsers import Browsers
from tabhub.relay.bus.interface import Presence
from tabhub.relay.connections import Connections
from tabhub.relay.fast_forward import FastForward, Forwarded, effect_of
from tabhub.relay.records import Agent, Browser, Close, Counts, Effect, Log, Send, Tables, ToNode
from tabhub.relay.users import Users
from tabhub.trust.jwt import Claims
from tabhub.wire import nodes
from tabhub.wire import relay as wire

_BUS_GONE = "The relay's bus is unavailable: browsers on other nodes cannot be reached"


class Relay:
    """One node."""

    def __init__(self, node: str, limits: Limits, *, ids: Callable[[], str], stamp: Callable[[], str]) -> None:
        """`ids` gives a new UUID, `stamp` the wall clock as users read it."""
        self._tables = Tables(node, limits)
        self._users = Users(self._tables)
        self._fast_forward = FastForward(self._tables, self._users)
        self._connections = Connections(self._tables, stamp, self._fast_forward)
        self._agents = Agents(self._tables, self._users, self._connections, ids)
        self._browsers = Browsers(self._tables, self._users, self._connections, ids)
        self._stamp = stamp
        self._given_up: set[str] = set()
        """Nodes that do not know yet that this one was cut off."""

    @property
    def counts(self) -> Counts:
        """What was counted."""
        return self._tables.counts

    @property
    def tables(self) -> Tables:
        """Everything, to look at."""
        return self._tables

    def agent_connected(self, client: int, now: float) -> list[Effect]:
        """An agent connected."""
        self._agents.opened(client, now)
        return self._taken()

    def browser_connected(self, client: int, now: float) -> list[Effect]:
        """A browser connected."""
        self._browsers.opened(client, now)
        return self._taken()

    def message_received(self, client: int, data: bytes, now: float) -> list[Effect]:
        """A client sent a text message."""
        passed = self.passed(client, data, now)
        return self.said_in_full(client, data, now) if passed is None else [effect_of(passed)]

    def passed(self, client: int, data: bytes, now: float) -> Forwarded | None:
        """The same, for a message that goes the short road; None for any other, which `said_in_full` takes."""
        agent = self._tables.agents.get(client)
        if agent is not None:
            return self._fast_forward.request(agent, data, now)
        browser = self._tables.browsers.get(client)
        return self._fast_forward.answer(browser, data) if browser is not None else None

    def said_in_full(self, client: int, data: bytes, now: float) -> list[Effect]:
        """The same, for whatever does not go the short road."""
        agent = self._tables.agents.get(client)
        if agent is not None:
            self._agents.said(agent, data, now)
        else:
            browser = self._tables.browsers.get(client)
            if browser is not None:
                self._browsers.said(browser, data, now)
        return self._taken()

    def client_disconnected(self, client: int, reason: str) -> list[Effect]:
        """A client's WebSocket has ended."""
        self._forget(client, "Extension closed", reason)
        return self._taken()

    def token_verified(self, client: int, verdict: Claims | InvalidToken, now: float, remaining: float) -> list[Effect]:
        """A token was judged; valid ones have `remaining` seconds."""
        agent, browser = self._tables.agents.get(client), self._tables.browsers.get(client)
        if agent is not None:
            self._agents.verified(agent, verdict, now, remaining)
        elif browser is not None:
            self._browsers.verified(browser, verdict, now, remaining)
        return self._taken()

    def browsers_found(self, ticket: int, browsers: Sequence[Presence] | None) -> list[Effect]:
        """The bus has said where a user's browsers are; None: it could not."""
        self._agents.found(ticket, browsers)
        return self._taken()

    def remote_browsers_changed(self, user_name: str, browsers: Sequence[Presence]) -> list[Effect]:
        """The browsers of a user on other nodes have changed."""
        user = self._tables.users.get(user_name)
        if user is not None:
            count = sum(1 for b in browsers if b.extension_id not in user.browsers)
            if count != user.elsewhere:
                user.elsewhere = count
                for agent in user.agents.values():
                    self._connections.agent_status(agent)
        return self._taken()

    def node_message_received(self, node: str, data: bytes) -> list[Effect]:
        """Another node sent a message."""
        self.counts.node_messages += 1
        try:
            message = nodes.decode(data)
        except ParseError as error:
            self.counts.malformed += 1
            self._tables.out.append(Log("node_message_refused", {"node": node, "reason": error.message}))
            return self._taken()
        if isinstance(message, nodes.ToBrowser | nodes.ToAgent | nodes.Ended):
            self._connections.from_node(node, message)
        elif isinstance(message, nodes.Open):
            self._browsers.wanted(node, message)
        elif isinstance(message, nodes.Opened | nodes.Refused):
            self._agents.from_node(node, message)
        elif isinstance(message, nodes.Replaced):
            user = self._tables.users.get(message.user)
            browser = user.browsers.get(message.extension_id) if user is not None else None
            if browser is not None:
                self._browsers.replaced(browser)
        else:
            self._lose(node, "The other relay node was cut off")
        return self._taken()

    def node_lost(self, node: str) -> list[Effect]:
        """Another node has gone."""
        self._lose(node, "The relay node of the other side has gone")
        return self._taken()

    def bus_changed(self, healthy: bool) -> list[Effect]:
        """The bus has gone or is back. Connections over it are given up, for nobody knows what was lost on it."""
        if healthy:
            self._tables.out += [ToNode(node, nodes.Reset()) for node in sorted(self._given_up)]
            self._given_up.clear()
        else:
            self._given_up.update(self._tables.by_node)
            for node in list(self._tables.by_node):
                self._lose(node, _BUS_GONE)
            self._agents.node_lost(None, f"{_BUS_GONE}.")
        self._tables.out.append(Log("bus_back" if healthy else "bus_lost", {}))
        return self._taken()

    def usage_reported(self, user: str, count: int, now: float) -> list[Effect]:
        """Another node has taken messages of a user."""
        self._users.counted(user, count, now)
        return self._taken()

    def tokens_revoked(self, tokens: Collection[str]) -> list[Effect]:
        """Tokens are no longer valid: whoever came with one is out."""
        for client in self._users.clients():
            if client.user is not None and client.token_id in tokens:
                self._end(client, wire.NOT_AUTHENTICATED, "the token was revoked")
        return self._taken()

    def tick(self, now: float) -> list[Effect]:
        """Time has passed: about every second."""
        for client in self._users.clients():
            if client.due <= now:
                self.counts.expired += 1
                late = client.user is None
                self._end(client, wire.NOT_AUTHENTICATED, "not authenticated in time" if late else "the token expired")
        self._connections.overdue(now)
        self._agents.overdue(now)
        self._browsers.ask_again(now)
        self._users.tell()
        return self._taken()

    def client_aborted(self, client: int, reason: str) -> list[Effect]:
        """A client lets too much wait, or sends too much; its socket is gone already."""
        self._tables.out.append(Log("cut", {"client": client, "user": self.user_of(client), "reason": reason}))
        self._forget(client, f"The browser was cut off: {reason}", reason)
        return self._taken()

    def user_of(self, client: int) -> str | None:
        """The name of a client's user, if it has authenticated."""
        found = self._tables.agents.get(client) or self._tables.browsers.get(client)
        return found.user.name if found is not None and found.user is not None else None

    def auth_failed(self, role: str, error: InvalidToken) -> list[Effect]:
        """A token was refused before there was a client."""
        self._users.auth_failed(role, error)
        return self._taken()

    def check_rate(self, client: int, now: float) -> float | None:
        """ReportUsage a request of an agent as a message; the seconds to wait if it is one too many."""
        agent = self._tables.agents.get(client)
        wait = self._users.over_limit(agent, now) if agent is not None else None
        self.counts.rate_limited += wait is not None
        return wait

    def refuse_client(self, client: int, code: int, reason: str) -> list[Effect]:
        """A client broke the rules of the transport."""
        found = self._tables.agents.get(client) or self._tables.browsers.get(client)
        if found is not None:
            self._end(found, code, reason)
        return self._taken()

    def shutting_down(self) -> list[Effect]:
        """The node shuts down: both sides are told to come back."""
        reason = "The relay restarts: reconnect"
        told = {id(side) for c in self._tables.connections.values() for side in (c.agent, c.browser)}
        for connection in list(self._tables.connections.values()):
            self._connections.end(connection, reason)
        for client in self._users.clients():
            if client.user is not None and id(client) not in told:
                self._tables.out.append(Send(client.client, wire.status(False, 0, self._stamp())))
            self._end(client, wire.RESTARTING, "reconnect")
        return self._taken()

    def _lose(self, node: str, reason: str) -> None:
        for connection in list(self._tables.by_node.get(node, {}).values()):
            self._connections.end(connection, reason, node_told=True)
        self._agents.node_lost(node, f"{reason}.")

    def _end(self, client: Agent | Browser, code: int, reason: str) -> None:
        self._forget(client.client, f"Extension closed: {reason}", reason)
        self._tables.out.append(Close(client.client, code, reason))

    def _forget(self, client: int, told: str, reason: str) -> None:
        agent = self._tables.agents.get(client)
        browser = self._tables.browsers.get(client)
        if agent is not None:
            self._agents.gone(agent, reason)
        elif browser is not None:
            self._browsers.gone(browser, told)

    def _taken(self) -> list[Effect]:
        out = self._tables.out
        done = out.copy()
        out.clear()
        return done
