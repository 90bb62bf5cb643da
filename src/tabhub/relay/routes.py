"""The relay's listening side: two WebSocket addresses, health, and what is refused before anything is read.

Owns the ASGI app and the sockets' life. What is said on them is node.py's and state.py's. Other HTTP routes (MCP over
HTTP at `/mcp`) can be added by whoever builds the app.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

import orjson

from tabhub.errors import Forbidden, NotFound, TabhubError, TooManyConnections
from tabhub.http.responses import Receive, Scope, Send, respond, respond_error, respond_json
from tabhub.http.websocket import EXTENSION, refuse
from tabhub.relay import health
from tabhub.relay.node import Node, Role
from tabhub.relay.sockets import Ends, RelaySocket, Turn
from tabhub.trust.guard import host_allowed
from tabhub.wire.relay import NOT_AUTHENTICATED, PROTOCOL_ERROR

Route = Callable[[Scope, Receive, Send], Awaitable[None]]

ROLES: Mapping[str, Role] = {"/extension": "browser", "/mcp": "agent"}
_EXTENSION_SCHEMES = (b"chrome-extension://", b"moz-extension://", b"safari-web-extension://", b"extension://")
_TEXT = (b"content-type", b"text/plain; version=0.0.4; charset=utf-8")


class App:
    """The relay as an ASGI application."""

    def __init__(
        self,
        node: Node,
        *,
        port: int | None = None,
        figures_port: int | None = None,
        routes: Mapping[str, Route] | None = None,
    ) -> None:
        """With a port, the Host header must name this machine and that port; with `figures_port`, where the node's
        figures are asked for. `routes` are HTTP paths of others."""
        self._node = node
        self._port = port
        self._figures_port = figures_port
        self._turn = Turn()
        self.routes: dict[str, Route] = dict(routes or {})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection or request."""
        kind = scope["type"]
        if kind == "websocket":
            await self._websocket(scope, receive, send)
        elif kind == "http":
            await self._http(scope, receive, send)
        else:
            await self._lifespan(receive, send)

    def _place(self, scope: Scope) -> None:
        """Refuse what comes from web pages, or under a foreign name."""
        origins = [value for name, value in scope["headers"] if name == b"origin"]
        if len(origins) > 1 or any(not origin.startswith(_EXTENSION_SCHEMES) for origin in origins):
            raise Forbidden("Requests from web pages are refused.")
        if self._port is not None and not _names(scope, self._port):
            raise Forbidden("The Host header does not name this relay.")

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope["path"]
        try:
            self._place(scope)
            route = self.routes.get(path)
            if route is not None:
                await route(scope, receive, send)
                return
            if scope["method"] != "GET":
                raise NotFound("There is nothing at this address for this method.")
            await self._about(path, scope, send)
        except TabhubError as error:
            await respond_error(send, error)

    async def _about(self, path: str, scope: Scope, send: Send) -> None:
        node = self._node
        if path == "/healthz":
            await respond_json(send, {"status": "ok"})
        elif path == "/readyz":
            facts = health.readiness(node)
            await respond_json(send, facts, 200 if facts["ready"] else 503)
        elif path in ("/metrics", "/status") and health.near(scope.get("client"), scope["headers"]):
            if self._figures_port is not None and not _names(scope, self._figures_port):
                raise Forbidden(
                    "The Host header does not name this machine.", hint=f"Ask 127.0.0.1:{self._figures_port}{path}"
                )
            if path == "/metrics":
                await respond(send, 200, health.metrics(node), [_TEXT])
            else:
                await respond_json(send, health.figures(node, time.monotonic() - node.started))
        elif path in ROLES:
            raise NotFound(f"{path} is a WebSocket.")
        else:
            raise NotFound("There is nothing at this address.")

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        node = self._node
        await receive()
        try:
            self._place(scope)
            role = ROLES.get(scope["path"])
            if role is None:
                raise NotFound("There is no WebSocket at this address.")
            if node.closing or node.clients >= node.limits.relay_clients:
                raise TooManyConnections("This relay node takes no more connections; try again in a moment.")
        except TabhubError as error:
            await refuse(send, error.status, error.text().encode())
            return
        await send({"type": "websocket.accept"})
        socket: RelaySocket = scope["extensions"][EXTENSION]
        socket.turn = self._turn
        # What the handshake needed is not needed again, and would be kept for as long as the client stays.
        scope.clear()
        client = node.attach(role, socket)
        socket.take_over(partial(node.feed, client), node.limits.relay_queue, partial(node.too_slow, client))
        ends = Ends(partial(node.refuse, client, NOT_AUTHENTICATED), partial(node.abort, client))
        socket.partake(node.fair_share, partial(node.user_of, client), node.limits.relay_stranger, ends)
        while True:
            message = await receive()
            if message["type"] == "websocket.disconnect":
                break
            node.refuse(client, PROTOCOL_ERROR, "messages must be text")
        node.detach(client, str(message.get("reason") or f"closed with {message.get('code', 1006)}"))

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                try:
                    await self._node.start()
                except TabhubError as error:
                    await send({"type": "lifespan.startup.failed", "message": error.text()})
                    return
                await send({"type": "lifespan.startup.complete"})
            else:
                await self._node.stop()
                await send({"type": "lifespan.shutdown.complete"})
                return


def _names(scope: Scope, port: int) -> bool:
    """Whether a request names this machine and that port as its host."""
    hosts = [value for name, value in scope["headers"] if name == b"host"]
    return len(hosts) == 1 and host_allowed(hosts[0], port)


def shown(value: object) -> bytes:
    """A value as one line of JSON, for logs."""
    return orjson.dumps(value, default=str)
