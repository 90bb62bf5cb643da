"""The routes for the person and their tools: health, audit, metrics, ws-info, reload, plugin settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from tabhub.errors import BadInput, InvalidParams, NotConnected, RateLimited
from tabhub.http.responses import Receive, Scope, Send, read_body, respond, respond_json
from tabhub.server import health
from tabhub.trust.sliding_window import SlidingWindow
from tabhub.wire import strict_json as strict

if TYPE_CHECKING:
    from tabhub.server.hub import Hub

_CHALLENGE = b"challenge="


class Admin:
    """Routes around the tools."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._rate = SlidingWindow(hub.engine.limits.admin_rate)

    def _limited(self, route: str) -> None:
        retry_after = self._rate.hit(route, self._hub.engine.clock())
        if retry_after is not None:
            # Seed 002 promises a Retry-After of a whole window; waiting less would often do.
            raise RateLimited(f"Too many requests to {route}.", retry_after=60)

    async def health(self, authenticated: bool, scope: Scope, send: Send) -> None:
        """`GET /health`; with a `challenge`, also what proves that this hub knows the secret."""
        facts = health.full(self._hub) if authenticated else health.minimal(self._hub)
        if scope["query_string"].startswith(_CHALLENGE):
            proof = self._hub.guard.prove(scope["query_string"][len(_CHALLENGE) :].decode("latin-1"))
            if proof is None:
                raise BadInput("`challenge` must be 32 to 128 lower-case hexadecimal digits.")
            facts = {**facts, "proof": proof}
        await respond_json(send, facts)

    async def ws_info(self, scope: Scope, receive: Receive, send: Send) -> None:
        """`GET /ws-info`: where the extension connects."""
        host = next(v for k, v in scope["headers"] if k == b"host").decode("latin-1")
        await respond_json(send, {"wsUrl": f"ws://{host}/ws"})

    async def audit(self, scope: Scope, receive: Receive, send: Send) -> None:
        """`GET /audit`: the last calls, newest first."""
        query = _query(scope, {"limit", "plugin", "tool", "success"})
        ring = self._hub.engine.limits.audit_ring
        text = query.get("limit", "50")
        if not text.isdecimal() or not 1 <= int(text[:9]) <= ring:
            raise BadInput(f"`limit` must be a whole number from 1 to {ring}.")
        success = query.get("success")
        if success not in (None, "true", "false"):
            raise BadInput("`success` must be true or false.")
        entries = self._hub.engine.audit.recent(
            int(text),
            plugin=query.get("plugin"),
            tool=query.get("tool"),
            success=None if success is None else success == "true",
        )
        await respond_json(send, entries)

    async def metrics(self, scope: Scope, receive: Receive, send: Send) -> None:
        """`GET /metrics`."""
        from tabhub.server.metrics import render

        kind = (b"content-type", b"text/plain; version=0.0.4; charset=utf-8")
        await respond(send, 200, render(self._hub), [kind])

    async def reload(self, scope: Scope, receive: Receive, send: Send) -> None:
        """`POST /reload`: read the configuration again."""
        self._limited("/reload")
        await respond_json(send, self._hub.reload())

    async def reload_extension(self, scope: Scope, receive: Receive, send: Send) -> None:
        """`POST /extension/reload`: tell every connected extension to reload itself."""
        self._limited("/extension/reload")
        links = self._hub.browsers.links()
        if not links:
            raise NotConnected("No extension is connected.", hint="`tabhub doctor` says what is missing.")
        for link in links:
            link.notify("extension.reload", {})
        self._hub.engine.browser_wait.expect(self._hub.engine.limits.extension_back)
        await respond_json(send, {"ok": True, "extensions": len(links)})

    async def plugin_settings(self, scope: Scope, receive: Receive, send: Send) -> None:
        """`POST /plugin-settings`: `{plugin, settings}`, checked against the plugin's schema."""
        self._limited("/plugin-settings")
        limits = self._hub.engine.limits
        body = strict.decode(await read_body(receive, limits), limits)
        plugin = body.get("plugin") if isinstance(body, dict) else None
        if not isinstance(plugin, str) or not plugin:
            raise InvalidParams("`plugin` must be the name of a plugin.")
        if not isinstance(body.get("settings"), dict):
            raise InvalidParams("`settings` must be an object.")
        if unknown := body.keys() - {"plugin", "settings"}:
            raise InvalidParams(f"Unknown field: {sorted(unknown)[0][:100]}.")
        await respond_json(send, {"ok": True, "settings": self._hub.plugins.configure(plugin, body["settings"])})


def _query(scope: Scope, known: set[str]) -> dict[str, str]:
    """The query's parameters, each once; unknown ones are named."""
    read: dict[str, Any] = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    if unknown := read.keys() - known:
        raise BadInput(f"Unknown parameter: {sorted(unknown)[0][:100]}.", hint=f"Known: {', '.join(sorted(known))}.")
    return {name: values[-1] for name, values in read.items()}
