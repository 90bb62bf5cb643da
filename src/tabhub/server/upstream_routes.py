"""The person's ways to external servers: methods of the panel's link and routes of the command line.

Owns what both take and give; the work is server.upstream's. A record may name a command that runs on this machine, so
the routes that change something want the approver's key, which agents do not have (server.approving).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from tabhub.calls.sources.upstream import Upstreams
from tabhub.errors import InvalidParams, TabhubError
from tabhub.http.messages import Request, Response, Route, json_response
from tabhub.limits import Limits
from tabhub.links.extension import ExtensionLink, Handler
from tabhub.server.access import ApproverKey
from tabhub.upstream.login_callbacks import PATH as CALLBACK

log = logging.getLogger("tabhub.upstream")

__all__ = ["CALLBACK", "UpstreamRoutes"]

_LONGEST = 300
_MOST = 2000
_QUERY = 16_000


class UpstreamRoutes:
    """What a person may do with external servers."""

    def __init__(self, upstreams: Upstreams, key: ApproverKey, limits: Limits) -> None:
        self._upstreams = upstreams
        self._key = key
        self._limits = limits
        self._tasks: set[asyncio.Task[Any]] = set()
        self._works: dict[str, Callable[[dict[str, Any]], Coroutine[Any, Any, dict[str, Any]]]] = {
            "add": self._add,
            "set": self._set,
            "refresh": self._refresh,
            "remove": self._remove,
        }

    def methods(self) -> dict[str, Handler]:
        """`upstream.*` for links of the person's own extension."""
        return {f"upstream.{name}": self._later(work) for name, work in self._works.items()}

    def routes(self) -> dict[str, dict[str, Route]]:
        """`/upstream…` for the command line."""
        posts: dict[str, dict[str, Route]] = {
            f"/upstream/{name}": {"POST": self._route(work)} for name, work in self._works.items()
        }
        return {"/upstream": {"GET": self._all}, **posts}

    async def _all(self, request: Request) -> Response:
        return json_response({"servers": self._upstreams.all()})

    def _route(self, work: Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]) -> Route:
        async def route(request: Request) -> Response:
            self._key.require(
                request,
                "External servers are the person's to change: this address needs the approver's key.",
                "Use the panel, or `tabhub mcp` in a terminal.",
            )
            return json_response(await work(request.json_object(self._limits)))

        return route

    async def login_callback(self, request: Request) -> Response:
        """`GET /oauth/callback`: a login page sends the person's browser back; its one-time `state` opens this."""
        answers = request.query_values() if len(request.query) <= _QUERY else {}
        accepted = request.method == "GET" and self._upstreams.logins.resolve(answers)
        text = "You are logged in. This tab can be closed." if accepted else "No login is pending here. Start it again."
        page = f"<!doctype html><meta charset=utf-8><title>Tabhub</title><p>{text}</p>".encode()
        headers = (
            (b"content-type", b"text/html; charset=utf-8"),
            (b"content-security-policy", b"default-src 'none'"),
            (b"cache-control", b"no-store"),
            (b"referrer-policy", b"no-referrer"),
        )
        return Response(200 if accepted else 400, page, headers)

    def _later(self, work: Callable[[dict[str, Any]], Coroutine[Any, Any, dict[str, Any]]]) -> Handler:
        def handle(_link: ExtensionLink, params: dict[str, Any]) -> asyncio.Future[Any]:
            task = asyncio.ensure_future(_logged(work(params)))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            return task

        return handle

    async def _add(self, params: dict[str, Any]) -> dict[str, Any]:
        given = params.get("json")
        if not isinstance(given, str | dict):
            raise InvalidParams("`json` must be the configuration: a text or an object.")
        return {"servers": await self._upstreams.add(given)}

    async def _set(self, params: dict[str, Any]) -> dict[str, Any]:
        enabled, off = params.get("enabled"), params.get("disabledTools")
        if enabled is not None and not isinstance(enabled, bool):
            raise InvalidParams("`enabled` must be true or false.")
        if off is not None and (
            not isinstance(off, list) or len(off) > _MOST or not all(isinstance(each, str) for each in off)
        ):
            raise InvalidParams("`disabledTools` must be a list of the server's own tool names.")
        return {"server": await self._upstreams.set(_name(params), enabled=enabled, disabled=off)}

    async def _refresh(self, params: dict[str, Any]) -> dict[str, Any]:
        return {"server": await self._upstreams.refresh(_name(params))}

    async def _remove(self, params: dict[str, Any]) -> dict[str, Any]:
        await self._upstreams.remove(_name(params))
        return {"ok": True}


def _name(params: dict[str, Any]) -> str:
    name = params.get("name")
    if not isinstance(name, str) or not 0 < len(name) <= _LONGEST:
        raise InvalidParams("`name` must be the name of a server.")
    return name


async def _logged(work: Coroutine[Any, Any, Any]) -> Any:
    try:
        return await work
    except TabhubError:
        raise
    except Exception:
        log.exception("a request of the panel failed inside")
        raise
