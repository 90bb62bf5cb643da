"""Connections between agents and browsers, and the messages forwarded over them.

Owns opening and ending connections, the mapping of ids, and the promise that every forwarded request is answered
exactly once. Knows nothing of authentication. A browser on another node is reached through that node by the same rules.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile
from typing import Any

from tabhub.errors import BadFrame, Busy, CallTimeout, InvalidReply, InvalidRequest, LinkLost, NotConnected
from tabhub.relay.fast_forward import FastForward, effect_of
from tabhub.relay.records import Agent, Browser, Connection, Pending, Send, Tables, ToNode, User
from tabhub.wire import nodes
from tabhub.wire import relay as wire
from tabhub.wire.jsonrpc import encode_failure
from tabhub.wire.relay import UNSET, Frame


class Connections:
    """All connections of one node."""

    def __init__(self, tables: Tables, stamp: Callable[[], str], fast_forward: FastForward) -> None:
        self._tables = tables
        self._out = tables.out
        self._counts = tables.counts
        self._stamp = stamp
        self._fast_forward = fast_forward

    def open(
        self, ident: str, user: User, extension_id: str, agent: Agent | None, browser: Browser | None, node: str | None
    ) -> Connection:
        connection = Connection(ident, user, extension_id, agent, browser, node)
        self._tables.connections[ident] = connection
        if node is not None:
            self._tables.by_node.setdefault(node, {})[ident] = connection
        if agent is not None:
            agent.connection = connection
        if browser is not None:
            browser.connections[ident] = connection
        return connection

    def send_status(self, connection: Connection) -> None:
        """Send both sides that are on this node their status."""
        if connection.agent is not None:
            self.send_agent_status(connection.agent)
        if connection.browser is not None:
            self.send_browser_status(connection.browser)

    def send_agent_status(self, agent: Agent) -> None:
        user = agent.user
        peers = len(user.browsers) + user.remote_browsers if user is not None else 0
        self.send_client_status(agent.client, connected=agent.connection is not None, peers=peers)

    def send_browser_status(self, browser: Browser) -> None:
        peers = len(browser.connections)
        self.send_client_status(browser.client, connected=peers > 0, peers=peers)

    def send_client_status(self, client: int, *, connected: bool, peers: int) -> None:
        self._send(client, wire.notification(wire.Status(connected, peers, self._stamp())))

    def end(self, connection: Connection, reason: str, *, notify_agent: bool = True, notify_node: bool = True) -> None:
        """End a connection, fail its pending requests and send everyone involved their status."""
        if self._tables.connections.pop(connection.ident, None) is None:
            return
        agent, browser, node = connection.agent, connection.browser, connection.node
        if node is not None:
            known = self._tables.by_node.get(node, {})
            known.pop(connection.ident, None)
            if not known:
                self._tables.by_node.pop(node, None)
        pending, connection.pending = connection.pending, {}
        here = browser is not None and browser.client in self._tables.browsers
        for mapped, call in pending.items():
            cancel = wire.notification(wire.Cancel(mapped))
            if here and browser is not None:
                self._send(browser.client, cancel)
            elif node is not None and notify_node:
                self._out.append(ToNode(node, nodes.ToBrowser(connection.ident, cancel)))
            if agent is not None and agent.client in self._tables.agents:
                self._counts.failed += 1
                hint = "Check the page before retrying."
                lost = LinkLost(f"The connection to the browser ended: {reason}.", sent=True, hint=hint)
                self._send(agent.client, encode_failure(call.ident, lost))
        if node is not None and notify_node:
            self._out.append(ToNode(node, nodes.Ended(connection.ident, reason)))
        if agent is not None:
            agent.connection = None
            if agent.client in self._tables.agents:
                if notify_agent:
                    self._send(agent.client, wire.notification(wire.Disconnected(connection.ident, reason)))
                self.send_agent_status(agent)
        if browser is not None:
            browser.connections.pop(connection.ident, None)
            if here:
                self.send_browser_status(browser)

    def forward(self, agent: Agent, frame: Frame, now: float) -> None:
        """Forward a request or notification of an agent to its browser."""
        connection = agent.connection
        ident = frame.id
        if connection is None:
            raise NotConnected(
                "Not connected to an extension.", hint="Send list_extensions, then connect with an extension_id."
            )
        if frame.connectionId is not UNSET and frame.connectionId != connection.ident:
            raise NotConnected("Connection not found or not accessible", hint="Omit connectionId, or connect again.")
        if connection.refuses and ident is not UNSET:
            raise Busy("The relay node is about to restart.", hint="Reconnect, then send the request again.")
        if ident is UNSET:
            self._counts.notices += 1
            self._send_to_browser(connection, wire.notice(connection.ident, frame))
            return
        mapped = wire.map_id(connection.ident, ident)
        pending = connection.pending
        if mapped in pending:
            raise BadFrame(InvalidRequest(f"Duplicate id {ident!r}: an earlier request with this id is still pending."))
        if len(pending) >= self._tables.limits.relay_calls:
            raise Busy(f"This agent already has {len(pending)} pending requests, the maximum.")
        pending[mapped] = Pending(ident, now + self._tables.limits.call_timeout_max)
        self._counts.forwarded += 1
        self._send_to_browser(connection, wire.forwarded(mapped, frame))

    def _send_to_browser(self, connection: Connection, data: bytes) -> None:
        if connection.browser is not None:
            self._send(connection.browser.client, data)
        elif connection.node is not None:
            self._out.append(ToNode(connection.node, nodes.ToBrowser(connection.ident, data)))

    def forward_reply(self, browser: Browser, frame: Frame, data: bytes) -> None:
        """Forward a reply to the agent whose request it answers, if that is still pending at this browser."""
        connection = self._connection_of(browser, frame.id)
        if connection is None:
            self._counts.foreign += 1
        elif connection.agent is not None:
            self._to_agent(connection, connection.agent, frame)
        else:
            self._to_remote_agent(connection, data)

    def malformed_reply(self, browser: Browser, bad: BadFrame, data: bytes) -> bool:
        """Handle a malformed reply. Returns True if its id belongs to a connection; its request then fails."""
        connection = self._connection_of(browser, bad.ident)
        if connection is None:
            return False
        if connection.agent is not None:
            self._fail(connection, connection.agent, bad)
        else:
            self._to_remote_agent(connection, data)
        return True

    @staticmethod
    def _connection_of(browser: Browser, ident: Any) -> Connection | None:
        """The connection of this browser that a mapped id belongs to."""
        if type(ident) is not str:
            return None
        return browser.connections.get(ident.partition(":")[0])

    def _to_remote_agent(self, connection: Connection, data: bytes) -> None:
        if connection.node is not None:
            self._out.append(ToNode(connection.node, nodes.ToAgent(connection.ident, data)))

    def _to_agent(self, connection: Connection, agent: Agent, frame: Frame) -> None:
        if (call := self._pop_call(connection, frame.id)) is not None:
            self._counts.answered += 1
            self._send(agent.client, wire.answered(call.ident, frame))

    def _fail(self, connection: Connection, agent: Agent, bad: BadFrame) -> None:
        if (call := self._pop_call(connection, bad.ident)) is not None:
            self._counts.failed += 1
            error = InvalidReply(f"Invalid response: the browser sent a malformed reply. {bad.error.message}")
            self._send(agent.client, encode_failure(call.ident, error))

    def _pop_call(self, connection: Connection, mapped: Any) -> Pending | None:
        """The request that a reply answers; None if it has had its reply."""
        call = connection.pending.pop(str(mapped), None)
        self._counts.late += call is None
        return call

    def forward_notification(self, browser: Browser, frame: Frame) -> None:
        """Forward a browser's notification to the connection it names, or to all agents connected to it."""
        connections = list(browser.connections.values())
        if frame.connectionId is not UNSET:
            connections = [each for each in connections if each.ident == frame.connectionId]
            self._counts.foreign += not connections
        if not connections:
            return
        data = wire.passed_on(frame)
        for connection in connections:
            self._counts.notices += 1
            if connection.agent is not None:
                self._send(connection.agent.client, data)
            else:
                self._to_remote_agent(connection, data)

    def node_message_received(self, node: str, message: nodes.ToBrowser | nodes.ToAgent | nodes.Ended) -> None:
        connection = self._tables.connections.get(message.connection)
        if connection is None or connection.node != node:
            self._counts.foreign += 1
            if not isinstance(message, nodes.Ended):
                self._out.append(ToNode(node, nodes.Ended(message.connection, "Unknown connection")))
        elif isinstance(message, nodes.Ended):
            self.end(connection, message.reason, notify_node=False)
        elif isinstance(message, nodes.ToBrowser):
            if connection.browser is not None:
                self._send(connection.browser.client, message.frame)
        elif connection.agent is not None:
            self._from_remote_browser(connection, connection.agent, message.frame)

    def _from_remote_browser(self, connection: Connection, agent: Agent, data: bytes) -> None:
        forwarded = self._fast_forward.remote_reply(connection, agent, data)
        if isinstance(forwarded, tuple):
            self._out.append(effect_of(forwarded))
            return
        try:
            frame = wire.read(data, self._tables.limits, forwarded)
        except BadFrame as bad:
            self._fail(connection, agent, bad)
            return
        if frame.method is UNSET:
            self._to_agent(connection, agent, frame)
        else:
            self._send(agent.client, data)

    def expire(self, now: float) -> None:
        """Fail pending requests past their deadline; each connection has them in order."""
        for connection in self._tables.connections.values():
            for mapped, call in list(takewhile(lambda item: item[1].deadline <= now, connection.pending.items())):
                del connection.pending[mapped]
                self._counts.timed_out += 1
                self._send_to_browser(connection, wire.notification(wire.Cancel(mapped)))
                if connection.agent is not None:
                    late = CallTimeout(f"The browser did not reply within {self._tables.limits.call_timeout_max:g} s.")
                    self._send(connection.agent.client, encode_failure(call.ident, late))

    def _send(self, client: int, data: bytes) -> None:
        self._out.append(Send(client, data))
