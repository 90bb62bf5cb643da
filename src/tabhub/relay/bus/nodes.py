"""The other nodes as the bus sees them: who is heard, what was sent to each, and what came whole.

Owns the numbers on pieces, the putting together of large messages, and the verdict that a node is lost. Pure: time is
the count of ticks, so that a node that itself stood still does not take the others for dead.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from tabhub.wire.bus import FIRST, GIVEN_UP, LAST, MARK, NEXT, WHOLE, Piece


@dataclass(slots=True)
class BusNode:
    """Another node."""

    silent: int = 0
    """Ticks since it was heard."""
    sent: int = 0
    """Pieces sent to it."""
    marked: int = 0
    """Of those, how many it was told of by a mark."""
    expected: int | None = None
    """The number of its next piece; None: it has sent none that counts."""
    parts: list[bytes] = field(default_factory=list)
    """What is there of a large message."""
    size: int = 0


class Arrival(msgspec.Struct, gc=False, frozen=True):
    """What a piece meant."""

    message: bytes | None = None
    lost: bool = False
    """Something before it never came, or the other side has given up: nothing shared with that node holds any more."""
    tell: bool = False
    """The other side does not know yet, and is to be told."""


class BusNodes:
    """All other nodes."""

    def __init__(self, node: str, *, patience: int, largest: int) -> None:
        self._node = node
        self._patience = patience
        self._largest = largest
        self._peers: dict[str, BusNode] = {}
        self._given_up: set[str] = set()

    def __contains__(self, node: str) -> bool:
        return node in self._peers

    def __len__(self) -> int:
        return len(self._peers)

    def heard(self, node: str) -> bool:
        """A node was heard; whether it had been given up."""
        peer = self._peers.get(node)
        if peer is not None:
            peer.silent = 0
            return False
        self._peers[node] = BusNode()
        back = node in self._given_up
        self._given_up.discard(node)
        return back

    def gone(self, node: str) -> bool:
        """A node said good-bye; whether it was known."""
        self._given_up.discard(node)
        return self._peers.pop(node, None) is not None

    def clear(self) -> None:
        """Nobody can be heard any more."""
        self._peers.clear()
        self._given_up.clear()

    def tick(self) -> list[str]:
        """Time has passed: the nodes that are lost."""
        lost = []
        for node, peer in list(self._peers.items()):
            peer.silent += 1
            if peer.silent > self._patience:
                del self._peers[node]
                self._given_up.add(node)
                lost.append(node)
        return lost

    def marks(self) -> list[tuple[str, Piece]]:
        """For each node that was sent something since the last time, a number by which it sees if all of it came."""
        due = [(node, peer) for node, peer in self._peers.items() if peer.sent != peer.marked]
        marks = [(node, self._piece(peer, MARK, b"")) for node, peer in due]
        for _, peer in due:
            peer.marked = peer.sent
        return marks

    def pieces(self, node: str, message: bytes, chunk: int) -> list[Piece]:
        """A message in pieces of at most that size; none if the node is not known or the message is too large."""
        peer = self._peers.get(node)
        if peer is None or len(message) > self._largest:
            return []
        if len(message) <= chunk:
            return [self._piece(peer, WHOLE, message)]
        parts = [message[at : at + chunk] for at in range(0, len(message), chunk)]
        kinds = [FIRST, *[NEXT] * (len(parts) - 2), LAST]
        return [self._piece(peer, kind, part) for kind, part in zip(kinds, parts, strict=True)]

    def given_up(self, node: str) -> list[Piece]:
        """Word to a node that what was shared with it is no more."""
        peer = self._peers.get(node)
        return [self._piece(peer, GIVEN_UP, b"")] if peer is not None else []

    def take(self, piece: Piece) -> Arrival:
        """A piece came from a node that was heard."""
        peer = self._peers[piece.node]
        gap = peer.expected is not None and piece.number != peer.expected
        peer.expected = piece.number + 1
        if gap:
            peer.parts, peer.size = [], 0
        tell = gap and piece.number != 0  # who begins anew has given up everything already
        if piece.kind == WHOLE:
            return Arrival(piece.body, lost=gap, tell=tell)
        if piece.kind in (FIRST, NEXT, LAST):
            return Arrival(self._part(peer, piece), lost=gap, tell=tell)
        return Arrival(lost=gap or piece.kind == GIVEN_UP, tell=tell)

    def _part(self, peer: BusNode, piece: Piece) -> bytes | None:
        """Keep a part; the message if it was the last. A rest without its beginning is dropped, and what is too big."""
        if piece.kind == FIRST:
            peer.parts, peer.size = [], 0
        elif not peer.parts:
            return None
        peer.parts.append(piece.body)
        peer.size += len(piece.body)
        if piece.kind != LAST and peer.size <= self._largest:
            return None
        message = b"".join(peer.parts) if peer.size <= self._largest else None
        peer.parts, peer.size = [], 0
        return message

    def _piece(self, peer: BusNode, kind: int, body: bytes) -> Piece:
        piece = Piece(self._node, peer.sent, kind, body)
        peer.sent += 1
        return piece
