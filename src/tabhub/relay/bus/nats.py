"""The bus over NATS: nodes in different processes and on different machines.

Owns the subjects and what is said on them. Core NATS alone: nothing is stored, nothing is sent twice. The connection is
natslink.py's; what a node knows of the others is peers.py's and rosters.py's.

    tabhub.all                   beats, good-byes and revoked tokens, for every node
    tabhub.node.<node>           numbered pieces of messages for one node
    tabhub.user.<hash>           for the nodes that have joined a user: who has which browsers, and what was counted
    tabhub.reply.<node>.<hash>   answers to a node that has just joined a user
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import time
from collections.abc import Callable, Sequence
from functools import partial

from tabhub.core.backoff import Backoff
from tabhub.errors import BusConnectFailed, BusUnavailable
from tabhub.limits import DEFAULTS, MB, Limits
from tabhub.relay.bus.interface import BusListener, Presence
from tabhub.relay.bus.nats_connection import NatsConnection, connect, read, shown
from tabhub.relay.bus.nodes import BusNodes
from tabhub.relay.bus.rosters import Roster, RosterTable
from tabhub.wire import bus as wire
from tabhub.wire.nats import Message

log = logging.getLogger("tabhub.relay.bus.interface")

VARIABLE = "TABHUB_RELAY_BUS_TOKEN"
"""Where the token for NATS itself may be: in an address it would be in the process list."""

_TICK = 0.5
_PATIENCE = 7
"""Ticks of silence after which a node is lost: with its beat and our tick, at most 4.5 s."""
_FIRST_RETRY, _LONGEST_RETRY = 0.25, 1.0
"""Seconds between attempts to reconnect: short, because other nodes expect this one back within `_RETURN`."""
_ANSWER = 1.0
_GRACE = 0.05
_RETURN = 3.0
"""Time for nodes that were there before a break of the bus to be back."""
_CHUNK = 512 * 1024
_HEAD = 512
_ENTRIES = 1000
_ALL = "tabhub.all"


class NatsBus:
    """A node's end of the bus."""

    def __init__(
        self, url: str, node: str, *, limits: Limits = DEFAULTS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._servers = [part.strip() for part in url.split(",") if part.strip()]
        self._node = node
        self._clock = clock
        self._most = limits.relay_bus_queue
        self._peers = BusNodes(node, patience=_PATIENCE, largest=limits.max_frame + MB)
        self._rosters = RosterTable()
        self._waiting: dict[str, list[asyncio.Future[None]]] = {}
        self._version = 0
        self._ticks = 0
        self._attempts = -1
        self._listener: BusListener
        self._link: NatsConnection | None = None
        self._keeping: asyncio.Task[None] | None = None

    @property
    def node(self) -> str:
        """The id of this node."""
        return self._node

    @property
    def healthy(self) -> bool:
        """Whether NATS is reached."""
        return self._link is not None and self._link.healthy

    async def start(self, listener: BusListener) -> None:
        """Connect and listen."""
        self._listener = listener
        reasons = []
        for server in self._servers:
            try:
                await self._connect()
                break
            except BusConnectFailed as error:
                reasons.append(f"{shown(server)}: {error}")
        else:
            raise BusUnavailable(
                f"The relay's bus cannot be reached at {'; '.join(reasons)}.",
                hint="See that nats-server runs there and takes these credentials, or start without --bus.",
            )
        self._keeping = asyncio.get_running_loop().create_task(self._keep())

    async def close(self) -> None:
        """Say good-bye and end."""
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.gather(self._keeping, return_exceptions=True)
            self._keeping = None
        if self._link is not None:
            self._tell_all(wire.Bye(self._node))
            await self._link.close()
            self._link = None
        self._fail_waiting()

    # users and browsers

    def join(self, user: str) -> None:
        """Someone of that user is here."""
        self._opened(user).held = True

    def leave(self, user: str) -> None:
        """Nobody is."""
        roster = self._rosters.of(user)
        if roster is not None:
            roster.held = False
            self._release(roster)

    def announce(self, browser: Presence) -> None:
        """A browser came."""
        roster = self._opened(browser.user)
        if roster.own.get(browser.extension_id) != browser.name:
            roster.own[browser.extension_id] = browser.name
            self._tell_own(roster)

    def withdraw(self, browser: Presence) -> None:
        """A browser went."""
        roster = self._rosters.of(browser.user)
        if roster is not None and roster.own.pop(browser.extension_id, None) is not None:
            self._tell_own(roster)
            self._release(roster)

    async def browsers(self, user: str) -> tuple[Presence, ...]:
        """The browsers of a user elsewhere: known at once, except just after joining."""
        if not self.healthy:
            raise _unavailable()
        roster = self._opened(user)
        try:
            if not roster.complete:
                await self._told(user)
            return roster.browsers()
        finally:
            self._release(roster)

    async def _told(self, user: str) -> None:
        told: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting = self._waiting.setdefault(user, [])
        waiting.append(told)
        try:
            await told
        finally:
            waiting.remove(told)

    # messages

    def send(self, node: str, message: bytes) -> bool:
        """Send to one node."""
        link = self._link
        if link is None or not link.healthy:
            return False
        pieces = self._peers.pieces(node, message, min(_CHUNK, max(link.largest - _HEAD, _HEAD)))
        sent = bool(pieces)
        for piece in pieces:  # one that does not fit leaves a gap, by which the other side sees that something is lost
            sent = link.carry(f"tabhub.node.{node}", wire.encode(piece)) and sent
        return sent

    def report_usage(self, user: str, count: int) -> None:
        """Tell those who have joined the user."""
        roster = self._rosters.of(user)
        if roster is not None and any(member.here for member in roster.members.values()):
            self._tell(roster, wire.Took(self._node, count))

    def revoke(self, entries: Sequence[str]) -> None:
        """Tell all."""
        for at in range(0, len(entries), _ENTRIES):
            self._tell_all(wire.Revoked(self._node, tuple(entries[at : at + _ENTRIES])))

    # what NATS brings

    def _to_node(self, message: Message) -> None:
        piece = read(wire.PIECE, message)
        if piece is None or piece.node == self._node:
            return
        node = piece.node
        self._heard(node)
        arrival = self._peers.take(piece)
        if arrival.lost:
            log.warning("messages of a node were lost", extra={"facts": {"node": node}})
            if arrival.tell:
                self._give_up(node)
            self._listener.node_lost(node)
        if arrival.message is not None:
            self._listener.message_received(node, arrival.message)

    def _to_all(self, message: Message) -> None:
        said = read(wire.TO_ALL, message)
        if said is None or said.node == self._node:
            return
        if isinstance(said, wire.Bye):
            if self._peers.gone(said.node):
                self._lose(said.node)
            return
        self._heard(said.node)
        if isinstance(said, wire.Revoked):
            self._listener.tokens_revoked(said.entries)

    def _to_user(self, message: Message) -> None:
        roster = self._rosters.at(message.subject.rpartition(".")[2])
        said = read(wire.TO_USER, message)
        if roster is None or said is None or said.node == self._node:
            return
        self._heard(said.node)
        if isinstance(said, wire.Took):
            self._listener.usage_reported(roster.user, said.count)
            return
        if isinstance(said, wire.Left):
            changed = roster.said(said.node, said.version, (), here=False)
        else:
            changed = roster.said(said.node, said.version, said.browsers)
        if isinstance(said, wire.Asking) and message.reply.startswith("tabhub.reply."):
            others = tuple(n for n, member in roster.members.items() if member.here and n != said.node)
            here = wire.Here(self._node, self._version, tuple(sorted(roster.own.items())), others)
            self._publish(message.reply, wire.encode(here))
        self._changed(roster, changed)

    def _replied(self, message: Message) -> None:
        roster = self._rosters.at(message.subject.rpartition(".")[2])
        if roster is None:
            return
        if message.nobody:
            asyncio.get_running_loop().call_later(_GRACE, self._alone, roster)
            return
        said = read(wire.HERE, message)
        if said is not None:
            self._heard(said.node)
            self._changed(roster, roster.answer(said, self._node))

    def _alone(self, roster: Roster) -> None:
        """Nobody else has joined this user, not even one whose word was on its way when the question was put."""
        roster.nobody()
        self._changed(roster, changed=False)

    def _heard(self, node: str) -> None:
        if self._peers.heard(node):  # it was given up in the meantime: it must know, and so must we what it has
            log.info("node_back", extra={"facts": {"node": node}})
            self._give_up(node)
            for roster in self._rosters:
                self._ask(roster, _ANSWER)

    def _give_up(self, node: str) -> None:
        for piece in self._peers.given_up(node):
            self._publish(f"tabhub.node.{node}", wire.encode(piece))

    def _lose(self, node: str) -> None:
        """A node is gone: with its connections, and with its browsers."""
        self._listener.node_lost(node)
        for roster in self._rosters:
            self._changed(roster, roster.gone(node))

    def _changed(self, roster: Roster, changed: bool) -> None:
        """After news of a user: whoever waits for it, or wants to know, is told."""
        settled = roster.settle(self._clock())
        if settled:
            for told in self._waiting.pop(roster.user, ()):
                if not told.done():
                    told.set_result(None)
        again, roster.stale = settled and roster.stale, roster.stale and not settled
        if (changed or again) and roster.held:
            self._listener.browsers_changed(roster.user)

    # what goes out

    def _opened(self, user: str) -> Roster:
        """The roster of a user; a new one is asked for."""
        roster = self._rosters.of(user)
        if roster is None:
            roster = self._rosters.open(user)
            self._ask(roster, _ANSWER)
        return roster

    def _ask(self, roster: Roster, patience: float) -> None:
        roster.asked(self._clock() + patience)
        if self._link is None:
            return
        subject = f"tabhub.user.{roster.subject}"
        self._link.listen(subject, self._to_user)
        self._version += 1
        asking = wire.Asking(self._node, self._version, tuple(sorted(roster.own.items())))
        self._publish(subject, wire.encode(asking), f"tabhub.reply.{self._node}.{roster.subject}")

    def _tell_own(self, roster: Roster) -> None:
        self._version += 1
        self._tell(roster, wire.Has(self._node, self._version, tuple(sorted(roster.own.items()))))

    def _tell(self, roster: Roster, message: wire.ToUser) -> None:
        self._publish(f"tabhub.user.{roster.subject}", wire.encode(message))

    def _tell_all(self, message: wire.ToAll) -> None:
        self._publish(_ALL, wire.encode(message))

    def _release(self, roster: Roster) -> None:
        """Let a user go whom nobody here needs."""
        needed = roster.held or roster.own or self._waiting.get(roster.user)
        if needed or self._rosters.of(roster.user) is not roster:
            return
        self._rosters.drop(roster)
        self._version += 1
        self._tell(roster, wire.Left(self._node, self._version))
        if self._link is not None:
            self._link.unlisten(f"tabhub.user.{roster.subject}")

    def _publish(self, subject: str, payload: bytes, reply: str = "") -> None:
        if self._link is not None:
            self._link.publish(subject, payload, reply)

    # the connection

    async def _connect(self) -> None:
        token = os.environ.get(VARIABLE) or None
        self._attempts += 1
        url = self._servers[self._attempts % len(self._servers)]
        link = await connect(url, f"tabhub relay {self._node}", most=self._most, token=token)
        link.listen(f"tabhub.node.{self._node}", self._to_node)
        link.listen(_ALL, self._to_all)
        link.listen(f"tabhub.reply.{self._node}.*", self._replied)
        self._link = link
        self._tell_all(wire.Beat(self._node))
        for roster in self._rosters:
            self._ask(roster, _RETURN if roster.awaited else _ANSWER)

    async def _keep(self) -> None:
        while True:
            await self._watch()
            link, self._link = self._link, None
            self._fail_waiting()
            for roster in self._rosters:
                roster.forget()
            self._peers.clear()
            self._guarded(lambda: self._listener.bus_changed(False))
            if link is not None:
                log.warning("the bus is gone", extra={"facts": {"reason": link.trouble}})
                await link.close()
            await self._come_back()
            self._guarded(lambda: self._listener.bus_changed(True))

    async def _come_back(self) -> None:
        said = ""
        jitter = partial(random.uniform, 1.0, 1.3)
        backoff = Backoff(_FIRST_RETRY, _LONGEST_RETRY, jitter=jitter)
        while self._link is None:
            try:
                await self._connect()
            except BusConnectFailed as error:
                if said != str(error):
                    said = str(error)
                    log.warning("the bus cannot be reached", extra={"facts": {"reason": said}})
                await asyncio.sleep(backoff.next_delay())

    async def _watch(self) -> None:
        """Beat and look for silence, until the connection is gone."""
        while self._link is not None and self._link.healthy:
            try:
                async with asyncio.timeout(_TICK):
                    await self._link.lost.wait()
            except TimeoutError:
                self._guarded(self._tick)

    def _tick(self) -> None:
        self._ticks += 1
        if self._link is not None:
            self._link.tick()
        for node in self._peers.tick():
            self._lose(node)
        for roster in self._rosters:
            if not roster.complete:
                self._changed(roster, changed=False)
        if self._ticks % 2:
            self._tell_all(wire.Beat(self._node))
            for node, mark in self._peers.marks():
                self._publish(f"tabhub.node.{node}", wire.encode(mark))

    def _guarded(self, what: Callable[[], None]) -> None:
        """A slip in whoever listens must not end the bus."""
        try:
            what()
        except Exception:
            log.exception("what the bus told could not be handled")

    def _fail_waiting(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for told in (told for each in waiting.values() for told in each):
            if not told.done():
                told.set_exception(_unavailable())


def _unavailable() -> BusUnavailable:
    return BusUnavailable("The relay's bus is unavailable: browsers on other nodes cannot be reached.")
