"""The relay's listening side: two WebSocket paths, health, and what is refused before anything is read.

Owns the table of routes and the admission of connections. Messages are node.py's and state.py's. Other HTTP routes (MCP
over HTTP at `/mcp`) are passed in.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from tabhub.errors import Forbidden, NotFound, TabhubError, TooManyConnections
from tabhub.http.messages import Request, Response, Route, json_response
from tabhub.http.websocket import WebSocketRoute
from tabhub.relay import health
from tabhub.relay.engines.endpoint import RelayHttp
from tabhub.relay.node import Node, Role
from tabhub.relay.sockets import RelaySocket
from tabhub.trust.guard import host_allowed

ROLES: Mapping[str, Role] = {"/extension": "browser", "/mcp": "agent"}
_EXTENSION_SCHEMES = (b"chrome-extension://", b"moz-extension://", b"safari-web-extension://", b"extension://")
_METRICS = (b"content-type", b"text/plain; version=0.0.4; charset=utf-8")


class App:
    """The relay as an HTTP application (http.protocol.Application)."""

    def __init__(self, node: Node, mcp: RelayHttp, *, port: int | None = None, figures_port: int | None = None) -> None:
        """With `port`, the Host header must name this machine and that port; with `figures_port`, it must for status
        and metrics."""
        self._node = node
        self._mcp = mcp
        self._port = port
        self._figures_port = figures_port

    def route(self, request: Request) -> Route:
        self._check_origin_and_host(request)
        if (route := self._mcp.route(request)) is not None:
            return route
        if request.method != "GET":
            raise NotFound("There is nothing at this address for this method.")
        return self._about

    def refusal(self, request: Request, error: TabhubError) -> Response:
        return self._mcp.refusal(request, error)

    def _check_origin_and_host(self, request: Request) -> None:
        """Refuse requests from web pages and for other hosts."""
        origins = [value for name, value in request.raw_headers if name == b"origin"]
        if len(origins) > 1 or any(not origin.startswith(_EXTENSION_SCHEMES) for origin in origins):
            raise Forbidden("Requests from web pages are refused.")
        if self._port is not None and not _names(request, self._port):
            raise Forbidden("The Host header does not name this relay.")

    async def _about(self, request: Request) -> Response:
        node, path = self._node, request.path
        if path == "/healthz":
            return json_response({"status": "ok"})
        if path == "/readyz":
            facts = health.readiness(node)
            return json_response(facts, 200 if facts["ready"] else 503)
        if path in ("/metrics", "/status") and health.near(request.peer, request.raw_headers):
            if self._figures_port is not None and not _names(request, self._figures_port):
                raise Forbidden(
                    "The Host header does not name this machine.", hint=f"Ask 127.0.0.1:{self._figures_port}{path}"
                )
            if path == "/metrics":
                return Response(200, health.metrics(node, len(self._mcp.engines)), (_METRICS,))
            return json_response(health.figures(node, len(self._mcp.engines)))
        if path in ROLES:
            raise NotFound(f"{path} is a WebSocket.")
        raise NotFound("There is nothing at this address.")

    def websocket(self, request: Request) -> WebSocketRoute:
        node = self._node
        self._check_origin_and_host(request)
        role = ROLES.get(request.path)
        if role is None:
            raise NotFound("There is no WebSocket at this address.")
        if node.closing or len(node.sockets) >= node.limits.relay_clients:
            raise TooManyConnections("This relay node takes no more connections; try again in a moment.")
        return WebSocketRoute(None, partial(RelaySocket, node=node, role=role))


def _names(request: Request, port: int) -> bool:
    """Whether a request names this machine and that port as its host."""
    hosts = [value for name, value in request.raw_headers if name == b"host"]
    return len(hosts) == 1 and host_allowed(hosts[0], port)
