"""A client's WebSocket at a relay: read within the fair share of its user, kept alive by pings.

Owns when received bytes are read. What exceeds the user's share (fair_share.py) waits until the user may continue. A
client that has not authenticated may send only a little.
"""

from __future__ import annotations

from websockets.frames import Opcode

from tabhub.http.websocket import Upgrade, WebSocket
from tabhub.relay.fair_share import FairShare, UserShare
from tabhub.relay.node import Node, NodeClient, Role

_PIECE = 1024
"""Bytes read between two readings of the clock: some hundred of the smallest frames. Pieces that are read quickly grow,
because a frame that spans two of them costs more."""
_MAX_PIECE = 16 * 1024
_MAX_UNREAD = 64 * 1024
"""Bytes accepted while the user has to wait, before reading is paused."""
_FAST, _SLOW = 0.001, 0.002
"""Seconds below which a piece was read quickly, and above which it was too large."""
_PING = b"\x89\x00"
"""A whole ping frame."""
_PONG_HEAD, _PONG_SIZE = b"\x8a\x80", 6
"""The beginning and size of the answer to it; the rest is its mask."""
_PING_AT = 2
"""Looks without a message after which a client is pinged."""
_FRAME_HEADER = 14
"""Bytes of the longest frame header."""


class RelaySocket(WebSocket):
    """A client's connection. A peer that does not answer a close frame is not waited for."""

    close_timeout = 1.0
    _receiver: NodeClient

    def __init__(self, upgrade: Upgrade, node: Node, role: Role) -> None:
        limits = node.limits
        self._fair_share: FairShare | None = node.fair_share
        self._share: UserShare = node.fair_share.add(self, None)
        self._before_login = limits.relay_stranger
        """Bytes a client may still send before it has authenticated; negative once it has."""
        self._refused = False
        """Whether it was refused: nothing more is read."""
        self._unread = b""
        """Bytes that arrived while the user had to wait."""
        self._reading_paused = False
        self._piece = _PIECE
        self._partial = 0
        """Bytes of an incomplete frame, approximately."""
        self._counted = 0
        """Its buffered bytes, as last reported to the user's share."""
        self._silent = 0
        """How often it was looked at since it last sent something."""
        self._wheel = node.wheel
        super().__init__(upgrade, lambda _: node.attach(role, self), limits.relay_queue)
        self._slot = self._wheel.add(self)

    def check_alive(self) -> None:
        """Called by the ping wheel."""
        self._silent += 1
        if self._closing or self._silent < _PING_AT:
            return
        if self._silent == _PING_AT:
            self._batch.write(self.transport, _PING)
        else:
            self.transport.abort()

    def data_received(self, data: bytes) -> None:
        self._silent = 0
        if data[:2] == _PONG_HEAD and len(data) == _PONG_SIZE and not (self._rest or self._header or self._unread):
            return
        fair_share = self._fair_share
        if self._refused or fair_share is None:
            return
        if self._unread:
            self._unread += data
            self._count_buffered()
            if len(self._unread) > _MAX_UNREAD and not self._reading_paused:
                self._reading_paused = True
                self.transport.pause_reading()
        elif not fair_share.may_read(self._share):
            self._wait(fair_share, data)
            self._count_buffered()
        elif len(data) > self._piece or self._before_login >= 0:
            self._read(fair_share, data)
        elif fair_share.sole_user is self._share:
            self._feed(data)
            if self._partial or self._counted:
                self._count_buffered()
        else:
            began = fair_share.clock()
            self._feed(data)
            now = fair_share.clock()
            fair_share.charge(self._share, now - began, now)
            if self._partial or self._counted:
                self._count_buffered()

    def _feed(self, data: bytes) -> None:
        self._partial += len(data)
        super().data_received(data)
        self._partial = max(self._partial, 0)

    def _receive_frame(self, opcode: Opcode, fin: bool, data: bytes) -> None:
        self._partial -= len(data) + _FRAME_HEADER
        super()._receive_frame(opcode, fin, data)

    def resume(self) -> None:
        """Its user may continue: read the waiting bytes."""
        data, self._unread = self._unread, b""
        if self._fair_share is not None and not self.transport.is_closing():
            self._read(self._fair_share, data)
            if self._reading_paused and not self._unread and not self.transport.is_closing():
                self._reading_paused = False
                self.transport.resume_reading()

    def buffered_bytes(self) -> int:
        return self._partial + len(self._fragments) + len(self._unread) + self.queued()

    def abort(self, reason: str) -> None:
        """Close at once and free the buffers; more may arrive until the loop reports the connection as lost."""
        self._refused = True
        if not self.transport.is_closing():
            self._receiver.aborted(reason)
            self.transport.abort()
        self.release()
        self._count_buffered()

    def release(self) -> None:
        super().release()
        self._unread = b""
        self._partial = 0

    def resume_writing(self) -> None:
        super().resume_writing()
        self._count_buffered()

    def connection_lost(self, exc: Exception | None) -> None:
        self._wheel.remove(self, self._slot)
        super().connection_lost(exc)
        if self._fair_share is not None:
            self._fair_share.add_buffered(self._share, -self._counted)
            self._fair_share.remove(self, self._share)
            self._fair_share = None

    def _read(self, fair_share: FairShare, data: bytes) -> None:
        at, end = 0, len(data)
        began = fair_share.clock()
        while at < end:
            stop = min(end, at + self._piece)
            self._feed(data if stop - at == end else data[at:stop])
            if self.transport.is_closing() or (
                self._before_login >= 0 and self._refuse_unauthenticated(fair_share, stop - at)
            ):
                return
            at = stop
            now = fair_share.clock()
            seconds, began = now - began, now
            if seconds > _SLOW:
                self._piece = _PIECE
            elif seconds < _FAST and self._piece < _MAX_PIECE:
                self._piece *= 2
            if not fair_share.charge(self._share, seconds, now) and at < end:
                self._wait(fair_share, data[at:])
                break
        if self._partial or self._fragments or self._counted:
            self._count_buffered()

    def _wait(self, fair_share: FairShare, data: bytes) -> None:
        self._unread = data
        fair_share.enqueue(self, self._share)

    def _refuse_unauthenticated(self, fair_share: FairShare, size: int) -> bool:
        """Count bytes of a client that had not authenticated; True if it was refused for sending too much."""
        name = self._receiver.user()
        if name is not None:
            self._before_login = -1
            fair_share.add_buffered(self._share, -self._counted)
            fair_share.remove(self, self._share)
            self._share, self._counted = fair_share.add(self, name), 0
            return False
        self._before_login -= size
        if self._before_login < 0:
            self._refused = True
            self._receiver.refuse("it sent too much before it authenticated")
        return self._refused

    def _count_buffered(self) -> None:
        if self._fair_share is not None:
            before, self._counted = self._counted, self.buffered_bytes()
            if self._counted != before:
                self._fair_share.add_buffered(self._share, self._counted - before)

    def _check_queue(self) -> None:
        self._count_buffered()
        super()._check_queue()
