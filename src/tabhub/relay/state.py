"""The state machine of a relay node, without sockets: facts in, effects out.

Owns the order of events and the timeouts; agents.py, browsers.py and connections.py own their parts. Every method
takes a fact and returns the effects to carry out, in order. Nothing here waits, reads a clock or creates an id.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tabhub.errors import InvalidToken, ParseError
from tabhub.limits import Limits
from tabhub.relay.agents import Agents
from tabhub.relay.browsers import Browsers
from tabhub.relay.bus.interface import Presence
from tabhub.relay.connections import Connections
from tabhub.relay.draining import REASON, Draining
from tabhub.relay.fast_forward import FastForward, Forwarded
from tabhub.relay.records import Agent, Browser, Close, Effect, Http, Log, Tables, ToNode
from tabhub.relay.users import Users
from tabhub.trust.jwt import Claims
from tabhub.wire import nodes
from tabhub.wire import relay as wire
from tabhub.wire.strict_json import Parsed

_BUS_UNAVAILABLE = "The relay's bus is unavailable: browsers on other nodes cannot be reached"


class Relay:
    """The state of one node."""

    def __init__(
        self,
        node: str,
        limits: Limits,
        *,
        ids: Callable[[], str],
        stamp: Callable[[], str],
        milliseconds: Callable[[], int],
    ) -> None:
        """`ids` returns a new UUID, `stamp` the wall-clock time for status messages, `milliseconds` that since 1970."""
        self.tables = Tables(node, limits)
        """Others only read them."""
        self._users = Users(self.tables)
        self._fast_forward = FastForward(self.tables, self._users)
        self._connections = Connections(self.tables, stamp, self._fast_forward)
        self._agents = Agents(self.tables, self._users, self._connections, ids)
        self._browsers = Browsers(self.tables, self._users, self._connections, ids, milliseconds)
        self._draining = Draining(self.tables, self._connections)
        self._unreset_nodes: set[str] = set()
        """Nodes that do not know yet that the connections shared with them have ended."""

    def agent_connected(self, client: int, now: float) -> list[Effect]:
        self._agents.add(client, now)
        return self._pop_effects()

    def browser_connected(self, client: int, now: float) -> list[Effect]:
        self._browsers.add(client, now)
        return self._pop_effects()

    def fast_forward(self, client: int, data: bytes, now: float) -> Forwarded | Parsed | None:
        """A text message arrived: forward it if only its id changes.

        Otherwise nothing has changed, and `message_received` must be called with what was parsed.
        """
        agent = self.tables.agents.get(client)
        if agent is not None:
            return self._fast_forward.request(agent, data, now)
        browser = self.tables.browsers.get(client)
        return self._fast_forward.reply(browser, data) if browser is not None else None

    def message_received(self, client: int, data: bytes, now: float, parsed: Parsed | None = None) -> list[Effect]:
        """A text message arrived that was not fast-forwarded."""
        found = self.tables.client(client)
        if isinstance(found, Agent):
            self._agents.receive(found, data, now, parsed)
        elif found is not None:
            self._browsers.receive(found, data, now, parsed)
        return self._pop_effects()

    def ping_received(self, client: int, now: float) -> bool:
        """A ping as the extension sends it, which idle browsers do all the time; whether it is to be answered.

        If not, `message_received` must be called.
        """
        found = self.tables.client(client)
        return found is not None and found.user is not None and self._users.check_rate(found, now) is None

    def client_disconnected(self, client: int, reason: str) -> list[Effect]:
        self._remove(client, "Extension closed", reason)
        return self._pop_effects()

    def token_verified(self, client: int, verdict: Claims | InvalidToken, now: float, remaining: float) -> list[Effect]:
        """The result of VerifyToken; a valid token expires in `remaining` seconds."""
        found = self.tables.client(client)
        if isinstance(found, Agent):
            self._agents.token_verified(found, verdict, now, remaining)
        elif found is not None:
            self._browsers.token_verified(found, verdict, now, remaining)
        return self._pop_effects()

    def browsers_found(self, ticket: int, browsers: Sequence[Presence] | None) -> list[Effect]:
        """The result of FindBrowsers; None if the bus is unavailable."""
        self._agents.browsers_found(ticket, browsers)
        return self._pop_effects()

    def remote_browsers_changed(self, user_name: str, browsers: Sequence[Presence]) -> list[Effect]:
        user = self.tables.users.get(user_name)
        if user is not None:
            self._browsers.drop_older(user, browsers)
            count = sum(1 for b in browsers if b.extension_id not in user.browsers)
            if count != user.remote_browsers:
                user.remote_browsers = count
                for agent in user.agents.values():
                    self._connections.send_agent_status(agent)
        return self._pop_effects()

    def node_message_received(self, node: str, data: bytes, now: float) -> list[Effect]:
        self.tables.counts.node_messages += 1
        try:
            message = nodes.decode(nodes.NODE_MESSAGE, data)
        except ParseError as error:
            self.tables.counts.malformed += 1
            self.tables.out.append(Log("node_message_refused", {"node": node, "reason": error.message}))
            return self._pop_effects()
        if isinstance(message, nodes.ToBrowser | nodes.ToAgent | nodes.Ended):
            self._connections.node_message_received(node, message)
        elif isinstance(message, nodes.Open):
            self._browsers.open_requested(node, message)
        elif isinstance(message, nodes.Opened | nodes.Refused):
            self._agents.open_answered(node, message)
        elif isinstance(message, nodes.HttpRequest | nodes.HttpAnswer | nodes.HttpCancel):
            self.tables.out.append(Http(node, message))
        elif isinstance(message, nodes.Drain):
            self._draining.requested(node, message.connection, now)
        else:
            self._end_node(node, "The other relay node lost its connection to the bus")
        return self._pop_effects()

    def node_lost(self, node: str) -> list[Effect]:
        self._end_node(node, "The relay node of the other side is unreachable")
        return self._pop_effects()

    def bus_changed(self, healthy: bool) -> list[Effect]:
        """Connections over a failed bus end, because messages on it may have been lost."""
        if healthy:
            self.tables.out += [ToNode(node, nodes.Reset()) for node in sorted(self._unreset_nodes)]
            self._unreset_nodes.clear()
        else:
            self._unreset_nodes.update(self.tables.by_node)
            for node in list(self.tables.by_node):
                self._end_node(node, _BUS_UNAVAILABLE)
            self._agents.node_lost(None, f"{_BUS_UNAVAILABLE}.")
        self.tables.out.append(Log("bus_back" if healthy else "bus_lost", {}))
        return self._pop_effects()

    def usage_reported(self, user: str, messages: int, now: float) -> list[Effect]:
        """Another node accepted this many messages of a user."""
        self._users.add_usage(user, messages, now)
        return self._pop_effects()

    def tokens_revoked(self, revokes: Callable[[Claims], bool]) -> list[Effect]:
        for client in self.tables.clients():
            if client.user is not None and client.claims is not None and revokes(client.claims):
                self._close(client, wire.NOT_AUTHENTICATED, "the token was revoked")
        return self._pop_effects()

    def tick(self, now: float) -> list[Effect]:
        """To be called about once a second."""
        for client in self.tables.clients():
            if client.deadline <= now:
                self.tables.counts.expired += 1
                reason = "not authenticated in time" if client.user is None else "the token expired"
                self._close(client, wire.NOT_AUTHENTICATED, reason)
        self._connections.expire(now)
        self._agents.expire(now)
        self._browsers.request_tokens(now)
        self._users.report_usage()
        self._users.forget_joins(now)
        self._drain_step(now)
        return self._pop_effects()

    def change_limits(self, limits: Limits) -> None:
        """Rates apply to users and connections that are new."""
        self.tables.limits = limits
        self._fast_forward.apply_limits(limits)

    def drain(self, now: float) -> list[Effect]:
        """The node is about to end: no one is admitted, connections end once quiet, then clients are closed."""
        self._draining.begin(now)
        self._drain_step(now)
        return self._pop_effects()

    def drain_step(self, now: float) -> list[Effect]:
        """To be called several times a second after `drain`, until `drained`."""
        self._drain_step(now)
        return self._pop_effects()

    @property
    def drained(self) -> bool:
        """Whether only engines of this node are left."""
        return not self.tables.browsers and all(agent.internal for agent in self.tables.agents.values())

    def _drain_step(self, now: float) -> None:
        self._draining.step(now)
        for client in self._draining.closable():
            if client.user is not None:
                self._connections.send_client_status(client.client, connected=False, peers=0)
            self._close(client, wire.RESTARTING, "reconnect")

    def client_aborted(self, client: int, reason: str) -> list[Effect]:
        """The transport closed a client's socket, because it does not read or sends too much."""
        self.tables.out.append(
            Log("client_aborted", {"client": client, "user": self.user_of(client), "reason": reason})
        )
        self._remove(client, f"The browser was disconnected: {reason}", reason)
        return self._pop_effects()

    def user_of(self, client: int) -> str | None:
        """The name of the user; None until the client is authenticated."""
        found = self.tables.client(client)
        return found.user.name if found is not None and found.user is not None else None

    def auth_failed(self, role: str, error: InvalidToken) -> list[Effect]:
        """A token was rejected before there was a client."""
        self._users.refused(role, error)
        return self._pop_effects()

    def check_rate(self, client: int, now: float) -> float | None:
        """Count an HTTP request of an agent as a message; the seconds to wait if it exceeds the limit."""
        agent = self.tables.agents.get(client)
        wait = self._users.check_rate(agent, now) if agent is not None else None
        self.tables.counts.rate_limited += wait is not None
        return wait

    def refuse_client(self, client: int, code: int, reason: str) -> list[Effect]:
        """A client violated the rules of the transport."""
        found = self.tables.client(client)
        if found is not None:
            self._close(found, code, reason)
        return self._pop_effects()

    def shutting_down(self) -> list[Effect]:
        """The node shuts down: all clients are asked to reconnect."""
        connected = {id(side) for c in self.tables.connections.values() for side in (c.agent, c.browser)}
        for connection in list(self.tables.connections.values()):
            self._connections.end(connection, REASON)
        for client in self.tables.clients():
            if client.user is not None and id(client) not in connected:
                self._connections.send_client_status(client.client, connected=False, peers=0)
            self._close(client, wire.RESTARTING, "reconnect")
        return self._pop_effects()

    def _end_node(self, node: str, reason: str) -> None:
        for connection in list(self.tables.by_node.get(node, {}).values()):
            self._connections.end(connection, reason, notify_node=False)
        self._agents.node_lost(node, f"{reason}.")

    def _close(self, client: Agent | Browser, code: int, reason: str) -> None:
        self._remove(client.client, f"Extension closed: {reason}", reason)
        self.tables.out.append(Close(client.client, code, reason))

    def _remove(self, client: int, browser_reason: str, reason: str) -> None:
        """Forget a client; the agents of a browser are sent `browser_reason`."""
        found = self.tables.client(client)
        if isinstance(found, Agent):
            self._agents.remove(found, reason)
        elif found is not None:
            self._browsers.remove(found, browser_reason)

    def _pop_effects(self) -> list[Effect]:
        out = self.tables.out
        effects = out.copy()
        out.clear()
        return effects
