"""The bridge socket: where the stdio bridges of this user's MCP clients reach the hub.

Owns the listener, the registered sessions and how long one waits for a client whose connection broke. Messages on a
connection are connection.py's, a session's requests session.py's.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tabhub.calls.engine import Engine
from tabhub.core.sessions import Session
from tabhub.errors import InvalidRequest, RateLimited, TabhubError
from tabhub.http.write_batch import WriteBatch
from tabhub.mcp.endpoint import McpEndpoint
from tabhub.mcp.notifications import ListNotifier
from tabhub.platform.bridge_socket import listen_tcp, listen_unix
from tabhub.platform.files import write_atomic
from tabhub.platform.socket_path import TCP, tcp_record
from tabhub.server.bridge.connection import Connection
from tabhub.server.bridge.session import BridgeSession
from tabhub.trust.sliding_window import SlidingWindow
from tabhub.wire import bridge as wire

log = logging.getLogger("tabhub.bridge")

_LAST_ANSWERS = 1.0
"""Seconds for pending answers at shutdown."""


@dataclass(eq=False)
class BridgeListener:
    """All clients of the socket."""

    path: str
    home: Path
    batch: WriteBatch
    engine: Engine
    endpoints: Mapping[str, McpEndpoint]
    notices: ListNotifier
    rate: SlidingWindow
    select: Callable[[str], object]
    """Raises InvalidParams for an invalid selection of tools."""
    status: Callable[[str], wire.StatusReply]
    admit: Callable[[str | None], str | None]
    """Gives the name of a client's token; Unauthorized if it is wrong, or missing where one is needed."""
    connections: set[Connection] = field(default_factory=set, init=False)
    sessions: dict[str, BridgeSession] = field(default_factory=dict, init=False)
    in_flight: set[str] = field(default_factory=set, init=False)
    """The ids of the requests of all sessions."""
    _listener: socket.socket | None = field(default=None, init=False)
    _inode: tuple[int, int] | None = field(default=None, init=False)
    _server: asyncio.AbstractServer | None = field(default=None, init=False)
    _token: bytes | None = field(default=None, init=False)

    def bind(self) -> socket.socket:
        """Bind the socket, or fail with the reason; connections wait until `start`."""
        if self._listener is not None:
            return self._listener
        if self.path == TCP:
            self._listener = listen_tcp()
            token = secrets.token_hex(32)
            self._token = token.encode()
            record = Path(tcp_record(str(self.home)))
            record.parent.mkdir(mode=0o700, exist_ok=True)
            write_atomic(record, json.dumps({"port": self._listener.getsockname()[1], "token": token}))
        else:
            self._listener = listen_unix(self.path)
            self._inode = _inode(self.path)
        return self._listener

    async def start(self) -> None:
        """Begin to serve; sessions from before a restart wait for their clients."""
        await self._serve()
        for session in self.engine.sessions.all():
            if session.kind == "bridge":
                session.disconnected_at = self.engine.clock()
                self.start_expiry(self._client(session, self.endpoints["all"], None))

    async def _serve(self) -> None:
        listener = self.bind()
        loop = asyncio.get_running_loop()
        serve = loop.create_server if self.path == TCP else loop.create_unix_server
        self._server = await serve(lambda: Connection(self, self._token), sock=listener)

    async def restore_socket(self) -> None:
        """Create the socket again if it was removed: cleaners of temporary folders delete old files."""
        if self._server is None or self.path == TCP or _inode(self.path) == self._inode:
            return
        log.warning("the bridge socket %s was removed; creating it again", self.path)
        self._server.close()
        self._listener = self._server = None
        try:
            await self._serve()
        except TabhubError as error:
            log.error("%s", error.text())

    def closing(self) -> None:
        """Accept no more clients; connected ones still get their pending answers."""
        if self._server is not None:
            self._server.close()
            self._server = None
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        if self.path == TCP:
            Path(tcp_record(str(self.home))).unlink(missing_ok=True)
        elif self._inode is not None and _inode(self.path) == self._inode:
            Path(self.path).unlink(missing_ok=True)

    async def stop(self) -> None:
        """Close the connections. The sessions stay as they are, for the next start."""
        self.closing()
        tasks: set[asyncio.Task[None]] = set()
        for client in self.sessions.values():
            client.stop_expiry()
            tasks |= client.unanswered()
        if tasks:
            await asyncio.wait(tasks, timeout=_LAST_ANSWERS)
        for connection in list(self.connections):
            connection.close()

    def register(self, message: wire.Register) -> tuple[BridgeSession, bool]:
        """The session a client reconnects to, or a new one, and whether it is resumed."""
        token = self.admit(message.agent_token)
        endpoint = self.endpoints[message.surface]
        if message.tools is not None:
            self.select(message.tools)
        known = self.sessions.get(message.session_id or "")
        if known is not None and self.engine.sessions.knows(known.session) and known.session.token == token:
            known.endpoint, known.tools = endpoint, message.tools
            self._disconnect(known)
            known.stop_expiry()
            return known, True
        now = self.engine.clock()
        retry_after = self.rate.hit("sessions", now)
        if retry_after is not None:
            raise RateLimited(
                "Too many new sessions.", retry_after=int(retry_after) + 1, hint="Wait, or raise limits.session_rate."
            )
        ident = secrets.token_hex(16)
        session = self.engine.sessions.open(ident, "bridge", message.display_name or "unknown", now, token)
        return self._client(session, endpoint, message.tools), False

    def _client(self, session: Session, endpoint: McpEndpoint, tools: str | None) -> BridgeSession:
        client = BridgeSession(session, endpoint, tools, self.engine, self.notices, self.in_flight)
        self.sessions[session.id] = client
        return client

    def _disconnect(self, client: BridgeSession) -> None:
        """A client that reconnects before its old connection has ended replaces that connection."""
        for connection in self.connections:
            if connection.client is client:
                connection.client = None
                connection.refuse(None, InvalidRequest("This session was resumed on another connection."))
                connection.close()
        client.detach()

    def start_expiry(self, client: BridgeSession) -> None:
        """A connection broke: the session ends unless its client reconnects in time."""
        client.expiry = asyncio.get_running_loop().call_later(
            self.engine.limits.bridge_grace, self.end, client, "its client did not come back"
        )

    def end(self, client: BridgeSession, reason: str) -> None:
        ident = client.session.id
        client.stop_expiry()
        if self.sessions.get(ident) is client:
            del self.sessions[ident]
        client.close()
        if self.engine.sessions.knows(client.session):
            self.engine.end_session(ident, reason)


def _inode(path: str) -> tuple[int, int] | None:
    try:
        facts = Path(path).stat()
    except OSError:
        return None
    return facts.st_dev, facts.st_ino
