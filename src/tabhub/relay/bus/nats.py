"""The bus over NATS: nodes in different processes and on different machines.

Owns the subjects and the messages on them. Core NATS only: nothing is stored and nothing is sent twice. The connection
belongs to nats_connection.py; what a node knows of the others belongs to nodes.py and rosters.py.

    tabhub.all                   heartbeats, goodbyes and revoked tokens, for every node
    tabhub.node.<node>           numbered pieces of messages for one node
    tabhub.user.<hash>           for the nodes that have joined a user: browsers by node, and usage
    tabhub.reply.<node>.<hash>   answers to a node that has just joined a user
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import time
from collections.abc import Callable, Sequence

import msgspec

from tabhub.errors import BusConnectFailed, BusRefused, BusUnavailable
from tabhub.limits import DEFAULTS, MB, Limits
from tabhub.relay.bus.interface import Bus, BusListener, Presence
from tabhub.relay.bus.nats_connection import NatsConnection, connect, read, without_credentials
from tabhub.relay.bus.nodes import BusNodes
from tabhub.relay.bus.rosters import Roster, subject_of
from tabhub.relay.bus.servers import NatsServers
from tabhub.wire import nodes as wire
from tabhub.wire.nats import Message

log = logging.getLogger("tabhub.relay.bus.interface")

VARIABLE = "TABHUB_RELAY_BUS_TOKEN"
"""Environment variable with the NATS token; in a URL it would be visible in the process list."""

_TICK = 0.5
_LOST_AFTER = 7
"""Ticks without a message after which a node is lost: with its heartbeat and our tick, at most 4.5 s."""
_FIRST_RETRY, _LONGEST_RETRY = 0.25, 1.0
"""Seconds between attempts to reconnect, drawn at random, so that nodes do not all come at once; short, because other
nodes expect this one back within `_RETURN`."""
_QUERY_TIMEOUT = 1.0
_GRACE = 0.05
_RETURN = 3.0
"""Seconds for the nodes known before an outage of the bus to come back."""
_CHUNK = 512 * 1024
_HEAD = 512
_ENTRIES = 1000
_ALL = "tabhub.all"


class NatsBus(Bus):
    """One node's connection to the bus."""

    def __init__(
        self,
        url: str,
        node: str,
        *,
        limits: Limits = DEFAULTS,
        clock: Callable[[], float] = time.monotonic,
        between: Callable[[float, float], float] = random.uniform,
    ) -> None:
        """`between` draws a number."""
        super().__init__(node)
        self._servers = NatsServers(url)
        self._clock = clock
        self._between = between
        self._max_queue = limits.relay_bus_queue
        self._nodes = BusNodes(node, patience=_LOST_AFTER, largest=limits.max_frame + MB)
        self._rosters: dict[str, Roster] = {}
        """By the part of their subjects that stands for the user."""
        self._version = 0
        self._ticks = 0
        self._listener: BusListener
        self._connection: NatsConnection | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def healthy(self) -> bool:
        return self._connection is not None and self._connection.healthy

    async def start(self, listener: BusListener) -> None:
        self._listener = listener
        reasons, refused = [], False
        for _ in range(len(self._servers)):
            server = self._servers.next()
            try:
                await self._connect(server)
                break
            except BusConnectFailed as error:
                reasons.append(f"{without_credentials(server)}: {error}")
                refused = refused or isinstance(error, BusRefused)
        if refused and self._connection is None:
            raise BusUnavailable(
                f"The relay's bus refuses this node at {'; '.join(reasons)}.",
                hint="Check the credentials and TLS settings of nats-server and of this node, or start without --bus.",
            )
        if self._connection is None:
            log.warning("cannot connect to the bus", extra={"facts": {"reason": "; ".join(reasons)}})
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        if self._connection is not None:
            self._publish(_ALL, wire.Bye(self.node))
            await self._connection.close()
            self._connection = None
        self._fail_waiting()

    def join(self, user: str) -> None:
        self._ensure_roster(user).joined = True

    def leave(self, user: str) -> None:
        roster = self._rosters.get(subject_of(user))
        if roster is not None:
            roster.joined = False
            self._release(roster)

    def announce(self, browser: Presence) -> None:
        roster = self._ensure_roster(browser.user)
        if roster.own.get(browser.extension_id) != browser.name:
            roster.own[browser.extension_id] = browser.name
            self._publish_own(roster)

    def withdraw(self, browser: Presence) -> None:
        roster = self._rosters.get(subject_of(browser.user))
        if roster is not None and roster.own.pop(browser.extension_id, None) is not None:
            self._publish_own(roster)
            self._release(roster)

    async def browsers(self, user: str) -> tuple[Presence, ...]:
        """Known at once, except just after joining the user."""
        if not self.healthy:
            raise _unavailable()
        roster = self._ensure_roster(user)
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        roster.waiting.append(done)
        try:
            if not roster.complete:
                await done
            return roster.browsers()
        finally:
            roster.waiting.remove(done)
            self._release(roster)

    def send(self, node: str, message: bytes) -> bool:
        connection = self._connection
        if connection is None or not connection.healthy:
            return False
        pieces = self._nodes.split(node, message, min(_CHUNK, max(connection.largest - _HEAD, _HEAD)))
        sent = bool(pieces)
        for piece in pieces:  # one that does not fit leaves a gap, by which the other node detects the loss
            sent = connection.publish_bounded(f"tabhub.node.{node}", wire.encode(piece)) and sent
        return sent

    def report_usage(self, user: str, count: int) -> None:
        roster = self._rosters.get(subject_of(user))
        if roster is not None and any(member.here for member in roster.members.values()):
            self._publish(_user_subject(roster), wire.Usage(self.node, count))

    def revoke(self, entries: Sequence[str]) -> None:
        for at in range(0, len(entries), _ENTRIES):
            self._publish(_ALL, wire.Revoked(self.node, tuple(entries[at : at + _ENTRIES])))

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
                self._node_lost(body.node)
            return
        self._mark_alive(body.node)
        if isinstance(body, wire.Revoked):
            self._listener.tokens_revoked(body.entries)

    def _to_user(self, message: Message) -> None:
        roster = self._rosters.get(message.subject.rpartition(".")[2])
        body = read(wire.TO_USER, message)
        if roster is None or body is None or body.node == self.node:
            return
        self._mark_alive(body.node)
        if isinstance(body, wire.Usage):
            self._listener.usage_reported(roster.user, body.count)
            return
        if isinstance(body, wire.Left):
            changed = roster.update(body.node, body.version, (), here=False)
        else:
            changed = roster.update(body.node, body.version, body.browsers)
        if isinstance(body, wire.Query) and message.reply.startswith("tabhub.reply."):
            others = tuple(n for n, member in roster.members.items() if member.here and n != body.node)
            reply = wire.QueryReply(self.node, self._version, roster.own_browsers, others)
            self._publish(message.reply, reply)
        self._changed(roster, changed)

    def _replied(self, message: Message) -> None:
        roster = self._rosters.get(message.subject.rpartition(".")[2])
        if roster is None:
            return
        if message.no_responders:
            asyncio.get_running_loop().call_later(_GRACE, self._no_responders, roster)
            return
        body = read(wire.REPLY, message)
        if body is not None:
            self._mark_alive(body.node)
            self._changed(roster, roster.receive_reply(body, self.node))

    def _no_responders(self, roster: Roster) -> None:
        """No other node has joined this user, including one whose message was in flight at the query."""
        roster.no_responders()
        self._changed(roster, changed=False)

    def _mark_alive(self, node: str) -> None:
        if self._nodes.mark_alive(node):  # it was lost before: both sides start over
            log.info("node_back", extra={"facts": {"node": node}})
            self._give_up(node)
            for roster in list(self._rosters.values()):
                self._query(roster, _QUERY_TIMEOUT)

    def _give_up(self, node: str) -> None:
        for piece in self._nodes.give_up(node):
            self._publish(f"tabhub.node.{node}", piece)

    def _node_lost(self, node: str) -> None:
        """Report a lost node and remove its browsers."""
        self._listener.node_lost(node)
        for roster in list(self._rosters.values()):
            self._changed(roster, roster.remove_node(node))

    def _changed(self, roster: Roster, changed: bool) -> None:
        """After an update of a roster: wake its waiters and notify the listener."""
        settled = roster.check_complete(self._clock())
        if settled:
            for done in roster.waiting:
                if not done.done():
                    done.set_result(None)
        again, roster.stale = settled and roster.stale, roster.stale and not settled
        if (changed or again) and roster.joined:
            self._listener.browsers_changed(roster.user)

    # messages to NATS

    def _ensure_roster(self, user: str) -> Roster:
        """The roster of a user; a new one is queried from the other nodes."""
        roster = self._rosters.get(subject_of(user))
        if roster is None:
            roster = self._rosters[subject_of(user)] = Roster(user)
            self._query(roster, _QUERY_TIMEOUT)
        return roster

    def _query(self, roster: Roster, patience: float) -> None:
        roster.begin_query(self._clock() + patience)
        if self._connection is None:
            return
        self._connection.subscribe(_user_subject(roster), self._to_user)
        self._version += 1
        query = wire.Query(self.node, self._version, roster.own_browsers)
        reply = f"tabhub.reply.{self.node}.{subject_of(roster.user)}"
        self._publish(_user_subject(roster), query, reply)

    def _publish_own(self, roster: Roster) -> None:
        self._version += 1
        self._publish(_user_subject(roster), wire.BrowsersChanged(self.node, self._version, roster.own_browsers))

    def _release(self, roster: Roster) -> None:
        """Drop the roster of a user that this node no longer needs."""
        needed = roster.joined or roster.own or roster.waiting
        if needed or self._rosters.get(subject_of(roster.user)) is not roster:
            return
        del self._rosters[subject_of(roster.user)]
        self._version += 1
        self._publish(_user_subject(roster), wire.Left(self.node, self._version))
        if self._connection is not None:
            self._connection.unsubscribe(_user_subject(roster))

    def _publish(self, subject: str, message: msgspec.Struct, reply: str = "") -> None:
        if self._connection is not None:
            self._connection.publish(subject, wire.encode(message), reply)

    async def _connect(self, server: str) -> None:
        token = os.environ.get(VARIABLE) or None
        connection = await connect(server, f"tabhub relay {self.node}", max_queue=self._max_queue, token=token)
        connection.on_info = self._note_cluster
        self._note_cluster(connection)
        connection.subscribe(f"tabhub.node.{self.node}", self._to_node)
        connection.subscribe(_ALL, self._to_all)
        connection.subscribe(f"tabhub.reply.{self.node}.*", self._replied)
        self._connection = connection
        self._publish(_ALL, wire.Beat(self.node))
        for roster in list(self._rosters.values()):
            self._query(roster, _RETURN if roster.missing else _QUERY_TIMEOUT)

    def _note_cluster(self, connection: NatsConnection) -> None:
        self._servers.named(connection.url, connection.others)
        if connection.leaving:
            self._servers.lost(connection.url)

    async def _run(self) -> None:
        while True:
            await self._tick_until_lost()
            connection, self._connection = self._connection, None
            self._fail_waiting()
            for roster in list(self._rosters.values()):
                roster.invalidate()
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
        while self._connection is None:
            try:
                await self._connect(self._servers.next())
            except BusConnectFailed as error:
                if reported != str(error):
                    reported = str(error)
                    log.warning("cannot connect to the bus", extra={"facts": {"reason": reported}})
                await asyncio.sleep(self._between(_FIRST_RETRY, _LONGEST_RETRY))

    async def _tick_until_lost(self) -> None:
        """Send heartbeats and detect lost nodes until the connection is lost."""
        while self._connection is not None and self._connection.healthy:
            try:
                async with asyncio.timeout(_TICK):
                    await self._connection.lost.wait()
            except TimeoutError:
                self._call_safely(self._tick)

    def _tick(self) -> None:
        self._ticks += 1
        if self._connection is not None:
            self._connection.tick()
        for node in self._nodes.tick():
            self._node_lost(node)
        for roster in list(self._rosters.values()):
            if not roster.complete:
                self._changed(roster, changed=False)
        if self._ticks % 2:
            self._publish(_ALL, wire.Beat(self.node))
            for node, mark in self._nodes.marks():
                self._publish(f"tabhub.node.{node}", mark)

    def _call_safely(self, what: Callable[[], None]) -> None:
        """An error in the listener must not stop the bus."""
        try:
            what()
        except Exception:
            log.exception("error while handling an event of the bus")

    def _fail_waiting(self) -> None:
        for done in (done for roster in self._rosters.values() for done in roster.waiting):
            if not done.done():
                done.set_exception(_unavailable())


def _user_subject(roster: Roster) -> str:
    return f"tabhub.user.{subject_of(roster.user)}"


def _unavailable() -> BusUnavailable:
    return BusUnavailable("The relay's bus is unavailable: browsers on other nodes cannot be reached.")
