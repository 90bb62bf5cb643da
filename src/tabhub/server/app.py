"""The hub's HTTP application: every request through the guard to its route.

Owns the table of routes and who each is for. Nothing behind it listens on anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tabhub.errors import BadInput, Forbidden, MethodNotAllowed, NotFound, TabhubError
from tabhub.http.messages import Request, Response, Route, error_response
from tabhub.http.websocket import WebSocketRoute
from tabhub.mcp.rest import Rest
from tabhub.server.admin_routes import Admin
from tabhub.server.approval_routes import ApprovalRoutes
from tabhub.server.session_routes import SessionRoutes
from tabhub.server.upstream_routes import CALLBACK, UpstreamWays, logged_in

if TYPE_CHECKING:
    from tabhub.server.hub import Hub


class App:
    """The hub as an HTTP application (http.protocol.Application)."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._guard = hub.guard
        self._clock = hub.engine.clock
        self._meter = hub.engine.meter
        admin, rest, sessions, approvals = (
            Admin(hub),
            Rest(hub.engine, hub.catalogue),
            SessionRoutes(hub),
            ApprovalRoutes(hub),
        )
        self._health = admin.health
        self._call_tool = rest.call_tool
        self._for_agents: dict[str, Route] = {"/mcp": hub.mcp.serve, "/mcp/gateway": hub.gateway.serve}
        """Routes of agents, which look at the method themselves."""
        self._act_on_session = sessions.act
        self._answer_approval = approvals.answer
        self._routes: dict[str, dict[str, Route]] = {
            "/tools": {"GET": rest.list_tools},
            "/ws-info": {"GET": admin.ws_info},
            "/audit": {"GET": admin.audit},
            "/metrics": {"GET": admin.metrics},
            "/reload": {"POST": admin.reload},
            "/extension/reload": {"POST": admin.reload_extension},
            "/plugin-settings": {"POST": admin.plugin_settings},
            "/sessions": {"GET": sessions.all},
            "/approvals": {"GET": approvals.all},
            "/pause": {"POST": sessions.pause},
            "/resume": {"POST": sessions.resume},
            **UpstreamWays(hub, hub.upstream).routes(),
        }

    def route(self, request: Request) -> Route:
        try:
            return self._admit(request)
        except TabhubError as error:
            self._meter.refuse(error.status)
            raise

    def refusal(self, request: Request, error: TabhubError) -> Response:
        return error_response(error)

    def _admit(self, request: Request) -> Route:
        self._guard.check_place(request)
        path = request.path
        if (route := self._for_agents.get(path)) is not None:
            request.agent = self._authorize(request, agents=True)
            return route
        if path.startswith("/tools"):
            request.agent = self._authorize(request, agents=True)
            if path.startswith("/tools/") and path.endswith("/call"):
                return _choose({"POST": self._call_tool}, request.method)
        elif path == "/health":
            return _choose({"GET": self._health}, request.method)
        elif path == CALLBACK:
            return self._logged_in
        else:
            self._authorize(request, agents=False)
        return _choose(self._methods(path), request.method)

    def _authorize(self, request: Request, *, agents: bool) -> str | None:
        return self._guard.require(request.headers.get(b"authorization"), self._clock(), agents=agents)

    def _methods(self, path: str) -> dict[str, Route]:
        if path.startswith("/sessions/") and path.endswith(("/end", "/release")):
            return {"POST": self._act_on_session}
        if path.startswith("/approvals/"):
            return {"POST": self._answer_approval}
        methods = self._routes.get(path)
        if methods is None:
            raise NotFound("There is nothing at this address.", hint="docs/protocol.md lists the endpoints.")
        return methods

    async def _logged_in(self, request: Request) -> Response:
        return logged_in(self._hub, request)

    def websocket(self, request: Request) -> WebSocketRoute:
        try:
            self._guard.check_place(request)
            if request.path != "/ws":
                raise NotFound("There is no WebSocket at this address.")
        except TabhubError as error:
            self._meter.refuse(error.status)
            if isinstance(error, Forbidden | NotFound):
                raise
            raise BadInput(error.message, hint=error.hint) from None
        return self._hub.socket.route(request)


def _choose(methods: dict[str, Route], method: str) -> Route:
    route = methods.get(method)
    if route is None:
        raise MethodNotAllowed(f"This address takes {', '.join(methods)}, not {method[:20]}.")
    return route
