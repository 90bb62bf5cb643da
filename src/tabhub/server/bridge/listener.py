"""The bridge's socket: where the stdio servers of this user's MCP clients reach the hub.

Owns the listener, who may connect, the registered sessions and how long one waits for a client whose connection broke.
Messages on a connection are connection.py's, a session's requests session.py's.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import secrets
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tabhub.calls.engine import Engine
from tabhub.errors import InvalidRequest, RateLimited, TabhubError
from tabhub.mcp.endpoint import McpEndpoint
from tabhub.mcp.notifications import ListNotifier
from tabhub.platform.files import write_atomic
from tabhub.platform.socket_path import TCP, listen_tcp, listen_unix, tcp_record
from tabhub.server.bridge.connection import Connection
from tabhub.server.bridge.lines import Lines
from tabhub.server.bridge.session import BridgeSession
from tabhub.trust.sliding_window import SlidingWindow
from tabhub.wire import bridge as wire

log = logging.getLogger("tabhub.daemon")

_LAST_WORDS = 1.0


class BridgeListener:
    """All clients of the socket."""

    def __init__(
        self,
        place: str,
        home: Path,
        *,
        engine: Engine,
        endpoints: Mapping[str, McpEndpoint],
        notices: ListNotifier,
        rate: SlidingWindow,
        select: Callable[[str], object],
        status: Callable[[], dict[str, Any]],
        admit: Callable[[str | None], str | None],
    ) -> None:
        """`admit` gives the name of a client's token; Unauthorized if it is wrong, or missing where one is needed."""
        self.place = place
        self._home = home
        self.engine = engine
        self.limits = engine.limits
        self._endpoints = endpoints
        self._notices = notices
        self._rate = rate
        self._select = select
        """Raises InvalidParams for an invalid selection of tools."""
        self.status = status
        self.admit = admit
        self._listener: socket.socket | None = None
        self._inode: tuple[int, int] | None = None
        self._server: asyncio.AbstractServer | None = None
        self._token: bytes | None = None
        self._connections: set[Connection] = set()
        self.sessions: dict[str, BridgeSession] = {}
        self.in_flight: set[str] = set()
        """The ids of the requests of all sessions."""
        self._waiting: dict[str, asyncio.TimerHandle] = {}

    # life

    def bind(self) -> socket.socket:
        """Bind the socket, or fail with the reason; connections wait until `start`."""
        if self._listener is not None:
            return self._listener
        if self.place == TCP:
            self._listener = listen_tcp()
            token = secrets.token_hex(32)
            self._token = token.encode()
            record = Path(tcp_record(str(self._home)))
            record.parent.mkdir(mode=0o700, exist_ok=True)
            write_atomic(record, json.dumps({"port": self._listener.getsockname()[1], "token": token}))
        else:
            self._listener = listen_unix(self.place)
            self._inode = _inode(self.place)
        return self._listener

    async def start(self) -> None:
        """Begin to serve; sessions from before a restart wait for their clients."""
        await self._serve()
        for session in self.engine.sessions.all():
            if session.kind == "daemon":
                session.left = self.engine.clock()
                client = self._client(session.id, self._endpoints["all"])
                self._wait_for(client)

    async def _serve(self) -> None:
        listener = self.bind()
        loop = asyncio.get_running_loop()
        if self.place == TCP:
            self._server = await loop.create_server(self._accept, sock=listener)
        else:
            self._server = await loop.create_unix_server(self._accept, sock=listener)

    def _accept(self) -> Lines:
        return Lines(Connection(self, self._token), longest=self.limits.daemon_line, queue=self.limits.send_queue)

    async def keep(self) -> None:
        """Keep the socket in place: cleaners of temporary folders remove what looks old."""
        if self._server is None or self.place == TCP or _inode(self.place) == self._inode:
            return
        log.warning("the daemon's socket %s was removed; it is made anew", self.place)
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
        if self.place == TCP:
            Path(tcp_record(str(self._home))).unlink(missing_ok=True)
        elif self._inode is not None and _inode(self.place) == self._inode:
            with contextlib.suppress(FileNotFoundError):
                Path(self.place).unlink()

    async def stop(self) -> None:
        """Close the connections. The sessions stay as they are, for the next start."""
        self.closing()
        for timer in self._waiting.values():
            timer.cancel()
        tasks = [task for client in self.sessions.values() for task in client.ending()]
        if tasks:
            await asyncio.wait(tasks, timeout=_LAST_WORDS)
        for connection in list(self._connections):
            connection.close()

    # sessions

    def register(self, message: wire.Register) -> tuple[BridgeSession, bool]:
        """The session a client reconnects to, or a new one, and which of the two."""
        token = self.admit(message.agent_token)
        endpoint = self._endpoints[message.surface]
        if message.tools is not None:
            self._select(message.tools)
        if message.session_id is not None:
            known = self.sessions.get(message.session_id)
            if known is not None and self.engine.sessions.knows(known.session) and known.session.token == token:
                timer = self._waiting.pop(message.session_id, None)
                if timer is not None:
                    timer.cancel()
                known.endpoint, known.tools = endpoint, message.tools
                return known, True
        now = self.engine.clock()
        retry_after = self._rate.hit("sessions", now)
        if retry_after is not None:
            raise RateLimited(
                "Too many new sessions.", retry_after=int(retry_after) + 1, hint="Wait, or raise limits.session_rate."
            )
        ident = secrets.token_hex(16)
        self.engine.sessions.open(ident, "daemon", message.display_name or "unknown", now, token)
        client = self._client(ident, endpoint)
        client.tools = message.tools
        return client, False

    def _client(self, ident: str, endpoint: McpEndpoint) -> BridgeSession:
        session = self.engine.sessions.require(ident, "daemon")
        client = self.sessions[ident] = BridgeSession(session, endpoint, self.engine, self._notices, self.in_flight)
        return client

    def left(self, client: BridgeSession) -> None:
        """A connection broke: the session waits a while for its client to reconnect."""
        client.detach()
        self._wait_for(client)

    def _wait_for(self, client: BridgeSession) -> None:
        ident = client.session.id
        self._waiting[ident] = asyncio.get_running_loop().call_later(
            self.limits.daemon_grace, self.end, client, "its client did not come back"
        )

    def end(self, client: BridgeSession, reason: str) -> None:
        ident = client.session.id
        timer = self._waiting.pop(ident, None)
        if timer is not None:
            timer.cancel()
        if self.sessions.get(ident) is client:
            del self.sessions[ident]
        client.close()
        if self.engine.sessions.knows(client.session):
            self.engine.end_session(ident, reason)

    def opened(self, connection: Connection) -> None:
        self._connections.add(connection)

    def closed(self, connection: Connection) -> None:
        self._connections.discard(connection)

    def replace(self, client: BridgeSession, by: Connection) -> None:
        """A client that reconnects before its old connection has ended replaces that connection."""
        for connection in self._connections:
            if connection.client is client and connection is not by:
                connection.client = None
                connection.refuse(None, InvalidRequest("This session was taken up on another connection."))
                connection.close()
        client.detach()


def _inode(path: str) -> tuple[int, int] | None:
    try:
        facts = Path(path).stat()
    except OSError:
        return None
    return facts.st_dev, facts.st_ino
