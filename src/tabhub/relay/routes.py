"""The relay's listening side: two WebSocket paths, health, and what is refused before anything is read.

Owns the table of routes and the admission of connections. Messages are node.py's and state.py's. Other HTTP routes (MCP
over HTTP at `/mcp`) are passed in. Status and metrics are an application of their own, for a port that no proxy
forwards: nothing in a request says reliably whether it came through one.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from tabhub.errors import Forbidden, NotFound, TabhubError, TooManyConnections
from tabhub.http.messages import Request, Response, Route, error_response, json_response
from tabhub.http.websocket import WebSocketRoute
from tabhub.relay import health
from tabhub.relay.engines.endpoint import RelayHttp
from tabhub.relay.engines.pool import RelayEngines
from tabhub.relay.node import Node, Role
from tabhub.relay.sockets import RelaySocket
from tabhub.trust.guard import host_allowed

ROLES: Mapping[str, Role] = {"/extension": "browser", "/mcp": "agent"}
ADMIN_PATHS = ("/metrics", "/status")
_EXTENSION_SCHEMES = (b"chrome-extension://", b"moz-extension://", b"safari-web-extension://", b"extension://")
_RETRY_AFTER = 5
_METRICS = (b"content-type", b"text/plain; version=0.0.4; charset=utf-8")


class App:
    """The relay as an HTTP application (http.protocol.Application)."""

    def __init__(self, node: Node, mcp: RelayHttp, *, port: int | None = None) -> None:
        """With `port`, the Host header must name this machine and that port."""
        self._node = node
        self._mcp = mcp
        self._port = port

    def route(self, request: Request) -> Route:
        _check_origin_and_host(request, self._port)
        if (route := self._mcp.route(request)) is not None:
            return route
        if request.method != "GET":
            raise NotFound("There is nothing at this address for this method.")
        return self._about

    def refusal(self, request: Request, error: TabhubError) -> Response:
        return self._mcp.refusal(request, error)

    async def _about(self, request: Request) -> Response:
        path = request.path
        if path == "/healthz":
            return json_response({"status": "ok"})
        if path == "/readyz":
            facts = health.readiness(self._node)
            return json_response(facts, 200 if facts["ready"] else 503)
        if path in ADMIN_PATHS:
            raise NotFound(f"{path} is at the node's admin port.", hint="Start the node with --admin-port PORT.")
        if path in ROLES:
            raise NotFound(f"{path} is a WebSocket.")
        raise NotFound("There is nothing at this address.")

    def websocket(self, request: Request) -> WebSocketRoute:
        node = self._node
        _check_origin_and_host(request, self._port)
        role = ROLES.get(request.path)
        if role is None:
            raise NotFound("There is no WebSocket at this address.")
        if node.draining or len(node.sockets) >= node.limits.relay_clients:
            raise TooManyConnections("This relay node takes no more connections; try again.", retry_after=_RETRY_AFTER)
        node.overload.check(node.limits.relay_unauthenticated)
        return WebSocketRoute(None, partial(RelaySocket, node=node, role=role))


class AdminApp:
    """Status and metrics, for the operator."""

    def __init__(self, node: Node, engines: RelayEngines, *, port: int | None = None) -> None:
        """With `port`, the Host header must name this machine and that port."""
        self._node = node
        self._engines = engines
        self._port = port

    def route(self, request: Request) -> Route:
        _check_origin_and_host(request, self._port)
        if not health.near(request.peer):
            raise Forbidden("Status and metrics are for this machine and its private network.")
        if request.method != "GET" or request.path not in ADMIN_PATHS:
            raise NotFound("There is nothing at this address for this method.", hint=f"Use {' or '.join(ADMIN_PATHS)}.")
        return self._figures

    async def _figures(self, request: Request) -> Response:
        if request.path == "/metrics":
            return Response(200, health.metrics(self._node, len(self._engines)), (_METRICS,))
        return json_response(health.figures(self._node, len(self._engines)))

    def refusal(self, request: Request, error: TabhubError) -> Response:
        return error_response(error)

    def websocket(self, request: Request) -> WebSocketRoute:
        raise NotFound("There is no WebSocket at this address.")


def _check_origin_and_host(request: Request, port: int | None) -> None:
    """Refuse requests from web pages and, with a port, for other hosts."""
    origins = [value for name, value in request.raw_headers if name == b"origin"]
    if len(origins) > 1 or any(not origin.startswith(_EXTENSION_SCHEMES) for origin in origins):
        raise Forbidden("Requests from web pages are refused.")
    hosts = [value for name, value in request.raw_headers if name == b"host"]
    if port is not None and not (len(hosts) == 1 and host_allowed(hosts[0], port)):
        raise Forbidden("The Host header does not name this relay.")
