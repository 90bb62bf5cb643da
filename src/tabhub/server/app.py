"""The ASGI app: every request through the guard to its route.

Owns the table of routes. Nothing behind it listens on anything. Requests whose head passed here before come straight to
their route (arrival.py), after `admits` has looked at what may have changed.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from tabhub.errors import ClientDisconnected, Forbidden, MethodNotAllowed, NotFound, TabhubError
from tabhub.http.known_heads import HEAD, TOKEN, Head, Post, with_query
from tabhub.http.responses import Receive, Scope, Send, respond_error
from tabhub.http.websocket import refuse
from tabhub.mcp.rest import Rest
from tabhub.server.admin_routes import Admin
from tabhub.server.approval_routes import ApprovalRoutes
from tabhub.server.session_routes import SessionRoutes
from tabhub.server.upstream_routes import CALLBACK, UpstreamWays, logged_in

if TYPE_CHECKING:
    from tabhub.server.hub import Hub

log = logging.getLogger("tabhub.http")

Route = Callable[[Scope, Receive, Send], Awaitable[None]]


class App:
    """The hub as an ASGI application."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._guard = hub.guard
        self._clock = hub.engine.clock
        self._meter = hub.engine.meter
        self._admin = Admin(hub)
        rest = Rest(hub.engine, hub.catalogue)
        self._rest = rest
        self._posts: dict[str, Post] = {"/mcp": hub.mcp.post, "/mcp/gateway": hub.gateway.post}
        """Where calls go that come straight."""
        sessions = SessionRoutes(hub)
        self._act_on_session = sessions.act
        approvals = ApprovalRoutes(hub)
        self._answer_approval = approvals.answer
        self._any: dict[str, Route] = {"/mcp": hub.mcp, "/mcp/gateway": hub.gateway}
        """Routes that look at the method themselves."""
        self._routes: dict[str, dict[str, Route]] = {
            "/tools": {"GET": rest.list_tools},
            "/ws-info": {"GET": self._admin.ws_info},
            "/audit": {"GET": self._admin.audit},
            "/metrics": {"GET": self._admin.metrics},
            "/reload": {"POST": self._admin.reload},
            "/extension/reload": {"POST": self._admin.reload_extension},
            "/plugin-settings": {"POST": self._admin.plugin_settings},
            "/sessions": {"GET": sessions.all},
            "/approvals": {"GET": approvals.all},
            "/pause": {"POST": sessions.pause},
            "/resume": {"POST": sessions.resume},
            **UpstreamWays(hub, hub.upstream).routes(),
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection or request."""
        kind = scope["type"]
        if kind != "http":
            await (self._websocket(scope, receive, send) if kind == "websocket" else self._lifespan(receive, send))
            return
        path: str = scope["path"]
        try:
            headers = self._guard.place(scope)
            authorization = headers.get(b"authorization")
            if path == "/health":
                if scope["method"] != "GET":
                    raise MethodNotAllowed("/health takes GET.")
                await self._admin.health(self._guard.authenticated(authorization), scope, send)
                return
            if path == CALLBACK:
                await logged_in(self._hub, scope, send)
                return
            name = self._guard.require(authorization, self._clock(), agents=_for_agents(path))
            route = self._any.get(path) or self._route(path, scope["method"])
            if scope["query_string"]:
                headers = with_query(headers, scope["query_string"])
            if name is not None:
                headers = {**headers, TOKEN: name.encode()}
            scope[HEAD] = Head(path, scope["headers"], headers, self._post(path, scope["method"]))
            await route(scope, receive, send)
        except ClientDisconnected:
            return
        except TabhubError as error:
            self._meter.refuse(error.status)
            await respond_error(send, error)

    def admits(self, head: Head, size: int) -> bool:
        """Whether a request with a head that passed may come in now; if not, it is refused on the ordinary road."""
        return self._guard.admits_again(head.headers, size)

    def _post(self, path: str, method: str) -> Post | None:
        """The route that takes a whole POST to this path, if it is one for calls."""
        if method != "POST":
            return None
        return self._posts.get(path) or (self._rest.post if _calls_tool(path) else None)

    def _route(self, path: str, method: str) -> Route:
        if _calls_tool(path):
            methods: dict[str, Route] = {"POST": self._rest.call_tool}
        elif path.startswith("/sessions/") and path.endswith(("/end", "/release")):
            methods = {"POST": self._act_on_session}
        elif path.startswith("/approvals/"):
            methods = {"POST": self._answer_approval}
        else:
            found = self._routes.get(path)
            if found is None:
                raise NotFound("There is nothing at this address.", hint="docs/protocol.md lists the endpoints.")
            methods = found
        route = methods.get(method)
        if route is None:
            raise MethodNotAllowed(f"This address takes {', '.join(methods)}, not {method[:20]}.")
        return route

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            self._guard.place(scope)
            if scope["path"] != "/ws":
                raise NotFound("There is no WebSocket at this address.")
        except TabhubError as error:
            self._meter.refuse(error.status)
            await receive()
            await refuse(send, error.status if isinstance(error, Forbidden | NotFound) else 400, error.text().encode())
            return
        await self._hub.socket(scope, receive, send)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await self._hub.start()
                await send({"type": "lifespan.startup.complete"})
            else:
                await self._hub.stop()
                await send({"type": "lifespan.shutdown.complete"})
                return


def _for_agents(path: str) -> bool:
    return path in ("/mcp", "/mcp/gateway", "/tools") or path.startswith("/tools/")


def _calls_tool(path: str) -> bool:
    return path.startswith("/tools/") and path.endswith("/call")
