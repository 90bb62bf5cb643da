"""The hub's side of the panel: the methods of the person's own extension, and its notifications.

Owns the table of methods for links of this machine's extensions, and what is sent to them: calls as they run, which
parts changed. What tabs show of agents is tab_marks.py's, the state a panel shows is state.py's. Agents cannot reach
this.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tabhub.calls.approvals.inbox import ApprovalInbox
from tabhub.calls.approvals.memory import ApprovalMemory
from tabhub.calls.approvals.permission_check import PermissionCheck
from tabhub.calls.call_words import call_phrase
from tabhub.calls.engine import Engine
from tabhub.calls.protocols import Caller
from tabhub.config.settings import locate
from tabhub.core.calls import Call
from tabhub.errors import InvalidParams, SessionNotFound, TabhubError, TabNotFound
from tabhub.links.browsers import Browsers
from tabhub.links.extension import ExtensionLink, Handler
from tabhub.server.panel.open_panels import OpenPanels
from tabhub.server.panel.state import PanelState
from tabhub.server.panel.tab_marks import TabMarks
from tabhub.server.session_control import SessionControl
from tabhub.server.settings import Settings
from tabhub.wire.panel import (
    AuditFilter,
    ConfirmationResponse,
    GiveTab,
    HeldTab,
    NoParams,
    OneSession,
    PanelOpen,
    Pause,
    Setting,
    SkipPermissions,
    SourcePermission,
    ToolPermission,
)

log = logging.getLogger("tabhub.panel")

_POLL = 0.1
"""Seconds between checks for changes, while a panel is open."""
_TEXT = 300


@dataclass(slots=True, eq=False)
class Panel:
    """The methods and notifications of the panel."""

    state: PanelState
    settings: Settings
    engine: Engine
    browsers: Browsers
    sessions: SessionControl
    approvals: ApprovalInbox
    permission: PermissionCheck
    memory: ApprovalMemory
    panels: OpenPanels
    marks: TabMarks
    methods: dict[str, Handler]
    """All methods that links of this machine's extensions are given: those of other parts, to which the panel adds its
    own."""
    _polling: asyncio.Task[None] | None = None
    _versions: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.methods |= {
            "config.getState": lambda _link, _params: self.state.snapshot(),
            "config.setToolPermission": self._set_tool,
            "config.setPluginPermission": self._set_source,
            "config.setSkipPermissions": self._set_skip,
            "config.set": self._set,
            "sessions.end": self._end_session,
            "sessions.release": self._release,
            "sessions.give": self._give,
            "hub.pause": self._pause,
            "hub.resume": self._resume,
            "audit.list": self._audit,
            "confirmation.response": self._decide,
            "panel.watch": self._watch,
        }
        self.browsers.on_hello(self._greet)
        self.browsers.add_handlers(self.methods, local_only=True)

    def _set_tool(self, _link: ExtensionLink, wanted: ToolPermission) -> dict[str, Any]:
        source, name, level = wanted.plugin, wanted.tool, wanted.permission
        entry = self.engine.registry.by_name.get(name)
        tool = entry.tool if entry is not None and entry.tool.source.setting == source else None
        own = self.permission.tools.names(tool).own if tool is not None else name
        if own != name:  # an older name of it would take precedence
            self.settings.set_at(("permissions", source, "tools", name), None)
        self.settings.set_at(("permissions", source, "tools", own), level)
        self.memory.forget_source(source)
        if level in ("ask", "off") and tool is not None:
            self.memory.forget_grants([self.permission.tools.facts(tool).kind])
        if tool is not None and level == "auto":
            self.permission.tools.pin(tool)
        return {"ok": True}

    def _set_source(self, _link: ExtensionLink, wanted: SourcePermission) -> dict[str, Any]:
        source, level = wanted.plugin, wanted.permission
        self.settings.set_at(("permissions", source, "permission"), level)
        self.memory.forget_source(source)
        tools = [tool for tool in self.engine.registry.tools() if tool.source.setting == source]
        if level == "auto":
            for tool in tools:
                self.permission.tools.pin(tool)
        elif level is not None:
            self.memory.forget_grants(self.permission.tools.facts(tool).kind for tool in tools)
        return {"ok": True}

    def _set_skip(self, _link: ExtensionLink, wanted: SkipPermissions) -> dict[str, Any]:
        self.settings.set_at(("skipPermissions",), wanted.skip)
        if self.settings.current.skip_permissions and not wanted.skip:
            raise InvalidParams(
                "Permissions stay skipped: TABHUB_DANGEROUSLY_SKIP_PERMISSIONS is set for the hub.",
                hint="Start the hub without it.",
            )
        log.warning("permissions are %s by the person", "skipped" if wanted.skip else "in force again")
        return {"ok": True, "skipPermissions": wanted.skip}

    def _set(self, _link: ExtensionLink, setting: Setting) -> dict[str, Any]:
        key, value = setting.key, setting.value
        locate(key)
        self.settings.set_text(key, value if value is None or isinstance(value, str) else json.dumps(value))
        return {"ok": True}

    def _end_session(self, _link: ExtensionLink, session: OneSession) -> dict[str, Any]:
        if not self.sessions.end(session.id):
            raise SessionNotFound("This session has already ended.")
        return {"ok": True}

    def _release(self, _link: ExtensionLink, held: HeldTab) -> dict[str, Any]:
        return {"ok": self.sessions.release_tab(held.tab_id)}

    async def _pause(self, _link: ExtensionLink, pause: Pause) -> dict[str, Any]:
        paused = await self.sessions.pause("the panel", pause.reason, pause.mode)
        self.marks.update()
        return {"paused": paused}

    async def _resume(self, _link: ExtensionLink, _params: NoParams) -> dict[str, Any]:
        released = await self.sessions.resume()
        self.marks.update()
        return {"callsReleased": released}

    def _give(self, link: ExtensionLink, given: GiveTab) -> dict[str, Any]:
        """The person gives a tab of this browser to an agent."""
        tab = self.browsers.book.find(link.browser_id, given.tab_id)
        if tab is None:
            raise TabNotFound(f"There is no tab {given.tab_id} in this browser.")
        session = self.sessions.require(given.session)
        self.sessions.give(session, tab.tab_id)
        self.marks.update()
        return {"agent": session.agent, "title": tab.title}

    def _audit(self, _link: ExtensionLink, wanted: AuditFilter) -> dict[str, Any]:
        calls = self.engine.audit.recent(self.engine.limits.audit_ring)
        return {"entries": [call for call in calls if _matches(call, wanted)][: wanted.limit]}

    def _decide(self, _link: ExtensionLink, response: ConfirmationResponse) -> dict[str, Any]:
        decided = self.approvals.answer(response.id, response.decision, response.by, response.reason, response.wider)
        return {"ok": decided}

    def _greet(self, link: ExtensionLink) -> None:
        if link.local:
            for request in self.approvals.pending():
                link.notify("confirmation.request", {**request, "notify": False})
            self.marks.update()

    def _watch(self, link: ExtensionLink, panel: PanelOpen) -> None:
        if panel.open:
            self.panels.add(link)
        else:
            self.panels.discard(link)
        if not self.panels:
            self.engine.unwatch(self)
            return
        self.engine.watch(self)
        if self._polling is None or self._polling.done():
            self._versions = self.state.versions()
            self._polling = asyncio.ensure_future(self._poll())

    async def _poll(self) -> None:
        while self.panels:
            await asyncio.sleep(_POLL)
            self.panels -= {link for link in self.panels if link.closed is not None}
            now = self.state.versions()
            changed = [what for what, version in now.items() if self._versions.get(what) != version]
            self._versions = now
            if changed:
                self.panels.notify("panel.changed", {"what": changed})
            if "sessions" in changed:
                self.marks.update()
        self.engine.unwatch(self)

    def began(self, call: Call, caller: Caller, arguments: Mapping[str, Any]) -> None:
        session = caller.session
        named = arguments.get("tabId") if call.tool.source.kind in ("browser", "plugin") else None
        tab_id = named if type(named) is int else session.tab
        facts: dict[str, Any] = {"callId": str(call.id), "tool": call.tool.name, "source": str(call.tool.source)}
        facts |= {"session": session.short, "client": session.client, "token": session.token}
        facts["what"] = call_phrase(call.tool, arguments, None)
        self.panels.notify("tool.invocationStart", facts | ({} if tab_id is None else {"tabId": tab_id}))

    def ended(self, call: Call, seconds: float, error: TabhubError | None, *, success: bool) -> None:
        facts: dict[str, Any] = {"callId": str(call.id), "ok": success, "durationMs": round(seconds * 1000, 1)}
        if error is not None:
            facts["error"] = {"message": error.message[:_TEXT], "category": error.category}
        self.panels.notify("tool.invocationEnd", facts)

    def stop(self) -> None:
        self.panels.clear()
        if self._polling is not None:
            self._polling.cancel()


def _matches(call: Mapping[str, Any], wanted: AuditFilter) -> bool:
    if wanted.before is not None and str(call.get("timestamp")) >= wanted.before:
        return False
    if wanted.ok is not None and call.get("success") is not wanted.ok:
        return False
    names = {"tool": wanted.tool, "source": wanted.source, "session": wanted.session}
    agent = f"{call.get('client', '')} {call.get('tokenName', '')}"
    return wanted.client.lower() in agent.lower() and all(
        part.lower() in str(call.get(name, "")).lower() for name, part in names.items()
    )
