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


class HttpServer:
    """Serves an application on some sockets."""

    def __init__(self, app: Application, limits: Limits, batch: WriteBatch) -> None:
        self._app = app
        self._limits = limits
        self._batch = batch
        self._listeners: list[asyncio.Server] = []
        self.connections: set[HttpProtocol | WebSocket] = set()

    async def start(self, sockets: Iterable[socket.socket], tls: ssl.SSLContext | None = None) -> None:
        loop = asyncio.get_running_loop()
        for each in sockets:
            self._listeners.append(await loop.create_server(self._connect, sock=each, ssl=tls, backlog=_BACKLOG))

    def _connect(self) -> HttpProtocol:
        return HttpProtocol(self._app, self._limits, self._batch, self.connections)

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
        cancelled = [task for each in list(self.connections) if (task := each.cancel()) is not None]
        await asyncio.gather(*cancelled, return_exceptions=True)
