"""The crossing: connections between agents and browsers, and what passes over them.

Owns the life of a connection, the mapping of ids, and the fate of every forwarded request: one answer, whatever
happens. Knows nothing of authentication. A browser on another node is reached through that node, by the same rules.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tabhub.errors import (
    BadFrame,
    Busy,
    CallTimeout,
    InvalidReply,
    InvalidRequest,
    LinkLost,
    NotConnected,
)
from tabhub.relay.fast_forward import FastForward, effect_of
from tabhub.relay.records import Agent, Browser, Connection, Pending, Send, Tables, ToNode, User
from tabhub.wire import nodes
from tabhub.wire import relay as wire
from tabhub.wire.relay import UNSET, Frame


class Connections:
    """All connections of one node."""

    def __init__(self, tables: Tables, stamp: Callable[[], str], fast_forward: FastForward) -> None:
        self._tables = tables
        self._out = tables.out
        self._counts = tables.counts
        self._limits = tables.limits
        self._stamp = stamp
        self._fast_forward = fast_forward

    def open(
        self, ident: str, user: User, extension_id: str, agent: Agent | None, browser: Browser | None, node: str | None
    ) -> Connection:
        """Begin a connection; both sides that are here are told how they stand."""
        connection = Connection(ident, user, extension_id, agent, browser, node)
        self._tables.connections[ident] = connection
        if node is not None:
            self._tables.by_node.setdefault(node, {})[ident] = connection
        if agent is not None:
            agent.connection = connection
        if browser is not None:
            browser.connections[ident] = connection
        return connection

    def tell(self, connection: Connection) -> None:
        """The status of both sides, after a change."""
        if connection.agent is not None:
            self.agent_status(connection.agent)
        if connection.browser is not None:
            self.browser_status(connection.browser)

    def agent_status(self, agent: Agent) -> None:
        """Tell an agent whether it is connected, and how many browsers its user has."""
        user = agent.user
        peers = len(user.browsers) + user.elsewhere if user is not None else 0
        self._send(agent.client, wire.status(agent.connection is not None, peers, self._stamp()))

    def browser_status(self, browser: Browser) -> None:
        """Tell a browser whether and how many agents are connected to it."""
        peers = len(browser.connections)
        self._send(browser.client, wire.status(peers > 0, peers, self._stamp()))

    def end(self, connection: Connection, reason: str, *, told: bool = True, node_told: bool = False) -> None:
        """End a connection: what is under way fails, and whoever is left is told (the agent unless it asked)."""
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
            if here and browser is not None:
                self._send(browser.client, wire.cancel(mapped))
            elif node is not None and not node_told:
                self._out.append(ToNode(node, nodes.ToBrowser(connection.ident, wire.cancel(mapped))))
            if agent is not None and agent.client in self._tables.agents:
                self._counts.failed += 1
                hint = "Look at the page before doing it again."
                lost = LinkLost(f"The connection to the browser ended: {reason}.", sent=True, hint=hint)
                self._send(agent.client, wire.failure(call.ident, lost))
        if node is not None and not node_told:
            self._out.append(ToNode(node, nodes.Ended(connection.ident, reason)))
        if agent is not None:
            agent.connection = None
            if agent.client in self._tables.agents:
                if told:
                    self._send(agent.client, wire.disconnected(connection.ident, reason))
                self.agent_status(agent)
        if browser is not None:
            browser.connections.pop(connection.ident, None)
            if here:
                self.browser_status(browser)

    def forward(self, agent: Agent, frame: Frame, now: float) -> None:
        """Pass an agent's request or notification on to its browser."""
        connection = agent.connection
        ident = frame.id
        if connection is None:
            if ident is not UNSET:
                raise NotConnected(
                    "Not connected to an extension.", hint="Send list_extensions, then connect with an extension_id."
                )
            return
        if frame.connectionId is not UNSET and frame.connectionId != connection.ident:
            raise NotConnected(
                "Connection not found or not accessible", hint="Leave connectionId out, or connect anew."
            )
        if ident is UNSET:
            self._counts.notices += 1
            self._down(connection, self._mapped_notice(connection, frame))
            return
        mapped = wire.map_id(connection.ident, ident)
        pending = connection.pending
        if mapped in pending:
            raise BadFrame(InvalidRequest(f"The id {ident!r} belongs to a request that has no answer yet."))
        if len(pending) >= self._limits.relay_calls:
            raise Busy(f"{len(pending)} requests of this agent wait for an answer; more are not taken.")
        pending[mapped] = Pending(ident, now + self._limits.call_timeout_max)
        self._counts.forwarded += 1
        self._down(connection, wire.forwarded(mapped, frame))

    def _mapped_notice(self, connection: Connection, frame: Frame) -> bytes:
        """A notification for the browser; one that takes a request back names it as the browser knows it."""
        place = wire.CANCELS.get(str(frame.method))
        if place is None:
            return wire.notice(frame)
        params: dict[str, Any] = wire.params_of(frame)
        named = params.get(place)
        if type(named) is int or type(named) is str:
            params[place] = wire.map_id(connection.ident, named)
        return wire.notice(frame, params)

    def _down(self, connection: Connection, data: bytes) -> None:
        if connection.browser is not None:
            self._send(connection.browser.client, data)
        elif connection.node is not None:
            self._out.append(ToNode(connection.node, nodes.ToBrowser(connection.ident, data)))

    def answer(self, browser: Browser, frame: Frame, data: bytes) -> None:
        """A browser's answer: to the agent that asked, if it asked this browser and still waits."""
        connection = self._asked_by(browser, frame.id)
        if connection is None:
            self._counts.foreign += 1
        elif connection.agent is not None:
            self._up(connection, connection.agent, frame)
        elif connection.node is not None:
            self._out.append(ToNode(connection.node, nodes.ToAgent(connection.ident, data)))

    def spoilt(self, browser: Browser, bad: BadFrame, data: bytes) -> bool:
        """A browser's answer that is none; whether it was somebody's: then that request has failed."""
        connection = self._asked_by(browser, bad.ident)
        if connection is None:
            return False
        if connection.agent is not None:
            self._fail(connection, connection.agent, bad)
        elif connection.node is not None:
            self._out.append(ToNode(connection.node, nodes.ToAgent(connection.ident, data)))
        return True

    @staticmethod
    def _asked_by(browser: Browser, ident: Any) -> Connection | None:
        """The connection an id belongs to, if it is one of this browser's."""
        if type(ident) is not str:
            return None
        return browser.connections.get(ident.partition(":")[0])

    def _up(self, connection: Connection, agent: Agent, frame: Frame) -> None:
        call = connection.pending.pop(str(frame.id), None)
        if call is None:
            self._counts.late += 1
            return
        self._counts.answered += 1
        self._send(agent.client, wire.answered(call.ident, frame))

    def _fail(self, connection: Connection, agent: Agent, bad: BadFrame) -> None:
        call = connection.pending.pop(str(bad.ident), None)
        if call is None:
            self._counts.late += 1
            return
        self._counts.failed += 1
        error = InvalidReply(f"Invalid response: the browser's answer cannot be used. {bad.error.message}")
        self._send(agent.client, wire.failure(call.ident, error))

    def spread(self, browser: Browser, frame: Frame) -> None:
        """A browser's notification: to every agent connected to it."""
        if not browser.connections:
            return
        data = wire.notice(frame)
        for connection in browser.connections.values():
            self._counts.notices += 1
            if connection.agent is not None:
                self._send(connection.agent.client, data)
            elif connection.node is not None:
                self._out.append(ToNode(connection.node, nodes.ToAgent(connection.ident, data)))

    def from_node(self, node: str, message: nodes.ToBrowser | nodes.ToAgent | nodes.Ended) -> None:
        """What another node sends over a connection it shares with this one."""
        connection = self._tables.connections.get(message.connection)
        if connection is None or connection.node != node:
            self._counts.foreign += 1
            if not isinstance(message, nodes.Ended):
                self._out.append(ToNode(node, nodes.Ended(message.connection, "The connection is not known here")))
        elif isinstance(message, nodes.Ended):
            self.end(connection, message.reason, node_told=True)
        elif isinstance(message, nodes.ToBrowser):
            if connection.browser is not None:
                self._send(connection.browser.client, message.frame)
        elif connection.agent is not None:
            self._from_far_browser(connection, connection.agent, message.frame)

    def _from_far_browser(self, connection: Connection, agent: Agent, data: bytes) -> None:
        passed = self._fast_forward.far_answer(connection, agent, data)
        if passed is not None:
            self._out.append(effect_of(passed))
            return
        try:
            frame = wire.read(data, self._limits)
        except BadFrame as bad:
            self._fail(connection, agent, bad)
            return
        if frame.method is UNSET:
            self._up(connection, agent, frame)
        else:
            self._send(agent.client, data)

    def overdue(self, now: float) -> None:
        """Answer what has waited too long; the oldest of each connection come first."""
        for connection in self._tables.connections.values():
            pending = connection.pending
            while pending:
                mapped = next(iter(pending))
                call = pending[mapped]
                if call.due > now:
                    break
                del pending[mapped]
                self._counts.timed_out += 1
                self._down(connection, wire.cancel(mapped))
                if connection.agent is not None:
                    late = CallTimeout(f"The browser gave no answer within {self._limits.call_timeout_max:g} s.")
                    self._send(connection.agent.client, wire.failure(call.ident, late))

    def _send(self, client: int, data: bytes) -> None:
        self._out.append(Send(client, data))
