"""A client's WebSocket at a relay, and what all of them share: the turn of the event loop.

Owns when bytes leave. The first message to a client in a turn leaves at once, more to the same one wait for its end and
leave together: a browser with many agents is woken once. The end of a turn is noticed once for all sockets.
"""

from __future__ import annotations

import asyncio

from tabhub.server.socket import LinkProtocol, text_frame


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
