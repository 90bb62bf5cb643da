"""What the person's panel shows: the state of the hub, built on request.

Owns the shape of `config.getState`. Plugins and external servers describe themselves; permissions are added here.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from tabhub import __version__
from tabhub.browser.families import FAMILIES
from tabhub.calls.approvals.inbox import ApprovalInbox
from tabhub.calls.approvals.permission_check import PermissionCheck
from tabhub.calls.engine import Engine
from tabhub.calls.sources.plugins import Plugins
from tabhub.calls.sources.upstream import Upstreams
from tabhub.core.agent_colours import COLOURS, AgentColours
from tabhub.core.tools import BROWSER, HUB, Source, Tool
from tabhub.links.browsers import Browsers
from tabhub.server.health import Health
from tabhub.server.panel.plugins import PluginPanel
from tabhub.server.panel.sites import SitePanel
from tabhub.server.session_control import SessionControl
from tabhub.server.settings import Settings

_ACTIVITY = 50
_SCOPES = {"tool": "this tool", "source": "its source", "default": "the default"}
_UNSHOWN = ("settings", "permissions", "sites", "limits")
"""Settings that are shown elsewhere, or too long for a panel."""
_BySource = defaultdict[Source, list[Tool]]


@dataclass(frozen=True, slots=True)
class PanelState:
    """The state of one hub."""

    settings: Settings
    permission: PermissionCheck
    engine: Engine
    browsers: Browsers
    sessions: SessionControl
    health: Health
    approvals: ApprovalInbox
    plugins: Plugins
    plugin_panel: PluginPanel
    upstream: Upstreams
    sites: SitePanel
    colours: AgentColours

    def snapshot(self) -> dict[str, Any]:
        config = self.settings.current
        sessions = self.sessions.overview()
        tools: _BySource = defaultdict(list)
        for tool in self.engine.registry.tools():
            tools[tool.source].append(tool)
        return {
            "version": __version__,
            "paused": sessions["paused"],
            "skipPermissions": config.skip_permissions,
            "permissionDefault": self.permission.tools.permissions.default,
            "browsers": self.browsers.status(),
            "sessions": [self._session(facts) for facts in sessions["sessions"]],
            "approvals": self.approvals.pending(),
            "activity": self.engine.audit.recent(_ACTIVITY),
            "plugins": self._plugins(tools),
            "failedPlugins": self.plugins.failures(),
            "browserTools": self._browser_tools(tools),
            "pages": self._pages(tools),
            "upstream": self._upstream(tools),
            **self.sites.state(),
            "settings": {key: value for key, value in config.values().items() if key not in _UNSHOWN},
            "tokensRequired": config.require_tokens,
            "assistant": self._assistant(),
            "problems": [*self.health.problems(), *self.health.notices()],
            "notices": self.health.pages.notices(),
        }

    def versions(self) -> dict[str, Any]:
        """A value for each part of the state that differs when that part has changed."""
        return {
            "sessions": (self.engine.sessions.changes, self.engine.pause.paused),
            "permissions": self.permission.tools.permissions,
            "sites": self.sites.version(),
            "approvals": self.approvals.version,
            "browsers": tuple((link.browser_id, id(link)) for link in self.browsers.links()),
            "config": self.settings.current,
            "plugins": (self.engine.registry.revision, self.plugins.changes),
            "upstream": self.upstream.changes,
        }

    def _assistant(self) -> dict[str, Any]:
        """Whether the agent in the panel has a model, which, and how far it may go for one message."""
        agent = self.settings.current.agent
        wanted = {"agent.baseUrl": agent.base_url, "agent.model": agent.model}
        return {
            "missing": [key for key, value in wanted.items() if value is None],
            "model": agent.model,
            "steps": agent.steps,
            "tokens": agent.tokens,
        }

    def _session(self, facts: dict[str, Any]) -> dict[str, Any]:
        session = self.engine.sessions.get(facts["id"])
        if session is None:
            return facts
        return {**facts, "color": COLOURS[self.colours.of(session)], "agent": session.agent}

    def tool(self, tool: Tool) -> dict[str, Any]:
        """A tool with its own permission, the effective one, and where that comes from."""
        names, permissions = self.permission.tools.names(tool), self.permission.tools.permissions
        stated = permissions.stated(tool.source.setting, names.all)
        verdict = self.permission.tools.verdict(tool)
        level = verdict.level or "ask"
        return {
            "name": tool.name,
            **({"title": tool.title} if tool.title else {}),
            "description": tool.description[:500],
            "permission": stated.level if stated is not None and stated.scope == "tool" else None,
            "effective": "auto" if level == "ask" and permissions.skipped else level,
            "from": _SCOPES[stated.scope] if stated is not None else "what it does",
            "readOnly": tool.read_only,
            **({"changed": True, "diff": verdict.diff} if verdict.why == "pin" else {}),
        }

    def _plugins(self, tools: _BySource) -> list[dict[str, Any]]:
        shown = []
        for facts in self.plugin_panel.state():
            source, own = Source("plugin", facts["name"]), {tool["name"]: tool for tool in facts["tools"]}
            merged = [own.get(tool.name, {}) | self.tool(tool) for tool in tools[source]]
            shown.append({**facts, "permission": self._permission_of(source), "tools": merged})
        return shown

    def _upstream(self, tools: _BySource) -> list[dict[str, Any]]:
        shown = []
        for facts in self.upstream.all():
            source = Source("upstream", facts["name"])
            known = {tool.name: self.tool(tool) for tool in tools[source]}
            listed = [tool | known.pop(tool["name"], {}) for tool in facts["tools"]]
            shown.append({**facts, "permission": self._permission_of(source), "tools": [*listed, *known.values()]})
        return shown

    def _browser_tools(self, tools: _BySource) -> dict[str, Any]:
        others = {tool.name: tool for tool in tools[BROWSER]}
        families = [
            {"name": family, "tools": [self.tool(others.pop(name)) for name in names if name in others]}
            for family, names in FAMILIES.items()
        ]
        families.append({"name": "other", "tools": [self.tool(tool) for tool in (*others.values(), *tools[HUB])]})
        return {
            "permission": self._permission_of(BROWSER),
            "families": [family for family in families if family["tools"]],
        }

    def _pages(self, tools: _BySource) -> list[dict[str, Any]]:
        shown = []
        for source, own in tools.items():
            if source.kind == "page":
                # A tool of a page is listed once, whichever tabs have it: settings are per site, not per tab.
                once: dict[str, Tool] = {}
                for tool in own:
                    once.setdefault(self.permission.tools.names(tool).own, tool)
                listed = [self.tool(tool) for tool in once.values()]
                shown.append({"origin": source.key, "permission": self._permission_of(source), "tools": listed})
        return shown

    def _permission_of(self, source: Source) -> str | None:
        return self.permission.tools.permissions.source(source.setting)
