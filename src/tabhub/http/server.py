"""A listening HTTP server: accepts connections, and ends them in order.

Owns the listeners and open connections. What is served is the application's.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Iterable

from tabhub.http.protocol import Application, HttpProtocol
from tabhub.http.websocket import WebSocket
from tabhub.http.write_batch import WriteBatch
from tabhub.limits import Limits

_BACKLOG = 4096
_POLL = 0.02
_LOOK = 1.0
"""Seconds between two looks at the deadlines of connections."""


class HttpServer:
    """Serves an application on some sockets."""

    def __init__(self, app: Application, limits: Limits, batch: WriteBatch) -> None:
        self._app = app
        self._limits = limits
        self._batch = batch
        self._listeners: list[asyncio.Server] = []
        self._watcher: asyncio.Task[None] | None = None
        self.connections: set[HttpProtocol | WebSocket] = set()

    async def start(self, sockets: Iterable[socket.socket], tls: ssl.SSLContext | None = None) -> None:
        loop = asyncio.get_running_loop()
        self._watcher = loop.create_task(self._check_deadlines(loop))
        for each in sockets:
            self._listeners.append(await loop.create_server(self._connect, sock=each, ssl=tls, backlog=_BACKLOG))

    def _connect(self) -> HttpProtocol:
        return HttpProtocol(self._app, self._limits, self._batch, self.connections)

    async def _check_deadlines(self, loop: asyncio.AbstractEventLoop) -> None:
        """Close connections whose time is up. One look at all of them costs less than a timer for each."""
        while True:
            await asyncio.sleep(_LOOK)
            now = loop.time()
            for connection in list(self.connections):
                if isinstance(connection, HttpProtocol):
                    connection.check_deadline(now)

    async def stop(self, grace: float) -> None:
        """Accept nothing more, let requests in flight be answered within `grace` seconds, then close the rest."""
        for listener in self._listeners:
            listener.close()
        for connection in list(self.connections):
            connection.shut_down()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace):
                while self.connections:  # noqa: ASYNC110 - connections end by themselves, and report to no one
                    await asyncio.sleep(_POLL)
        if self._watcher is not None:
            self._watcher.cancel()
        cancelled = [task for each in list(self.connections) if (task := each.cancel()) is not None]
        await asyncio.gather(*cancelled, return_exceptions=True)
