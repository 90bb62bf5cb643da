"""`/health`: the truth about the hub, leg by leg. Without a token only whether it lives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tabhub import __version__

if TYPE_CHECKING:
    from tabhub.server.hub import Hub

STATE_SCHEMA = 1


def problems(hub: Hub) -> list[str]:
    """What does not work as it should, in words."""
    found = []
    if hub.engine.audit.degraded:
        found.append(f"The audit log cannot be written: {hub.engine.audit.degraded}")
    if hub.engine.audit.unreadable:
        found.append(hub.engine.audit.unreadable)
    if hub.engine.results.degraded:
        found.append(f"Results cannot be kept on disk: {hub.engine.results.degraded}")
    if hub.keeping.store.error:
        found.append(f"Sessions cannot be kept over a restart: {hub.keeping.store.error}")
    if hub.plugins.problem:
        found.append(hub.plugins.problem)
    if hub.trust.pins.error:
        found.append(f"Approved definitions cannot be kept over a restart: {hub.trust.pins.error}")
    if hub.trust.tokens.error:
        found.append(f"The tokens of agents cannot be read, and none is let in: {hub.trust.tokens.error}")
    if broken := hub.upstream.problem():
        found.append(broken)
    if hub.config_error:
        found.append(f"The configuration cannot be read, the last good one is in force: {hub.config_error}")
    return found


def minimal(hub: Hub) -> dict[str, Any]:
    """For callers without the token."""
    return {"status": "degraded" if problems(hub) else "ok"}


def full(hub: Hub) -> dict[str, Any]:
    """For callers with the token."""
    engine = hub.engine
    tools = engine.registry.tools()
    own = [t for t in tools if t.source.kind in ("browser", "hub")]
    browsers = hub.browsers.status()
    connected = [b for b in browsers if b.get("connected")]
    found = problems(hub)
    watching = hub.plugins.watcher.facts()
    return {
        "status": "degraded" if found else "ok",
        "problems": found,
        "version": __version__,
        "sdkVersion": __version__,
        "mode": "dev" if watching["watchedPlugins"] or watching["pendingPlugins"] else "production",
        "extensionConnected": bool(connected),
        "extensionConnections": len(connected),
        "mcpClients": sum(1 for s in engine.sessions.all() if s.kind in ("mcp", "daemon") and not s.gone),
        "sessions": len(engine.sessions),
        "callsInFlight": len(engine.calls),
        "leases": len(hub.leases),
        "paused": engine.pause.facts(),
        "plugins": len(hub.plugins),
        "pluginDetails": hub.plugins.details(),
        "failedPlugins": hub.plugins.failures(),
        "upstream": hub.upstream.brief(),
        "toolCount": len(tools),
        "browserToolCount": len(own),
        "pluginToolCount": sum(1 for t in tools if t.source.kind == "plugin"),
        "browserToolNames": [t.name for t in own],
        "disabledBrowserTools": [t.name for t in own if hub.catalogue.disabled(t)],
        "skipPermissions": hub.config.skip_permissions,
        "tokensRequired": hub.config.require_tokens,
        "approvalsPending": len(hub.trust.approvals),
        "time": round(engine.wall() * 1000),
        "uptime": round(engine.clock() - hub.started),
        "reloadCount": hub.reloads.count,
        "lastReloadTimestamp": hub.reloads.at_ms,
        "lastReloadDurationMs": hub.reloads.took_ms,
        "stateSchemaVersion": STATE_SCHEMA,
        "discoveryErrors": [*hub.config.problems, *hub.plugins.problems],
        "fileWatcher": watching,
        "auditSummary": engine.audit.summary(engine.wall()),
        "legs": {
            "hub": {"ok": True, "port": hub.port, "pid": hub.pid, "home": str(hub.home.root)},
            "extension": {"ok": bool(connected), "connections": len(connected)},
            "browsers": browsers,
            "debugger": {"attachedTabs": [t for b in connected for t in b["debugger"]["attachedTabs"]]},
            "managedBrowser": hub.managed_facts(),
            "relays": hub.relays.status() if hub.relays is not None else [],
        },
    }
