"""A client's WebSocket at a relay, and what all of them share: the turn of the event loop.

Owns when bytes leave and when they are read. The first message to a client in a turn leaves at once, more to the same
one wait for its end and leave together: a browser with many agents is woken once. The end of a turn is noticed once for
all sockets. Whoever sends more than its user's share (fair_share.py) can be read in is not read until it is its turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from tabhub.http.websocket import LinkProtocol, text_frame
from tabhub.relay.fair_share import FairShare, UserShare

_PIECE = 1024
"""Bytes read before the clock is looked at: some hundred of the smallest frames. A frame that is cut by that costs more
to read, so that pieces grow where they are read in no time."""
_LARGEST = 16 * 1024
_UNREAD = 64 * 1024
"""Bytes that are taken while it is not a user's turn, before nothing more is."""
_SHORT, _LONG = 0.001, 0.002
"""Seconds within which a piece is read in no time, and beyond which it was too large."""


class Ends(NamedTuple):
    """How a connection is ended by what it does; each is told why."""

    refuse: Callable[[str], None]
    cut: Callable[[str], None]


class Turn:
    """The turn of the loop that is under way, for the sockets of one node."""

    __slots__ = ("_sockets", "number", "open")

    def __init__(self) -> None:
        self.number = 1
        self.open = False
        """Whether something was sent in it."""
        self._sockets: list[RelaySocket] = []

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """Something is sent: from here to the turn's end counts as one."""
        self.open = True
        loop.call_soon(self._end)

    def wait(self, socket: RelaySocket) -> None:
        """Have a socket send at the end of the turn what it holds."""
        self._sockets.append(socket)

    def _end(self) -> None:
        self.open = False
        self.number += 1
        sockets, self._sockets = self._sockets, []
        for socket in sockets:
            socket.turn_over()


class RelaySocket(LinkProtocol):
    """A client's socket: one that is dead or does not say good-bye is not waited for."""

    turn: Turn
    """Given by the app that takes it over."""
    _sent_in = 0
    """The number of the turn in which it last sent."""
    _fair_share: FairShare | None = None
    _share: UserShare
    _whose: Callable[[], str | None]
    _before = 0
    """Bytes a client may still send before it has said who it is; negative: it has."""
    _refused = False
    """Whether it was told to go for what it sent: then nothing more is read."""
    _unread = b""
    """What came while it was not its turn."""
    _paused = False
    _piece = _PIECE
    """Bytes that are read at once, as far as its messages so far were cheap to read."""
    _counted = 0
    """The bytes kept for it, as its user's account knows."""
    _ends: Ends

    def handle_connect(self, event: object) -> None:
        """A refused client gets a second to answer the good-bye."""
        self.close_timeout = 1.0
        super().handle_connect(event)

    def keepalive_timeout(self) -> None:
        """No answer to a ping: what is still to be sent will not be read."""
        super().keepalive_timeout()
        self.transport.abort()

    def send_text(self, data: bytes) -> None:
        """Send one text message; after the end there is nobody to send to."""
        if self.close_sent or self.disconnected:
            return
        turn = self.turn
        if self._sent_in != turn.number:
            self._sent_in = turn.number
            if not turn.open:
                turn.begin(self.loop)
            self._write(text_frame(data))
            return
        if not self._held:
            turn.wait(self)
        self._held.append(text_frame(data))

    def turn_over(self) -> None:
        """Send what was held."""
        self._flush()

    # reading

    def partake(self, fair_share: FairShare, whose: Callable[[], str | None], before: int, ends: Ends) -> None:
        """Read from now on in the share of its user. Until `whose` knows that, it may send `before` bytes."""
        self._fair_share = fair_share
        self._share = fair_share.add(self, None)
        self._whose, self._before, self._ends = whose, before, ends

    def data_received(self, data: bytes) -> None:
        """Take bytes, if it is the user's turn."""
        fair_share = self._fair_share
        if fair_share is None:
            super().data_received(data)
        elif self._refused:
            return
        elif self._unread:
            self._unread += data
            self._weigh()
            if len(self._unread) > _UNREAD and not self._paused:
                self._paused = True
                self.transport.pause_reading()
        elif fair_share.may_read(self._share):
            if len(data) > self._piece or self._before >= 0:
                self._take(fair_share, data)
                return
            if fair_share.sole_user is self._share:
                super().data_received(data)
                if self._begun or self.frames or self._counted:
                    self._weigh()
                return
            began = fair_share.clock()
            super().data_received(data)
            now = fair_share.clock()
            fair_share.charge(self._share, now - began, now)
            if self._begun or self.frames or self._counted:
                self._weigh()
        else:
            self._wait(fair_share, data)
            self._weigh()

    def resume(self) -> None:
        """It is its turn: read what has waited."""
        data, self._unread = self._unread, b""
        if self._fair_share is not None and not self.transport.is_closing():
            self._take(self._fair_share, data)
            if self._paused and not self._unread and not self.transport.is_closing():
                self._paused = False
                self.transport.resume_reading()

    def buffered_bytes(self) -> int:
        """The bytes kept for it."""
        waiting = 0 if self.writable.is_set() else self.transport.get_write_buffer_size()
        return len(self._begun) + len(self._joined) + sum(map(len, self.frames)) + len(self._unread) + waiting

    def abort(self, why: str) -> None:
        """End it at once, and let go of what is kept for it: until the loop says that it is lost, more may come."""
        self._refused = True
        if not self.transport.is_closing():
            self._ends.cut(why)
            self.transport.abort()
        self._let_go()
        self._weigh()

    def resume_writing(self) -> None:
        """The peer reads again."""
        super().resume_writing()
        self._weigh()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is kept for it any more."""
        super().connection_lost(exc)
        if self._fair_share is not None:
            self._fair_share.add_buffered(self._share, -self._counted)
            self._fair_share.remove(self, self._share)
            self._fair_share = None

    def _take(self, fair_share: FairShare, data: bytes) -> None:
        at, end = 0, len(data)
        began = fair_share.clock()
        while at < end:
            stop = min(end, at + max(self._missing, self._piece))  # the rest of a large frame is one piece
            super().data_received(data if stop - at == end else data[at:stop])
            if self.transport.is_closing() or (self._before >= 0 and self._stranger(fair_share, stop - at)):
                return
            at = stop
            now = fair_share.clock()
            took, began = now - began, now
            if took > _LONG:
                self._piece = _PIECE
            elif took < _SHORT and self._piece < _LARGEST:
                self._piece *= 2
            go_on = fair_share.charge(self._share, took, now)
            if not go_on and at < end:
                self._wait(fair_share, data[at:])
                break
        if self._begun or self.frames or self._counted:  # what is joined has left something in `frames`
            self._weigh()

    def _wait(self, fair_share: FairShare, data: bytes) -> None:
        self._unread = data
        fair_share.enqueue(self, self._share)

    def _stranger(self, fair_share: FairShare, size: int) -> bool:
        """A client that had not said who it is has sent so much; whether it is out."""
        name = self._whose()
        if name is not None:
            self._before = -1
            fair_share.add_buffered(self._share, -self._counted)
            fair_share.remove(self, self._share)
            self._share, self._counted = fair_share.add(self, name), 0
            return False
        self._before -= size
        if self._before < 0:
            self._refused = True
            self._ends.refuse("it sent too much before it authenticated")
        return self._refused

    def _let_go(self) -> None:
        super()._let_go()
        self._unread = b""

    def _weigh(self) -> None:
        if self._fair_share is not None:
            known, self._counted = self._counted, self.buffered_bytes()
            if self._counted != known:
                self._fair_share.add_buffered(self._share, self._counted - known)

    def _piled_up(self) -> bool:
        self._weigh()
        return super()._piled_up()
