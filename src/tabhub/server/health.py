"""`/health`: the state of the hub and of each connection it depends on; without a token only whether it is up."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tabhub import __version__
from tabhub.calls.approvals.inbox import ApprovalInbox
from tabhub.calls.engine import Engine
from tabhub.calls.sources.page_tools import PageTools
from tabhub.calls.sources.plugins import Plugins
from tabhub.calls.sources.upstream import Upstreams
from tabhub.core.leases import Leases
from tabhub.core.listing.catalogue import Catalogue
from tabhub.links.browsers import Browsers
from tabhub.server.managed_browser import Managed
from tabhub.server.reload import Reload
from tabhub.server.settings import Settings
from tabhub.store.home import Home
from tabhub.store.old_secret import OldSecret
from tabhub.store.pins import PinStore
from tabhub.store.sessions import SessionStore
from tabhub.store.tokens import TokenStore
from tabhub.trust.tokens import UNNAMED

if TYPE_CHECKING:
    from tabhub.links.relays import Relays

STATE_SCHEMA = 1


@dataclass(slots=True, kw_only=True)
class Health:
    """Reports on the parts of one hub."""

    home: Home
    port: int
    started: float
    settings: Settings
    engine: Engine
    browsers: Browsers
    leases: Leases
    catalogue: Catalogue
    inbox: ApprovalInbox
    pages: PageTools
    plugins: Plugins
    upstream: Upstreams
    sessions: SessionStore
    pins: PinStore
    tokens: TokenStore
    old_secret: OldSecret
    reload: Reload
    managed: Managed | None
    relays: Relays | None

    @property
    def uptime(self) -> int:
        return round(self.engine.clock() - self.started)

    def problems(self) -> list[str]:
        audit, results = self.engine.audit, self.engine.results
        found = [
            audit.degraded and f"The audit log cannot be written: {audit.degraded}",
            audit.unreadable,
            results.degraded and f"Results cannot be kept on disk: {results.degraded}",
            self.sessions.error and f"Sessions cannot be kept across a restart: {self.sessions.error}",
            self.plugins.problem,
            self.pins.error and f"Approved definitions cannot be kept across a restart: {self.pins.error}",
            self.tokens.error and f"The tokens of agents cannot be read, and none is admitted: {self.tokens.error}",
            self.upstream.store.error and f"External servers cannot be saved: {self.upstream.store.error}",
            self.settings.error
            and f"The configuration cannot be read, the last good one is in force: {self.settings.error}",
        ]
        return [problem for problem in found if problem]

    def notices(self) -> list[str]:
        """What the person should know or do, although everything works."""
        figures = self.engine.audit.figures.notice
        return [*([figures] if figures is not None else []), *self._token_notices()]

    def _token_notices(self) -> list[str]:
        if self.settings.current.require_tokens:
            return []
        unnamed = sorted({s.name for s in self.engine.sessions.all() if s.token == UNNAMED})
        seen = f" (now: {', '.join(unnamed)})" if unnamed else ""
        if self.old_secret.exists:
            return [
                f"Agents set up by version 0.1.0 still share one secret{seen}. It opens tool calls only. "
                "Give each agent its own token: tabhub setup --migrate"
            ]
        return [f"Agents need no token{seen}. Require one again: tabhub config reset requireTokens"]

    def minimal(self) -> dict[str, Any]:
        """For everyone but the person."""
        return {"status": "degraded" if self.problems() else "ok"}

    def full(self) -> dict[str, Any]:
        """For the person."""
        engine, config = self.engine, self.settings.current
        tools = engine.registry.tools()
        own = [t for t in tools if t.source.kind in ("browser", "hub")]
        browsers = self.browsers.status()
        connected = [b for b in browsers if b.get("connected")]
        problems = self.problems()
        watching = self.plugins.watcher.status()
        return {
            "status": "degraded" if problems else "ok",
            "problems": problems,
            "notices": self.notices(),
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
            "leases": len(self.leases),
            "paused": engine.pause.status(),
            "plugins": len(self.plugins),
            "pluginDetails": self.plugins.details(),
            "failedPlugins": self.plugins.failures(),
            "upstream": self.upstream.brief(),
            "pageNotices": self.pages.notices(),
            "toolCount": len(tools),
            "browserToolCount": len(own),
            "pluginToolCount": sum(1 for t in tools if t.source.kind == "plugin"),
            "browserToolNames": [t.name for t in own],
            "disabledBrowserTools": [t.name for t in own if self.catalogue.disabled(t)],
            "skipPermissions": config.skip_permissions,
            "tokensRequired": config.require_tokens,
            "approvalsPending": len(self.inbox),
            "time": round(engine.wall() * 1000),
            "uptime": self.uptime,
            "reloadCount": self.reload.count,
            "lastReloadTimestamp": self.reload.at_ms,
            "lastReloadDurationMs": self.reload.took_ms,
            "stateSchemaVersion": STATE_SCHEMA,
            "discoveryErrors": [*config.problems, *self.plugins.problems],
            "fileWatcher": watching,
            "auditSummary": engine.audit.summary(engine.wall()),
            "legs": {
                "hub": {"ok": True, "port": self.port, "pid": os.getpid(), "home": str(self.home.root)},
                "extension": {"ok": bool(connected), "connections": len(connected)},
                "browsers": browsers,
                "debugger": {"attachedTabs": [t for b in connected for t in b["debugger"]["attachedTabs"]]},
                "managedBrowser": None if self.managed is None else self.managed.status(),
                "relays": [] if self.relays is None else self.relays.status(),
            },
        }
