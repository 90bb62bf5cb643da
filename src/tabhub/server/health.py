"""`/health`: the truth about the hub, leg by leg. Without a token only whether it is up."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from tabhub import __version__
from tabhub.calls.approvals.inbox import ApprovalInbox
from tabhub.calls.engine import Engine
from tabhub.calls.sources.plugins import Plugins
from tabhub.calls.sources.upstream import Upstreams
from tabhub.core.leases import Leases
from tabhub.core.listing.catalogue import Catalogue
from tabhub.links.browsers import Browsers
from tabhub.server.reload import Reload
from tabhub.server.settings import Settings
from tabhub.store.home import Home
from tabhub.store.pins import PinStore
from tabhub.store.sessions import SessionStore
from tabhub.store.tokens import TokenStore

STATE_SCHEMA = 1


class Health:
    """Reports on the parts of one hub."""

    def __init__(
        self,
        *,
        home: Home,
        port: int,
        settings: Settings,
        engine: Engine,
        browsers: Browsers,
        leases: Leases,
        catalogue: Catalogue,
        inbox: ApprovalInbox,
        plugins: Plugins,
        upstream: Upstreams,
        sessions: SessionStore,
        pins: PinStore,
        tokens: TokenStore,
        reload: Reload,
        managed_browser: Callable[[], dict[str, Any] | None],
        relays: Callable[[], list[dict[str, Any]]],
    ) -> None:
        self._home = home
        self._port = port
        self._settings = settings
        self._engine = engine
        self._browsers = browsers
        self._leases = leases
        self._catalogue = catalogue
        self._inbox = inbox
        self._plugins = plugins
        self._upstream = upstream
        self._sessions = sessions
        self._pins = pins
        self._tokens = tokens
        self._reload = reload
        self._managed_browser = managed_browser
        self._relays = relays
        self._started = engine.clock()

    @property
    def uptime(self) -> int:
        """Seconds since the hub was built."""
        return round(self._engine.clock() - self._started)

    def problems(self) -> list[str]:
        """What does not work as it should, in plain text."""
        audit, results = self._engine.audit, self._engine.results
        found = [
            audit.degraded and f"The audit log cannot be written: {audit.degraded}",
            audit.unreadable,
            results.degraded and f"Results cannot be kept on disk: {results.degraded}",
            self._sessions.error and f"Sessions cannot be kept over a restart: {self._sessions.error}",
            self._plugins.problem,
            self._pins.error and f"Approved definitions cannot be kept over a restart: {self._pins.error}",
            self._tokens.error and f"The tokens of agents cannot be read, and none is admitted: {self._tokens.error}",
            self._upstream.problem(),
            self._settings.error
            and f"The configuration cannot be read, the last good one is in force: {self._settings.error}",
        ]
        return [problem for problem in found if problem]

    def minimal(self) -> dict[str, Any]:
        """For callers without the secret."""
        return {"status": "degraded" if self.problems() else "ok"}

    def full(self) -> dict[str, Any]:
        """For callers with the secret."""
        engine, config, reloads = self._engine, self._settings.current, self._reload.reloads
        tools = engine.registry.tools()
        own = [t for t in tools if t.source.kind in ("browser", "hub")]
        browsers = self._browsers.status()
        connected = [b for b in browsers if b.get("connected")]
        problems = self.problems()
        watching = self._plugins.watcher.facts()
        return {
            "status": "degraded" if problems else "ok",
            "problems": problems,
            "version": __version__,
            "sdkVersion": __version__,
            "mode": "dev" if watching["watchedPlugins"] or watching["pendingPlugins"] else "production",
            "extensionConnected": bool(connected),
            "extensionConnections": len(connected),
            "mcpClients": sum(
                1 for s in engine.sessions.all() if s.kind in ("mcp", "bridge") and not s.is_disconnected
            ),
            "sessions": len(engine.sessions),
            "callsInFlight": len(engine.calls),
            "leases": len(self._leases),
            "paused": engine.pause.facts(),
            "plugins": len(self._plugins),
            "pluginDetails": self._plugins.details(),
            "failedPlugins": self._plugins.failures(),
            "upstream": self._upstream.brief(),
            "toolCount": len(tools),
            "browserToolCount": len(own),
            "pluginToolCount": sum(1 for t in tools if t.source.kind == "plugin"),
            "browserToolNames": [t.name for t in own],
            "disabledBrowserTools": [t.name for t in own if self._catalogue.disabled(t)],
            "skipPermissions": config.skip_permissions,
            "tokensRequired": config.require_tokens,
            "approvalsPending": len(self._inbox),
            "time": round(engine.wall() * 1000),
            "uptime": self.uptime,
            "reloadCount": reloads.count,
            "lastReloadTimestamp": reloads.at_ms,
            "lastReloadDurationMs": reloads.took_ms,
            "stateSchemaVersion": STATE_SCHEMA,
            "discoveryErrors": [*config.problems, *self._plugins.problems],
            "fileWatcher": watching,
            "auditSummary": engine.audit.summary(engine.wall()),
            "legs": {
                "hub": {"ok": True, "port": self._port, "pid": os.getpid(), "home": str(self._home.root)},
                "extension": {"ok": bool(connected), "connections": len(connected)},
                "browsers": browsers,
                "debugger": {"attachedTabs": [t for b in connected for t in b["debugger"]["attachedTabs"]]},
                "managedBrowser": self._managed_browser(),
                "relays": self._relays(),
            },
        }
