"""The agents of a relay node: handshake, control methods, and requests forwarded to a browser.

Owns which messages an agent may send and when. Forwarding over a connection belongs to connections.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tabhub.errors import (
    AlreadyConnected,
    BadFrame,
    BadInput,
    BusUnavailable,
    Busy,
    InvalidRequest,
    InvalidToken,
    MethodNotFound,
    RateLimited,
    RelayError,
    TabhubError,
)
from tabhub.relay.bus.interface import Presence
from tabhub.relay.connections import Connections
from tabhub.relay.records import Agent, Close, FindBrowsers, Log, Opening, Send, Tables, ToNode, User
from tabhub.relay.users import Users
from tabhub.trust.jwt import Claims
from tabhub.trust.leaky_bucket import LeakyBucket
from tabhub.wire import nodes
from tabhub.wire import relay as wire
from tabhub.wire.jsonrpc import Id, encode_failure
from tabhub.wire.relay import UNSET, Frame
from tabhub.wire.strict_json import Parsed

_NOT_FOUND = "Extension not found or not accessible"


class Agents:
    """All agents of one node."""

    def __init__(self, tables: Tables, users: Users, connections: Connections, ids: Callable[[], str]) -> None:
        self._tables = tables
        self._out = tables.out
        self._users = users
        self._connections = connections
        self._ids = ids
        self._tickets: dict[int, tuple[Agent, Id, Opening | None]] = {}
        self._last_ticket = 0
        self._openings: dict[str, Agent] = {}
        """Agents that wait for another node, by connection id."""

    def add(self, client: int, now: float) -> None:
        limits = self._tables.limits
        self._tables.agents[client] = Agent(client, LeakyBucket(limits.relay_client_rate), now + limits.relay_auth)

    def receive(self, agent: Agent, data: bytes, now: float, parsed: Parsed | None) -> None:
        ident: Id | None = None
        try:
            frame = wire.read(data, self._tables.limits, parsed)
            if frame.method is UNSET:
                raise BadFrame(InvalidRequest("An agent sends requests and notifications, not replies."))
            if frame.id is not UNSET:
                ident = frame.id
                wire.check_id(ident)
            wait = self._users.check_rate(agent, now)
            if wait is not None:
                raise RateLimited("Too many messages.", retry_after=int(wait) + 1)
            self._dispatch(agent, frame, now)
        except BadFrame as bad:
            self._tables.counts.malformed += 1
            self._send(agent, encode_failure(bad.ident, bad.error))
        except TabhubError as error:
            if isinstance(error, RateLimited):
                self._tables.counts.rate_limited += 1
            elif isinstance(error, BadInput):
                self._tables.counts.malformed += 1
            if ident is not None:
                self._send(agent, encode_failure(ident, error))

    def _dispatch(self, agent: Agent, frame: Frame, now: float) -> None:
        method, ident, user = str(frame.method), frame.id, agent.user
        if method in wire.RELAY_ONLY:
            raise MethodNotFound(f"Method not found: {method} is reserved for the relay.")
        if user is None and method != "mcp_handshake":
            raise RelayError("Not authenticated: send mcp_handshake first.")
        if method not in wire.CONTROL:
            if method == "ping" and ident is UNSET:
                self._send(agent, wire.PONG)
            else:
                self._connections.forward(agent, frame, now)
        elif ident is UNSET:
            return  # a notification has no reply
        elif user is None or method in ("mcp_handshake", "refresh_token"):
            self._handshake(agent, ident, frame, renew=method == "refresh_token")
        elif method == "list_extensions":
            self._find_browsers(agent, user, ident, None)
        elif method == "connect":
            self._connect(agent, user, ident, frame, now)
        else:
            self._disconnect(agent)
            self._send(agent, wire.result(ident, wire.DisconnectResult()))

    def _handshake(self, agent: Agent, ident: Id, frame: Frame, *, renew: bool) -> None:
        if agent.verifying or (agent.user is not None) != renew:
            detail = "its verification is in progress" if agent.verifying else "use refresh_token to replace it"
            raise InvalidRequest(f"This agent has already sent its token: {detail}.")
        token = wire.params_of(frame).token
        agent.auth_request = ident
        self._users.verify_token(agent, token)

    def token_verified(self, agent: Agent, verdict: Claims | InvalidToken, now: float, remaining: float) -> None:
        ident, agent.auth_request = agent.auth_request, None
        known = agent.user
        try:
            claims = self._users.accept_token(agent, verdict, "agent", now, remaining)
            if known is None and ident is not None:  # an engine of this node has no handshake, and opens few
                self._users.check_joins(claims.user, now)
            user = known if known is not None else self._users.admit(claims.user)
        except TabhubError as error:
            if ident is not None:
                self._send(agent, encode_failure(ident, error))
            code = self._users.refused("agent", error)
            self.remove(agent, "refused")
            self._out.append(Close(agent.client, code, error.message))
            return
        if known is None:
            agent.user, agent.ident, agent.internal = user, f"mcp-{self._ids()}", ident is None
            user.agents[agent.client] = agent
            self._tables.counts.authenticated += 1
            self._out.append(Log("agent_authenticated", {"user": user.name, "agent": agent.ident}))
        if ident is not None:
            self._send(agent, wire.result(ident, wire.Authenticated(user.name, agent.ident)))

    def _find_browsers(self, agent: Agent, user: User, ident: Id, opening: Opening | None) -> None:
        self._last_ticket += 1
        self._tickets[self._last_ticket] = (agent, ident, opening)
        self._out.append(FindBrowsers(self._last_ticket, user.name))

    def browsers_found(self, ticket: int, browsers: Sequence[Presence] | None) -> None:
        """The browsers on other nodes; None if the bus is unavailable."""
        agent, ident, opening = self._tickets.pop(ticket)
        user = agent.user
        if agent.client not in self._tables.agents or user is None:
            return
        remote = [b for b in browsers or () if b.user == user.name and b.extension_id not in user.browsers]
        user.remote_browsers = len(remote)
        if opening is None:
            listed = {b.extension_id: b.name for b in remote} | {b.ident: b.name for b in user.browsers.values()}
            extensions = [wire.Extension(known, name) for known, name in sorted(listed.items())]
            self._send(agent, wire.result(ident, wire.Extensions(extensions)))
            return
        if agent.opening is not opening:
            return  # it was cancelled
        if opening.extension_id in user.browsers:
            agent.opening = None
            self._open_here(agent, user, ident, opening.extension_id)
            return
        there = next((b for b in remote if b.extension_id == opening.extension_id), None)
        if there is not None:
            opening.connection, opening.node = f"conn-{self._ids()}", there.node
            self._openings[opening.connection] = agent
            self._out.append(ToNode(there.node, nodes.Open(opening.connection, user.name, there.extension_id)))
        elif browsers is None:
            why = "Extension not found on this node; other nodes cannot be reached: bus unavailable."
            self._refuse_opening(agent, BusUnavailable(why))
        else:
            self._refuse_opening(agent, RelayError(_NOT_FOUND))

    def _connect(self, agent: Agent, user: User, ident: Id, frame: Frame, now: float) -> None:
        extension_id = wire.params_of(frame).extension_id
        if agent.connection is not None or agent.opening is not None:
            raise AlreadyConnected("MCP client already connected to an extension")
        if self._tables.draining and not agent.internal:
            raise Busy("The relay node is about to restart.", hint="Reconnect, then connect again.")
        if extension_id in user.browsers:
            self._open_here(agent, user, ident, extension_id)
            return
        agent.opening = Opening(ident, extension_id, now + self._tables.limits.relay_open)
        self._find_browsers(agent, user, ident, agent.opening)

    def _open_here(self, agent: Agent, user: User, ident: Id, extension_id: str) -> None:
        browser = user.browsers[extension_id]
        connection = self._connections.open(f"conn-{self._ids()}", user, extension_id, agent, browser, None)
        self._send(agent, wire.result(ident, wire.Connected(connection.ident, extension_id, browser.name)))
        self._connections.send_status(connection)

    def open_answered(self, node: str, message: nodes.Opened | nodes.Refused) -> None:
        """Another node answered a `connect`."""
        agent = self._openings.get(message.connection)
        opening = agent.opening if agent is not None else None
        if agent is None or agent.user is None or opening is None or opening.node != node:
            if isinstance(message, nodes.Opened):  # its agent no longer waits
                self._out.append(ToNode(node, nodes.Ended(message.connection, "The agent disconnected")))
        elif isinstance(message, nodes.Refused):
            self._refuse_opening(agent, RelayError(_NOT_FOUND))
        else:
            agent.opening = None
            del self._openings[message.connection]
            connection = self._connections.open(message.connection, agent.user, opening.extension_id, agent, None, node)
            connected = wire.Connected(connection.ident, opening.extension_id, message.name)
            self._send(agent, wire.result(opening.request, connected))
            self._connections.send_status(connection)

    def _refuse_opening(self, agent: Agent, error: TabhubError) -> None:
        opening, agent.opening = agent.opening, None
        if opening is not None:
            self._openings.pop(opening.connection, None)
            self._send(agent, encode_failure(opening.request, error))

    def node_lost(self, node: str | None, why: str) -> None:
        """Fail every `connect` that waits for this node; None: for any node."""
        for agent in list(self._openings.values()):
            if agent.opening is not None and node in (None, agent.opening.node):
                self._refuse_opening(agent, BusUnavailable(why))

    def _disconnect(self, agent: Agent) -> None:
        """End the agent's connection, or its `connect` that waits for another node."""
        unfinished = "The agent disconnected before the connection was established."
        self._cancel_opening(agent, "Cancelled by the agent", unfinished)
        if agent.connection is not None:
            self._connections.end(agent.connection, "The agent disconnected", notify_agent=False)

    def _cancel_opening(self, agent: Agent, reason: str, message: str) -> None:
        """Tell the other node the reason, and the agent the message."""
        opening = agent.opening
        if opening is not None:
            if opening.node is not None:
                self._out.append(ToNode(opening.node, nodes.Ended(opening.connection, reason)))
            self._refuse_opening(agent, RelayError(message))

    def remove(self, agent: Agent, reason: str) -> None:
        """Forget an agent whose WebSocket has closed or is about to be closed."""
        if self._tables.agents.pop(agent.client, None) is None:
            return
        self._disconnect(agent)
        if (user := agent.user) is not None:
            user.agents.pop(agent.client, None)
            self._out.append(Log("agent_disconnected", {"user": user.name, "agent": agent.ident, "reason": reason}))
            self._users.release(user)

    def expire(self, now: float) -> None:
        """Fail every `connect` that no node answered in time."""
        for agent in list(self._tables.agents.values()):
            if agent.opening is not None and agent.opening.deadline <= now:
                self._cancel_opening(agent, "Timed out", "The node of this extension did not answer in time.")

    def _send(self, agent: Agent, data: bytes) -> None:
        self._out.append(Send(agent.client, data))
