"""What the person's panel shows: the state of the hub, built on request.

Owns the shape of `config.getState`. Parts that know more of their own sources (plugins, external servers)
provide theirs; permissions are added here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tabhub import __version__
from tabhub.browser.families import FAMILIES
from tabhub.calls.approvals.permission_check import PermissionCheck
from tabhub.calls.engine import Engine
from tabhub.core.sessions import Session
from tabhub.core.tools import HUB, Source, Tool
from tabhub.links.browsers import Browsers
from tabhub.server.health import Health
from tabhub.server.session_control import SessionControl
from tabhub.server.settings import Settings

_ACTIVITY = 50
_COLOURS = ("#3b6fd4", "#b4531f", "#2f8055", "#8a4fc1", "#a8325e", "#1f7d8c", "#8a6d00", "#5a6472")

Provider = Callable[[], list[dict[str, Any]]]


def colour(session: Session) -> str:
    """A session's colour, the same wherever it is shown."""
    return _COLOURS[sum(session.id.encode()) % len(_COLOURS)]


class PanelState:
    """The state of one hub."""

    def __init__(
        self,
        settings: Settings,
        permission: PermissionCheck,
        engine: Engine,
        browsers: Browsers,
        sessions: SessionControl,
        health: Health,
        providers: Mapping[str, Provider],
    ) -> None:
        """`providers` give lists of the state by their field."""
        self._settings = settings
        self._permission = permission
        self._engine = engine
        self._browsers = browsers
        self._sessions = sessions
        self._health = health
        self._providers = providers

    def picture(self, approvals: list[dict[str, Any]]) -> dict[str, Any]:
        """Everything the panel shows."""
        config = self._settings.current
        tools = self._engine.registry.tools()
        sessions = self._sessions.facts()
        return {
            "version": __version__,
            "paused": sessions["paused"],
            "skipPermissions": config.skip_permissions,
            "permissionDefault": self._permission.permissions.default,
            "browsers": self._browsers.status(),
            "sessions": [self._session(facts) for facts in sessions["sessions"]],
            "approvals": approvals,
            "activity": self._engine.audit.recent(_ACTIVITY),
            "plugins": self._plugins(tools),
            "failedPlugins": self._given("failedPlugins"),
            "browserTools": self._browser_tools(tools),
            "pages": self._pages(tools),
            "upstream": self._upstream(tools),
            "settings": {key: value for key, value in config.values().items() if key not in _UNSHOWN},
            "tokensRequired": config.require_tokens,
            "assistant": self._assistant(),
            "problems": self._health.problems(),
        }

    def _assistant(self) -> dict[str, Any]:
        """Whether the agent in the panel has a model, which, and how far it may go for one message."""
        agent = self._settings.current.agent
        wanted = {"agent.baseUrl": agent.base_url, "agent.model": agent.model}
        return {
            "missing": [key for key, value in wanted.items() if value is None],
            "model": agent.model,
            "steps": agent.steps,
            "tokens": agent.tokens,
        }

    def _session(self, facts: dict[str, Any]) -> dict[str, Any]:
        session = self._engine.sessions.get(facts["id"])
        if session is None:
            return facts
        return {**facts, "color": colour(session)} | ({"token": session.token} if session.token else {})

    def _given(self, field: str) -> list[dict[str, Any]]:
        provider = self._providers.get(field)
        return provider() if provider is not None else []

    def tool(self, tool: Tool) -> dict[str, Any]:
        """A tool with its own permission, the effective one, and where that comes from."""
        names, permissions = self._permission.names(tool), self._permission.permissions
        stated = permissions.stated(tool.source.setting, names.all)
        verdict = self._permission.verdict(tool)
        level = verdict.level or "ask"
        came = {"tool": "this tool", "source": "its source", "default": "the default"}
        return {
            "name": tool.name,
            **({"title": tool.title} if tool.title else {}),
            "description": tool.description[:500],
            "permission": stated.level if stated is not None and stated.scope == "tool" else None,
            "effective": "auto" if level == "ask" and permissions.skipped else level,
            "from": came[stated.scope] if stated is not None else "what it does",
            "readOnly": tool.read_only,
            **({"changed": True, "diff": verdict.diff} if verdict.why == "pin" else {}),
        }

    def _of(self, tools: Iterable[Tool], kind: str, key: str) -> list[Tool]:
        return [tool for tool in tools if tool.source.kind == kind and tool.source.key == key]

    def _plugins(self, tools: Iterable[Tool]) -> list[dict[str, Any]]:
        shown = []
        for facts in self._given("plugins"):
            own = {tool["name"]: tool for tool in facts.get("tools", ())}
            merged = [own.get(tool.name, {}) | self.tool(tool) for tool in self._of(tools, "plugin", facts["name"])]
            shown.append({**facts, "permission": self._permission.permissions.source(facts["name"]), "tools": merged})
        return shown

    def _upstream(self, tools: Iterable[Tool]) -> list[dict[str, Any]]:
        shown = []
        for facts in self._given("upstream"):
            here = {tool.name: self.tool(tool) for tool in self._of(tools, "upstream", facts["name"])}
            listed = [tool | here.pop(tool.get("name", ""), {}) for tool in facts.get("tools", ())]
            permission = self._permission.permissions.source(Source("upstream", facts["name"]).setting)
            shown.append({**facts, "permission": permission, "tools": [*listed, *here.values()]})
        return shown

    def _browser_tools(self, tools: Iterable[Tool]) -> dict[str, Any]:
        there = {tool.name: tool for tool in tools if tool.source.kind == "browser"}
        families = [
            {"name": family, "tools": [self.tool(there.pop(name)) for name in names if name in there]}
            for family, names in FAMILIES.items()
        ]
        if rest := [*there.values(), *self._of(tools, "hub", HUB.key)]:
            families.append({"name": "other", "tools": [self.tool(tool) for tool in rest]})
        return {
            "permission": self._permission.permissions.source("browser"),
            "families": [family for family in families if family["tools"]],
        }

    def _pages(self, tools: Iterable[Tool]) -> list[dict[str, Any]]:
        by_origin: dict[str, dict[str, Tool]] = {}
        for tool in tools:
            if tool.source.kind == "page":
                # One line for a page's tool, whichever tabs have it: settings are the site's, not a tab's.
                by_origin.setdefault(tool.source.key, {}).setdefault(self._permission.names(tool).own, tool)
        return [
            {
                "origin": origin,
                "permission": self._permission.permissions.source(origin),
                "tools": [self.tool(tool) for tool in own.values()],
            }
            for origin, own in by_origin.items()
        ]


_UNSHOWN = ("settings", "permissions", "limits")
"""Shown where they belong, or too much for a panel."""
