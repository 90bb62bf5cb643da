"""The routes for the person and their tools: health, audit, metrics, ws-info, reload, plugin settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tabhub.calls.engine import Engine
from tabhub.calls.sources.plugins import Plugins
from tabhub.errors import BadInput, NotConnected, RateLimited
from tabhub.http.messages import Request, Response, json_response
from tabhub.links.browsers import Browsers
from tabhub.server.health import Health
from tabhub.server.reload import Reload
from tabhub.server.settings import ExtensionKey
from tabhub.trust.sliding_window import SlidingWindow
from tabhub.trust.tokens import challenge_proof
from tabhub.wire.messages import convert
from tabhub.wire.panel import PluginSettings

_CHALLENGE = b"challenge="


@dataclass(eq=False)
class Admin:
    """Routes around the tools."""

    port: int
    key: ExtensionKey
    engine: Engine
    health: Health
    reload: Reload
    browsers: Browsers
    plugins: Plugins
    refused: Mapping[int, int]
    """Counts refused requests by status."""

    def __post_init__(self) -> None:
        self._rate = SlidingWindow(self.engine.limits.admin_rate)

    def _limit_rate(self, route: str) -> None:
        if self._rate.hit(route, self.engine.clock()) is not None:
            # Seed 002 promises a Retry-After of a whole window; waiting less would often do.
            raise RateLimited(f"Too many requests to {route}.", retry_after=60)

    async def get_health(self, request: Request) -> Response:
        """`GET /health`; with a `challenge`, also what proves that this hub knows the extension's key."""
        facts = self.health.full() if request.person else self.health.minimal()
        if request.query.startswith(_CHALLENGE):
            challenge = request.query[len(_CHALLENGE) :].decode("latin-1")
            proof = challenge_proof(self.key.current.encode(), self.port, challenge)
            if proof is None:
                raise BadInput("`challenge` must be 32 to 128 lower-case hexadecimal digits.")
            facts = {**facts, "proof": proof}
        return json_response(facts)

    async def ws_info(self, request: Request) -> Response:
        """`GET /ws-info`: where the extension connects."""
        return json_response({"wsUrl": f"ws://{request.headers[b'host'].decode('latin-1')}/ws"})

    async def audit(self, request: Request) -> Response:
        """`GET /audit`: the last calls, newest first."""
        query = request.query_values({"limit", "plugin", "tool", "success"})
        ring = self.engine.limits.audit_ring
        text = query.get("limit", "50")
        if not text.isdecimal() or not 1 <= int(text[:9]) <= ring:
            raise BadInput(f"`limit` must be a whole number from 1 to {ring}.")
        success = query.get("success")
        if success not in (None, "true", "false"):
            raise BadInput("`success` must be true or false.")
        entries = self.engine.audit.recent(
            int(text),
            plugin=query.get("plugin"),
            tool=query.get("tool"),
            success=None if success is None else success == "true",
        )
        return json_response(entries)

    async def metrics(self, request: Request) -> Response:
        from tabhub.server.metrics import render

        kind = (b"content-type", b"text/plain; version=0.0.4; charset=utf-8")
        return Response(200, render(self.engine, self.browsers, self.refused), (kind,))

    async def post_reload(self, request: Request) -> Response:
        self._limit_rate("/reload")
        return json_response(self.reload())

    async def reload_extension(self, request: Request) -> Response:
        """`POST /extension/reload`: have every connected extension reload itself."""
        self._limit_rate("/extension/reload")
        links = self.browsers.links()
        if not links:
            raise NotConnected("No extension is connected.", hint="`tabhub doctor` says what is missing.")
        for link in links:
            link.notify("extension.reload", {})
        self.engine.browser_wait.expect(self.engine.limits.extension_back)
        return json_response({"ok": True, "extensions": len(links)})

    async def plugin_settings(self, request: Request) -> Response:
        """`POST /plugin-settings`: `{plugin, settings}`, checked against the plugin's schema."""
        self._limit_rate("/plugin-settings")
        body = request.json_object(self.engine.limits, {"plugin", "settings"})
        wanted = convert("plugin-settings", body, PluginSettings)
        return json_response({"ok": True, "settings": self.plugins.configure(wanted.plugin, wanted.settings)})
