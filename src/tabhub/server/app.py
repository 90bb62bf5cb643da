"""The hub's HTTP application: every request through the guard to its route.

Owns who each route is for. Nothing behind it listens on anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tabhub.calls.meter import Meter
from tabhub.errors import BadInput, Forbidden, MethodNotAllowed, NotFound, TabhubError
from tabhub.http.guard import Guard
from tabhub.http.messages import Request, Response, Route, error_response
from tabhub.http.websocket import WebSocketRoute
from tabhub.mcp.rest import Rest
from tabhub.server.admin_routes import Admin
from tabhub.server.approval_routes import ApprovalRoutes
from tabhub.server.extension_socket import ExtensionSocket
from tabhub.server.session_routes import SessionRoutes
from tabhub.server.upstream_routes import CALLBACK, UpstreamRoutes

_Methods = Mapping[str, Route]


class App:
    """The hub as an HTTP application (http.protocol.Application)."""

    def __init__(
        self,
        guard: Guard,
        meter: Meter,
        clock: Callable[[], float],
        *,
        endpoints: Mapping[str, Route],
        rest: Rest,
        extension: ExtensionSocket,
        admin: Admin,
        sessions: SessionRoutes,
        approvals: ApprovalRoutes,
        upstream: UpstreamRoutes,
    ) -> None:
        """`endpoints` are routes of agents by path, which look at the method themselves."""
        self._guard = guard
        self._meter = meter
        self._clock = clock
        self._endpoints = endpoints
        self._extension = extension
        self._health: _Methods = {"GET": admin.health}
        self._login_callback = upstream.login_callback
        self._list_tools: _Methods = {"GET": rest.list_tools}
        self._call_tool: _Methods = {"POST": rest.call_tool}
        self._act_on_session: _Methods = {"POST": sessions.act}
        self._answer_approval: _Methods = {"POST": approvals.answer}
        self._person: dict[str, _Methods] = {
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
            **upstream.routes(),
        }
        """Routes for the person's own tools; an agent's token does not open them."""

    def route(self, request: Request) -> Route:
        try:
            self._guard.check_place(request)
            if (route := self._endpoints.get(request.path)) is None:
                return self._other_route(request)
            request.agent = self._guard.require(request.headers.get(b"authorization"), self._clock())
            return route
        except TabhubError as error:
            self._meter.refuse(error.status)
            raise

    def refusal(self, request: Request, error: TabhubError) -> Response:
        return error_response(error)

    def _other_route(self, request: Request) -> Route:
        path, authorization = request.path, request.headers.get(b"authorization")
        if path == "/tools" or path.startswith("/tools/"):
            request.agent = self._guard.require(authorization, self._clock())
            return _choose(self._tools(path), request.method)
        if path == "/health":
            return _choose(self._health, request.method)
        if path == CALLBACK:
            return self._login_callback
        self._guard.require(authorization, self._clock(), agents=False)
        return _choose(self._for_person(path), request.method)

    def _tools(self, path: str) -> _Methods | None:
        if path == "/tools":
            return self._list_tools
        return self._call_tool if path.endswith("/call") else None

    def _for_person(self, path: str) -> _Methods | None:
        if path.startswith("/sessions/") and path.endswith(("/end", "/release")):
            return self._act_on_session
        if path.startswith("/approvals/"):
            return self._answer_approval
        return self._person.get(path)

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
        return self._extension.route(request)


def _choose(methods: _Methods | None, method: str) -> Route:
    if methods is None:
        raise NotFound("There is nothing at this address.", hint="docs/protocol.md lists the endpoints.")
    route = methods.get(method)
    if route is None:
        raise MethodNotAllowed(f"This address takes {', '.join(methods)}, not {method[:20]}.")
    return route
