"""Lists of revoked tokens between nodes: fetched by a node that starts, and by one whose list differs.

Owns when lists travel. Every heartbeat carries a digest; a node that misses entries for longer than a moment asks the
node that has more. New entries are published to all nodes as they come.

    PREFIX.revoked.any       a request that one of the nodes that are ready answers
    PREFIX.revoked.<node>    requests to a node, and lists for it
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from tabhub.relay.bus.current_connection import CurrentConnection
from tabhub.relay.bus.interface import BusListener
from tabhub.relay.bus.nats_connection import read
from tabhub.relay.bus.presence import PREFIX
from tabhub.wire import nodes as wire
from tabhub.wire.nats import Message

log = logging.getLogger("tabhub.relay.bus.interface")

_ANY = f"{PREFIX}.revoked.any"
_ENTRIES = 1000
"""Entries in one message."""
_FETCH_TIMEOUT = 3.0
_PATIENCE = 2
"""Heartbeats of a node in a row that must differ, because a new entry may just be on its way."""


class RevocationExchange:
    """The lists of one node."""

    def __init__(self, node: str, current: CurrentConnection, wall: Callable[[], float]) -> None:
        self._node = node
        self._current = current
        self._wall = wall
        self._listener: BusListener
        self._has_fetched = False
        self._fetched: asyncio.Future[bool] | None = None
        self._differing: dict[str, int] = {}
        """Heartbeats in a row that differed, by node."""
        self._asked: str | None = None
        """The node whose list is awaited."""

    def start(self, listener: BusListener) -> None:
        self._listener = listener

    async def connected(self) -> None:
        """Get the list of another node, if this is the first connection, and answer requests from then on."""
        self._asked = None
        self._differing.clear()
        self._current.subscribe(f"{PREFIX}.revoked.{self._node}", self._receive)
        if not self._has_fetched:
            self._has_fetched = await self._fetch()
        self._current.subscribe(_ANY, self._receive, queue="nodes")

    async def _fetch(self) -> bool:
        """Returns whether that is done: another node has sent its list, or there is none."""
        self._fetched = asyncio.get_running_loop().create_future()
        self._current.publish(_ANY, wire.RevokedRequest(self._node), f"{PREFIX}.revoked.{self._node}")
        try:
            async with asyncio.timeout(_FETCH_TIMEOUT):
                return await self._fetched
        except TimeoutError:
            log.warning("the list of revoked tokens was not fetched in time; it follows with the heartbeats")
            return False
        finally:
            self._fetched = None

    def publish(self, entries: Sequence[str]) -> None:
        for at in range(0, len(entries), _ENTRIES):
            self._current.publish(f"{PREFIX}.all", wire.Revoked(self._node, tuple(entries[at : at + _ENTRIES])))

    def heartbeat(self) -> wire.Beat:
        minute = int(self._wall()) // 60
        return wire.Beat(self._node, minute, *self._listener.revoked_digest(minute))

    def compare(self, beat: wire.Beat) -> None:
        """Ask a node for its list if it has as many entries or more, and others."""
        count, digest = self._listener.revoked_digest(beat.minute)
        if digest == beat.digest or count > beat.revoked or abs(beat.minute - int(self._wall()) // 60) > 2:
            self.node_ended(beat.node)
            return
        differing = self._differing[beat.node] = self._differing.get(beat.node, 0) + 1
        if differing >= _PATIENCE and self._asked in (None, beat.node):
            self._differing[beat.node] = 0
            self._asked = beat.node
            self._current.publish(f"{PREFIX}.revoked.{beat.node}", wire.RevokedRequest(self._node))

    def node_ended(self, node: str) -> None:
        """Nothing more is expected of it."""
        self._differing.pop(node, None)
        if self._asked == node:
            self._asked = None

    def _receive(self, message: Message) -> None:
        if message.no_responders:
            self._finish()
            return
        body = read(wire.TO_REVOKED, message)
        if body is None or body.node == self._node:
            return
        if isinstance(body, wire.RevokedRequest):
            self._send_list(body.node)
            return
        if body.entries:
            self._listener.tokens_revoked(body.entries)
        if body.last:
            self._asked = None
            self._finish()

    def _send_list(self, node: str) -> None:
        entries = self._listener.revoked_entries()
        for at in range(0, max(1, len(entries)), _ENTRIES):
            last = at + _ENTRIES >= len(entries)
            part = wire.RevokedList(self._node, tuple(entries[at : at + _ENTRIES]), last)
            self._current.publish(f"{PREFIX}.revoked.{node}", part)

    def _finish(self) -> None:
        if self._fetched is not None and not self._fetched.done():
            self._fetched.set_result(True)
