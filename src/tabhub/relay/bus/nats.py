"""The bus over NATS: nodes in different processes and on different machines.

Owns the life of the connection, heartbeats, and messages from node to node. Core NATS only: nothing is stored
and nothing is sent twice. The connection belongs to nats_connection.py, the browsers of users to presence.py; what a
node knows of the others belongs to nodes.py.

    PREFIX.all            heartbeats, goodbyes and revoked tokens, for every node
    PREFIX.node.<node>    numbered pieces of messages for one node
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import time
from collections.abc import Callable, Sequence

from tabhub.errors import BusConnectFailed, BusRefused, BusUnavailable
from tabhub.limits import DEFAULTS, MB, Limits
from tabhub.relay.bus.current_connection import CurrentConnection
from tabhub.relay.bus.interface import VARIABLE, Bus, BusListener, Presence
from tabhub.relay.bus.nats_connection import NatsConnection, connect, read, without_credentials
from tabhub.relay.bus.nodes import BusNodes
from tabhub.relay.bus.presence import PREFIX, BusPresence, unavailable
from tabhub.relay.bus.revocation_exchange import RevocationExchange
from tabhub.relay.bus.servers import NatsServers
from tabhub.wire import nodes as wire
from tabhub.wire.nats import Message

log = logging.getLogger("tabhub.relay.bus.interface")

_TICK = 0.5
_LOST_AFTER = 7
"""Ticks without a message after which a node is lost: with its heartbeat and our tick, at most 4.5 s."""
_FIRST_RETRY, _LONGEST_RETRY = 0.25, 1.0
"""Seconds between attempts to reconnect, drawn at random, so that nodes do not all come at once; short, because other
nodes expect this one back within `_RETURN`."""
_RETURN = 3.0
"""Seconds for the nodes known before an outage of the bus to come back."""
_CHUNK = 512 * 1024
_HEAD = 512
_ALL = f"{PREFIX}.all"


class NatsBus(Bus):
    """One node's connection to the bus."""

    def __init__(
        self,
        url: str,
        node: str,
        *,
        limits: Limits = DEFAULTS,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        between: Callable[[float, float], float] = random.uniform,
    ) -> None:
        """`between` draws a number."""
        super().__init__(node)
        self._servers = NatsServers(url)
        self._clock = clock
        self._between = between
        self._max_queue = limits.relay_bus_queue
        self._nodes = BusNodes(node, patience=_LOST_AFTER, largest=limits.max_frame + MB)
        self._current = CurrentConnection()
        self._presence = BusPresence(node, self._current, clock, self._mark_alive)
        self._revocations = RevocationExchange(node, self._current, wall)
        self._ticks = 0
        self._listener: BusListener
        self._task: asyncio.Task[None] | None = None

    @property
    def healthy(self) -> bool:
        return self._current.healthy

    async def start(self, listener: BusListener) -> None:
        self._listener = listener
        self._presence.start(listener)
        self._revocations.start(listener)
        reasons, refused = [], False
        for _ in range(len(self._servers)):
            server = self._servers.next()
            try:
                await self._connect(server)
                break
            except BusConnectFailed as error:
                reasons.append(f"{without_credentials(server)}: {error}")
                refused = refused or isinstance(error, BusRefused)
        if refused and not self.healthy:
            raise BusUnavailable(
                f"The relay's bus refuses this node at {'; '.join(reasons)}.",
                hint="Check the credentials and TLS settings of nats-server and of this node, or start without --bus.",
            )
        if not self.healthy:
            log.warning("cannot connect to the bus", extra={"facts": {"reason": "; ".join(reasons)}})
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        self._current.publish(_ALL, wire.Bye(self.node))
        if (connection := self._current.replace(None)) is not None:
            await connection.close()
        self._presence.fail_waiting()

    def join(self, user: str) -> None:
        self._presence.join(user)

    def leave(self, user: str) -> None:
        self._presence.leave(user)

    def announce(self, browser: Presence) -> None:
        self._presence.announce(browser)

    def withdraw(self, browser: Presence) -> None:
        self._presence.withdraw(browser)

    async def browsers(self, user: str) -> tuple[Presence, ...]:
        if not self.healthy:
            raise unavailable()
        return await self._presence.browsers(user)

    def send(self, node: str, message: bytes) -> bool:
        connection = self._current.connection
        if connection is None or not connection.healthy:
            return False
        pieces = self._nodes.split(node, message, min(_CHUNK, max(connection.largest - _HEAD, _HEAD)))
        sent = bool(pieces)
        for piece in pieces:  # one that does not fit leaves a gap, by which the other node detects the loss
            sent = connection.publish_bounded(f"{PREFIX}.node.{node}", wire.encode(piece)) and sent
        return sent

    def report_usage(self, user: str, count: int) -> None:
        self._presence.report_usage(user, count)

    def revoke(self, entries: Sequence[str]) -> None:
        self._revocations.publish(entries)

    # messages from NATS

    def _to_node(self, message: Message) -> None:
        piece = read(wire.PIECE, message)
        if piece is None or piece.node == self.node:
            return
        node = piece.node
        self._mark_alive(node)
        arrival = self._nodes.receive(piece)
        if arrival.lost:
            log.warning("lost messages of a node", extra={"facts": {"node": node}})
            if arrival.notify:
                self._give_up(node)
            self._listener.node_lost(node)
        if arrival.message is not None:
            self._listener.message_received(node, arrival.message)

    def _to_all(self, message: Message) -> None:
        body = read(wire.TO_ALL, message)
        if body is None or body.node == self.node:
            return
        if isinstance(body, wire.Bye):
            if self._nodes.remove(body.node):
                self._revocations.node_ended(body.node)
                self._listener.node_lost(body.node)
                self._presence.node_ended(body.node)
            return
        self._mark_alive(body.node)
        if isinstance(body, wire.Revoked):
            self._listener.tokens_revoked(body.entries)
        else:
            self._revocations.compare(body)

    def _mark_alive(self, node: str) -> None:
        if self._nodes.mark_alive(node):  # it was lost before: both sides start over
            log.info("node_back", extra={"facts": {"node": node}})
            self._give_up(node)
            self._presence.node_back(node)

    def _give_up(self, node: str) -> None:
        for piece in self._nodes.give_up(node):
            self._current.publish(f"{PREFIX}.node.{node}", piece)

    async def _connect(self, server: str) -> None:
        token = os.environ.get(VARIABLE) or None
        connection = await connect(server, f"tabhub relay {self.node}", max_queue=self._max_queue, token=token)
        connection.on_info = self._note_cluster
        self._note_cluster(connection)
        connection.subscribe(f"{PREFIX}.node.{self.node}", self._to_node)
        connection.subscribe(_ALL, self._to_all)
        self._current.replace(connection)
        self._current.publish(_ALL, self._revocations.heartbeat())
        self._presence.connected(_RETURN)
        await self._revocations.connected()

    def _note_cluster(self, connection: NatsConnection) -> None:
        self._servers.named(connection.url, connection.others)
        if connection.leaving:
            self._servers.lost(connection.url)

    async def _run(self) -> None:
        while True:
            await self._tick_until_lost()
            connection = self._current.replace(None)
            self._presence.disconnected()
            self._nodes.clear()
            self._call_safely(lambda: self._listener.bus_changed(False))
            if connection is not None:
                self._servers.lost(connection.url)
                log.warning("lost the connection to the bus", extra={"facts": {"reason": connection.close_reason}})
                await connection.close()
            await self._reconnect()
            self._call_safely(lambda: self._listener.bus_changed(True))

    async def _reconnect(self) -> None:
        reported = ""
        await asyncio.sleep(self._between(0.0, _FIRST_RETRY))
        while self._current.connection is None:
            try:
                await self._connect(self._servers.next())
            except BusConnectFailed as error:
                if reported != str(error):
                    reported = str(error)
                    log.warning("cannot connect to the bus", extra={"facts": {"reason": reported}})
                await asyncio.sleep(self._between(_FIRST_RETRY, _LONGEST_RETRY))

    async def _tick_until_lost(self) -> None:
        """Send heartbeats and detect lost nodes until the connection is lost."""
        while (connection := self._current.connection) is not None and connection.healthy:
            try:
                async with asyncio.timeout(_TICK):
                    await connection.lost.wait()
            except TimeoutError:
                self._call_safely(self._tick)

    def _tick(self) -> None:
        self._ticks += 1
        if self._current.connection is not None:
            self._current.connection.tick()
        for node in self._nodes.tick():
            self._revocations.node_ended(node)
            self._listener.node_lost(node)
            self._presence.node_lost(node)
        self._presence.tick()
        if self._ticks % 2:
            self._current.publish(_ALL, self._revocations.heartbeat())
            for node, mark in self._nodes.marks():
                self._current.publish(f"{PREFIX}.node.{node}", mark)

    def _call_safely(self, what: Callable[[], None]) -> None:
        """An error in the listener must not stop the bus."""
        try:
            what()
        except Exception:
            log.exception("error while handling an event of the bus")
