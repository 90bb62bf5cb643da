"""One connection to the bridge socket: who may use it, and in which order messages are accepted.

Owns the bytes, the check of the peer, the timeout of silent clients and the order of messages. The messages are
wire/bridge.py's, sessions and their requests listener.py's and session.py's.
"""

from __future__ import annotations

import asyncio
import logging
import os
from typing import TYPE_CHECKING, cast

from tabhub import __version__
from tabhub.errors import Busy, Forbidden, InvalidRequest, SessionNotFound, TabhubError, TooLarge, Unauthorized
from tabhub.platform.socket_path import peer_uid
from tabhub.server.bridge.session import BridgeSession
from tabhub.trust.tokens import same_token
from tabhub.wire import bridge as wire
from tabhub.wire.lines import LineSplitter

if TYPE_CHECKING:
    from tabhub.server.bridge.listener import BridgeListener

log = logging.getLogger("tabhub.bridge")


class Connection(asyncio.Protocol):
    """One connection of a client."""

    def __init__(self, listener: BridgeListener, token: bytes | None) -> None:
        self._listener = listener
        self._limits = listener.engine.limits
        self._token = token
        """The token that REGISTER and STATUS must carry where the system cannot name the peer; None once they did."""
        self._splitter = LineSplitter(self._limits.bridge_line, self._line, self._too_long)
        self._transport: asyncio.Transport | None = None
        self._cut: str | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.client: BridgeSession | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Accept only this user, and close a client that stays silent."""
        self._transport = cast(asyncio.Transport, transport)
        self._listener.connections.add(self)
        if self._token is None:
            uid = peer_uid(transport.get_extra_info("socket"))
            if uid != os.geteuid():
                log.warning("user %d was refused on the bridge socket", uid)
                self.refuse(None, Forbidden("This hub belongs to another user.", hint="Start your own: tabhub start"))
                self.close()
                return
        self._limit_silence()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client disconnected, or broke off if there still is a session."""
        self._transport = None
        if self._timer is not None:
            self._timer.cancel()
        self._listener.connections.discard(self)
        client, self.client = self.client, None
        if client is not None:
            reason = self._cut or (str(exc) if exc is not None else "it was closed")
            log.info("the connection of session %s ended: %s", client.session.short, reason)
            client.detach()
            self._listener.start_expiry(client)

    def data_received(self, data: bytes) -> None:
        self._splitter.feed(data)

    def write(self, line: bytes) -> None:
        """Send; a client that does not read what it is sent is disconnected."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        self._listener.batch.write(transport, line)
        if transport.get_write_buffer_size() > self._limits.send_queue:
            self._cut = "it does not read what it is sent"
            transport.abort()

    def close(self) -> None:
        if self._transport is not None:
            self._listener.batch.flush(self._transport)
            self._transport.close()

    def _limit_silence(self) -> None:
        """Close a connection that has no session and stays silent."""
        if self._timer is not None:
            self._timer.cancel()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._limits.header_timeout, self.close) if self.client is None else None

    def refuse(self, ident: str | None, error: TabhubError) -> None:
        self.write(wire.error(ident, error))
        if self._token is not None:
            self.close()  # a client that has not shown the token gets one attempt

    def _too_long(self, beginning: bytes) -> None:
        text = f"A line is longer than {self._limits.bridge_line} bytes and was not read."
        self.refuse(wire.beginning_id(beginning), TooLarge(text))

    def _line(self, line: bytes) -> None:
        if not line.strip() or self._transport is None or self._transport.is_closing():
            return
        message: wire.Message | None = None
        client = self.client
        try:
            message = wire.read(line, self._limits)
            self._execute(message)
        except TabhubError as error:
            self.refuse(wire.id_in(line, self._limits) if message is None else getattr(message, "id", None), error)
            if client is not self.client:  # its session had ended
                self.close()

    def _execute(self, message: wire.Message) -> None:
        if isinstance(message, wire.Register):
            self._register(message)
        elif isinstance(message, wire.Status):
            self._authenticate(message.token)
            self.write(wire.encode(self._listener.status(message.id)))
        elif self._token is not None:
            raise Unauthorized("REGISTER or STATUS must come first, with the token.")
        elif isinstance(message, wire.Ping):
            self.write(wire.encode(wire.Pong(message.id)))
        elif isinstance(message, wire.Request):
            self._request(message)
        elif isinstance(message, wire.Cancel):
            if self.client is None or message.id not in self.client.running:
                raise SessionNotFound("No request of this session with this id is in flight.")
            self.client.cancel(message.id)
        elif isinstance(message, wire.Event):
            self._session(message.session_id).event(message)
        else:
            client, self.client = self.client, None
            if client is not None:
                self._listener.end(client, "its client disconnected")
            self.close()
            return
        self._limit_silence()

    def _authenticate(self, token: str | None) -> None:
        if self._token is None:
            return
        if token is None or not same_token(token.encode(), self._token):
            raise Unauthorized("The token is missing or wrong.", hint="run/bridge.json of the hub's home has it.")
        self._token = None

    def _register(self, message: wire.Register) -> None:
        self._authenticate(message.token)
        if self.client is not None:
            raise InvalidRequest("This connection has a session already. DISCONNECT first, or use a new connection.")
        client, resumed = self._listener.register(message)
        self.client = client
        registered = wire.Registered(
            client.session.id, resumed, client.initialized, wire.PROTOCOL, __version__, self._limits.bridge_line
        )
        self.write(wire.encode(registered))
        client.attach(self.write)

    def _session(self, session_id: str) -> BridgeSession:
        """The session of this connection, if it is the one the message names."""
        client = self.client
        if client is None:
            raise InvalidRequest("This connection has no session.", hint="REGISTER first.")
        if client.session.id != session_id:  # whether such a session exists is not revealed
            raise SessionNotFound("There is no such session.", hint="Use the sessionId of REGISTER_OK.")
        if not self._listener.engine.sessions.knows(client.session):
            self._listener.end(client, "the session was ended")
            self.client = None
            raise SessionNotFound("This session was ended.", hint="Connect and REGISTER again.")
        return client

    def _request(self, message: wire.Request) -> None:
        client = self._session(message.session_id)
        if message.id in self._listener.in_flight:
            raise InvalidRequest("A request with this id is in flight. Ids must be unique: <sessionId>:<n>.")
        limit = self._limits.bridge_requests
        if len(client.running) >= limit:
            raise Busy(f"{limit} requests of this session are in flight, which is the limit.", hint="Wait for some.")
        client.request(message)
