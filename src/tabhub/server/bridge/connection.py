"""One connection to the bridge's socket: who may use it, and in which order messages are accepted.

Owns the check of the peer, the timeout of silent clients and the order of messages. The bytes are lines.py's, the
messages wire/bridge.py's, sessions and their requests listener.py's and session.py's.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import struct
from typing import TYPE_CHECKING

from tabhub import __version__
from tabhub.errors import Busy, Forbidden, InvalidRequest, SessionNotFound, TabhubError, TooLarge, Unauthorized
from tabhub.server.bridge.lines import Lines
from tabhub.server.bridge.session import BridgeSession
from tabhub.trust.tokens import same_token
from tabhub.wire import bridge as wire

if TYPE_CHECKING:
    from tabhub.server.bridge.listener import BridgeListener

log = logging.getLogger("tabhub.daemon")

_XUCRED = 76
"""Bytes of a struct xucred."""


def peer_uid(sock: socket.socket) -> int:
    """The user at the other end of a unix socket, as the system knows it."""
    if hasattr(socket, "SO_PEERCRED"):
        _, uid, _ = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
        return int(uid)
    # macOS and the BSDs: LOCAL_PEERCRED of level SOL_LOCAL gives a struct that begins with its version and the user.
    _, uid = struct.unpack_from("2I", sock.getsockopt(0, getattr(socket, "LOCAL_PEERCRED", 1), _XUCRED))
    return int(uid)


class Connection:
    """One connection of a client."""

    def __init__(self, daemon: BridgeListener, token: bytes | None) -> None:
        self._daemon = daemon
        self._token = token
        """The token that REGISTER and STATUS must carry where the system cannot name the peer; None once they did."""
        self._lines: Lines | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._over = False
        self.client: BridgeSession | None = None

    def opened(self, lines: Lines) -> None:
        """Accept only this user, and close a client that stays silent."""
        self._lines = lines
        self._daemon.opened(self)
        transport = lines.transport
        if self._token is None and transport is not None:
            uid = peer_uid(transport.get_extra_info("socket"))
            if uid != os.geteuid():
                log.warning("user %d was refused on the daemon's socket", uid)
                self.refuse(None, Forbidden("This is another user's hub.", hint="Start one of your own: tabhub start"))
                self.close()
                return
        self._expect()

    def _expect(self) -> None:
        """Close a connection that has no session and stays silent."""
        if self._timer is not None:
            self._timer.cancel()
        loop = asyncio.get_running_loop()
        silence = self._daemon.limits.header_timeout
        self._timer = loop.call_later(silence, self.close) if self.client is None else None

    def lost(self, reason: str) -> None:
        """The connection was lost; it broke off if there still is a session."""
        if self._timer is not None:
            self._timer.cancel()
        self._daemon.closed(self)
        client, self.client = self.client, None
        if client is not None:
            log.info("the connection of session %s ended: %s", client.session.short, reason)
            self._daemon.left(client)

    def close(self) -> None:
        """Close the connection once everything is written."""
        if self._lines is not None:
            self._lines.close()

    def refuse(self, ident: str | None, error: TabhubError) -> None:
        """Report a line that was refused."""
        if self._lines is not None:
            self._lines.write(wire.error(ident, error))
        if self._token is not None:
            self.close()  # a client that has not shown the token gets one attempt

    # lines

    def too_long(self, beginning: bytes) -> None:
        longest = self._daemon.limits.daemon_line
        self.refuse(wire.beginning_id(beginning), TooLarge(f"A line is longer than {longest} bytes and was not read."))

    def line(self, line: bytes) -> None:
        """Execute one message, or report why not."""
        if not line.strip():
            return
        limits = self._daemon.limits
        try:
            message = wire.read(line, limits)
        except TabhubError as error:
            self.refuse(wire.id_in(line, limits), error)
            return
        try:
            self._take(message)
        except TabhubError as error:
            self.refuse(getattr(message, "id", None), error)
            if self._over:
                self.close()

    def _take(self, message: wire.Message) -> None:
        if isinstance(message, wire.Register):
            self._register(message)
        elif isinstance(message, wire.Status):
            self._authenticate(message.token)
            self._say(wire.status(message.id, self._daemon.status()))
        elif self._token is not None:
            raise Unauthorized("REGISTER or STATUS must come first, with the token.")
        elif isinstance(message, wire.Ping):
            self._say(wire.pong(message.id))
        elif isinstance(message, wire.Request):
            self._request(message)
        elif isinstance(message, wire.Cancel):
            self._cancel(message)
        elif isinstance(message, wire.Event):
            self._session(message.session_id).event(message)
        else:
            self._goodbye()
            return
        self._expect()

    def _say(self, line: bytes) -> None:
        if self._lines is not None:
            self._lines.write(line)

    def _authenticate(self, token: str | None) -> None:
        if self._token is None:
            return
        if token is None or not same_token(token.encode(), self._token):
            raise Unauthorized("The token is missing or wrong.", hint="run/daemon.json of the hub's home has it.")
        self._token = None

    def _register(self, message: wire.Register) -> None:
        self._authenticate(message.token)
        if self.client is not None:
            raise InvalidRequest("This connection has a session already. DISCONNECT first, or connect anew.")
        client, resumed = self._daemon.register(message)
        if resumed:
            self._daemon.replace(client, self)
        self.client = client
        self._say(
            wire.registered(
                client.session.id,
                resumed=resumed,
                initialized=client.initialized,
                version=__version__,
                max_line=self._daemon.limits.daemon_line,
            )
        )
        client.attach(self._say)

    def _session(self, session_id: str) -> BridgeSession:
        """The session of this connection, if it is the one the message names."""
        client = self.client
        if client is None:
            raise InvalidRequest("This connection has no session.", hint="REGISTER first.")
        if client.session.id != session_id:  # whether such a session exists is not revealed
            raise SessionNotFound("This session has ended or never was.", hint="Use the sessionId of REGISTER_OK.")
        if not self._daemon.engine.sessions.knows(client.session):
            self._daemon.end(client, "the session was ended")
            self.client = None
            self._over = True
            raise SessionNotFound("This session was ended.", hint="Connect and REGISTER again.")
        return client

    def _request(self, message: wire.Request) -> None:
        client = self._session(message.session_id)
        if message.id in self._daemon.in_flight:
            raise InvalidRequest("A request with this id is in flight. Ids must be unique: <sessionId>:<n>.")
        most = self._daemon.limits.daemon_requests
        if client.running >= most:
            raise Busy(f"{most} requests of this session are in flight, which is the limit.", hint="Wait for some.")
        client.request(message)

    def _cancel(self, message: wire.Cancel) -> None:
        if self.client is None or message.id not in self.client:
            raise SessionNotFound("No request of this session with this id is in flight.")
        self.client.cancel(message.id)

    def _goodbye(self) -> None:
        client, self.client = self.client, None
        if client is not None:
            self._daemon.end(client, "its client disconnected")
        self.close()
