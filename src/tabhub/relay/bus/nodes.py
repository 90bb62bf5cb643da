"""The other nodes on the bus: which are alive, what was sent to each, and the reassembly of messages.

Owns the sequence numbers of pieces, the reassembly of large messages, and the decision that a node is lost. Pure: time
is a count of ticks, so that a node that was suspended itself does not consider the others dead.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from tabhub.wire.nodes import FIRST, GIVEN_UP, LAST, MARK, NEXT, WHOLE, Piece


@dataclass(slots=True)
class BusNode:
    """Another node."""

    silent: int = 0
    """Ticks since its last message."""
    sent: int = 0
    """Pieces sent to it."""
    marked: int = 0
    """Pieces sent up to the last mark."""
    expected: int | None = None
    """The number of its next piece; None: it has not sent any."""
    parts: list[bytes] = field(default_factory=list)
    """The parts of a large message received so far."""
    size: int = 0


class Arrival(msgspec.Struct, gc=False, frozen=True):
    """The result of receiving a piece."""

    message: bytes | None = None
    lost: bool = False
    """An earlier piece is missing, or the other node gave up: all state shared with it is invalid."""
    notify: bool = False
    """The other node does not know yet and must be notified."""


class BusNodes:
    """All other nodes."""

    def __init__(self, node: str, *, patience: int, largest: int) -> None:
        self._node = node
        self._patience = patience
        self._largest = largest
        self._peers: dict[str, BusNode] = {}
        self._given_up: set[str] = set()

    def mark_alive(self, node: str) -> bool:
        """Note a message of a node; returns whether it had been lost before."""
        peer = self._peers.get(node)
        if peer is not None:
            peer.silent = 0
            return False
        self._peers[node] = BusNode()
        back = node in self._given_up
        self._given_up.discard(node)
        return back

    def remove(self, node: str) -> bool:
        """Remove a node that disconnected; returns whether it was known."""
        self._given_up.discard(node)
        return self._peers.pop(node, None) is not None

    def clear(self) -> None:
        self._peers.clear()
        self._given_up.clear()

    def tick(self) -> list[str]:
        """Count one tick; returns the nodes that are now lost."""
        lost = []
        for node, peer in list(self._peers.items()):
            peer.silent += 1
            if peer.silent > self._patience:
                del self._peers[node]
                self._given_up.add(node)
                lost.append(node)
        return lost

    def marks(self) -> list[tuple[str, Piece]]:
        """A mark for each node that was sent something since its last one, by which it detects missing pieces."""
        due = [(node, peer) for node, peer in self._peers.items() if peer.sent != peer.marked]
        marks = [(node, self._piece(peer, MARK, b"")) for node, peer in due]
        for _, peer in due:
            peer.marked = peer.sent
        return marks

    def split(self, node: str, message: bytes, chunk: int) -> list[Piece]:
        """Pieces of at most `chunk` bytes; none if the node is unknown or the message too large."""
        peer = self._peers.get(node)
        if peer is None or len(message) > self._largest:
            return []
        if len(message) <= chunk:
            return [self._piece(peer, WHOLE, message)]
        parts = [message[at : at + chunk] for at in range(0, len(message), chunk)]
        kinds = [FIRST, *[NEXT] * (len(parts) - 2), LAST]
        return [self._piece(peer, kind, part) for kind, part in zip(kinds, parts, strict=True)]

    def give_up(self, node: str) -> list[Piece]:
        """The piece that notifies a node that all state shared with it is invalid."""
        peer = self._peers.get(node)
        return [self._piece(peer, GIVEN_UP, b"")] if peer is not None else []

    def receive(self, piece: Piece) -> Arrival:
        """Process a piece of a node that was marked alive."""
        peer = self._peers[piece.node]
        gap = peer.expected is not None and piece.number != peer.expected
        peer.expected = piece.number + 1
        if gap:
            peer.parts, peer.size = [], 0
        notify = gap and piece.number != 0  # a node that starts over has already given up
        if piece.kind == WHOLE:
            return Arrival(piece.body, lost=gap, notify=notify)
        if piece.kind in (FIRST, NEXT, LAST):
            return Arrival(self._part(peer, piece), lost=gap, notify=notify)
        return Arrival(lost=gap or piece.kind == GIVEN_UP, notify=notify)

    def _part(self, peer: BusNode, piece: Piece) -> bytes | None:
        """Add a part; returns the message if it is complete. Drops oversize messages and parts without the first."""
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
