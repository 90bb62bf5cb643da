"""What the person may do with external servers: methods of the panel, and HTTP routes of the command line.

The record of a server may name a command that runs on this machine, so only the person reaches them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from tabhub.calls.sources.upstream import Upstreams
from tabhub.http.guard import Endpoint
from tabhub.http.messages import Request, Response, Route, json_response
from tabhub.limits import Limits
from tabhub.links.extension import Handler
from tabhub.upstream.login_callbacks import PATH as CALLBACK
from tabhub.wire.extension_link import READERS
from tabhub.wire.panel import AddServers, OneServer, ServerSettings

_LONGEST_QUERY = 16_000
Method = Callable[[Any], Awaitable[dict[str, Any]]]


@dataclass(eq=False)
class UpstreamRoutes:
    """What a person may do with external servers."""

    upstreams: Upstreams
    limits: Limits

    def __post_init__(self) -> None:
        self._methods: dict[str, Method] = {
            "upstream.add": self._add,
            "upstream.set": self._set,
            "upstream.refresh": self._refresh,
            "upstream.remove": self._remove,
        }

    def methods(self) -> dict[str, Handler]:
        """`upstream.*` for the panel."""

        def handler(method: Method) -> Handler:
            return lambda _link, params: method(params)

        return {name: handler(method) for name, method in self._methods.items()}

    def endpoints(self) -> dict[str, Endpoint]:
        """`/upstream…` for the command line, and the address that login pages redirect the browser to."""
        posts = {f"/{name.replace('.', '/')}": Endpoint({"POST": self._route(name)}) for name in self._methods}
        login = Endpoint({"*": self._login_callback}, "anyone")
        return {"/upstream": Endpoint({"GET": self._all}), **posts, CALLBACK: login}

    async def _all(self, request: Request) -> Response:
        return json_response({"servers": self.upstreams.all()})

    def _route(self, name: str) -> Route:
        async def route(request: Request) -> Response:
            return json_response(await self._methods[name](READERS[name](request.json_object(self.limits))))

        return route

    async def _login_callback(self, request: Request) -> Response:
        """`GET /oauth/callback`: a login page redirects the browser here, with its one-time `state`."""
        answers = request.query_values() if len(request.query) <= _LONGEST_QUERY else {}
        accepted = request.method == "GET" and self.upstreams.logins.resolve(answers)
        text = "You are logged in. This tab can be closed." if accepted else "No login is pending here. Start it again."
        page = f"<!doctype html><meta charset=utf-8><title>Tabhub</title><p>{text}</p>".encode()
        headers = (
            (b"content-type", b"text/html; charset=utf-8"),
            (b"content-security-policy", b"default-src 'none'"),
            (b"cache-control", b"no-store"),
            (b"referrer-policy", b"no-referrer"),
        )
        return Response(200 if accepted else 400, page, headers)

    async def _add(self, wanted: AddServers) -> dict[str, Any]:
        return {"servers": await self.upstreams.add(wanted.json)}

    async def _set(self, wanted: ServerSettings) -> dict[str, Any]:
        changed = await self.upstreams.set(wanted.name, enabled=wanted.enabled, disabled=wanted.disabled_tools)
        return {"server": changed}

    async def _refresh(self, server: OneServer) -> dict[str, Any]:
        return {"server": await self.upstreams.refresh(server.name)}

    async def _remove(self, server: OneServer) -> dict[str, Any]:
        await self.upstreams.remove(server.name)
        return {"ok": True}
