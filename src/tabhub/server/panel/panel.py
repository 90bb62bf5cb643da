"""The panel's side in the hub: what the person's own extension may ask and is told.

Owns the table of methods that links of this machine's extensions are given, who watches, and what is sent to them:
calls as they run, that something changed, and the marks of tabs that agents work in. What is shown is panelstate.py's;
agents have no way here.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any

from tabhub.calls.approvals.inbox import ApprovalInbox
from tabhub.calls.approvals.memory import ApprovalMemory
from tabhub.calls.approvals.permission_check import PermissionCheck
from tabhub.calls.protocols import Caller
from tabhub.config.permissions import PERMISSIONS
from tabhub.config.settings import locate
from tabhub.core.calls import Call
from tabhub.errors import InvalidParams, SessionNotFound, TabhubError, TabNotFound
from tabhub.links.extension import ExtensionLink, Handler
from tabhub.server.approval_routes import read_decision
from tabhub.server.panel.state import PanelState, Provider, colour
from tabhub.server.session_routes import SessionRoutes
from tabhub.store.config_file import reset, set_at, set_value

if TYPE_CHECKING:
    from tabhub.server.hub import Hub

log = logging.getLogger("tabhub.panel")

_LOOK = 0.1
"""Seconds between looks at what changed, while somebody watches."""
_TEXT = 300
_LABEL = 40
_AUDIT = 100


class Panel:
    """What the person's panel reaches."""

    def __init__(self, hub: Hub, approvals: ApprovalInbox, permission: PermissionCheck, memory: ApprovalMemory) -> None:
        self._hub = hub
        self._approvals = approvals
        self._permission = permission
        self._memory = memory
        self.state = PanelState(hub, permission)
        self._watching: set[ExtensionLink] = set()
        self._looking: asyncio.Task[None] | None = None
        self._seen: dict[str, Any] = {}
        self._marks: dict[ExtensionLink, list[dict[str, Any]]] = {}
        self._tasks: set[asyncio.Future[Any]] = set()
        self.methods: dict[str, Handler] = {
            "config.getState": lambda _link, _params: self.state.picture(approvals.pending()),
            "config.setToolPermission": self._set_tool,
            "config.setPluginPermission": self._set_source,
            "config.setSkipPermissions": self._set_skip,
            "config.set": self._set,
            "sessions.end": self._end_session,
            "sessions.release": self._release,
            "hub.pause": self._later(self._pause),
            "hub.resume": self._later(self._resume),
            "audit.list": self._audit,
            "confirmation.response": self._decide,
            "panel.watch": self._watch,
        }
        """All that links are given; further parts add theirs before the first browser comes."""
        hub.browsers.on_hello(self._greet)

    def add(self, methods: Mapping[str, Handler], **providers: Provider) -> None:
        """Methods and lists of the state that another part answers for."""
        self.methods.update(methods)
        self.state.providers.update(providers)

    # settings

    def _set_tool(self, _link: ExtensionLink, params: dict[str, Any]) -> dict[str, Any]:
        source, name, level = _text(params, "plugin"), _text(params, "tool"), _level(params)
        entry = self._hub.registry.get(name)
        tool = entry.tool if entry is not None and entry.tool.source.setting == source else None
        own = self._permission.names(tool).own if tool is not None else name
        set_at(self._hub.home, ("permissions", source, "tools", own), level)
        if own != name:  # an older way to name it would go before
            set_at(self._hub.home, ("permissions", source, "tools", name), None)
        self._hub.reloading.read_config()
        self._memory.forget_source(source)
        if tool is not None and level == "auto":
            self._permission.pin(tool)
        return {"ok": True}

    def _set_source(self, _link: ExtensionLink, params: dict[str, Any]) -> dict[str, Any]:
        source, level = _text(params, "plugin"), _level(params)
        set_at(self._hub.home, ("permissions", source, "permission"), level)
        self._hub.reloading.read_config()
        self._memory.forget_source(source)
        if level == "auto":
            for tool in self._hub.registry.tools():
                if tool.source.setting == source:
                    self._permission.pin(tool)
        return {"ok": True}

    def _set_skip(self, _link: ExtensionLink, params: dict[str, Any]) -> dict[str, Any]:
        skip = params.get("skip")
        if not isinstance(skip, bool):
            raise InvalidParams("`skip` must be true or false.")
        set_at(self._hub.home, ("skipPermissions",), skip)
        self._hub.reloading.read_config()
        if self._hub.config.skip_permissions and not skip:
            raise InvalidParams(
                "Permissions stay skipped: TABHUB_DANGEROUSLY_SKIP_PERMISSIONS is set for the hub.",
                hint="Start the hub without it.",
            )
        log.warning("permissions are %s by the person", "skipped" if skip else "in force again")
        return {"ok": True, "skipPermissions": skip}

    def _set(self, _link: ExtensionLink, params: dict[str, Any]) -> dict[str, Any]:
        key, value = _text(params, "key"), params.get("value")
        locate(key)
        if value is None:
            reset(self._hub.home, key)
        else:
            set_value(self._hub.home, key, value if isinstance(value, str) else json.dumps(value))
        self._hub.reloading.read_config()
        return {"ok": True}

    # sessions and the pause

    def _end_session(self, _link: ExtensionLink, params: dict[str, Any]) -> dict[str, Any]:
        ident = _text(params, "id")
        if not self._hub.end_session(ident, "the person ended the session"):
            raise SessionNotFound("This session has ended already.")
        return {"ok": True}

    def _release(self, _link: ExtensionLink, params: dict[str, Any]) -> dict[str, Any]:
        tab_id = params.get("tabId")
        lease = self._hub.leases.get(tab_id) if type(tab_id) is int else None
        if lease is None:
            raise TabNotFound(f"No agent holds tab {str(tab_id)[:20]}.", hint="It was let go of already.")
        return {"ok": self._hub.leases.free(lease.holder, lease.tab)}

    async def _pause(self, params: dict[str, Any]) -> dict[str, Any]:
        reason, mode = params.get("reason", ""), params.get("mode", "wait")
        if not isinstance(reason, str) or len(reason) > _TEXT or not (reason.isprintable() or not reason):
            raise InvalidParams(f"`reason` must be printable text of at most {_TEXT} characters.")
        if mode not in ("wait", "fail"):
            raise InvalidParams("`mode` must be wait or fail.")
        return {"paused": await SessionRoutes(self._hub).set_pause("the panel", reason, mode)}

    async def _resume(self, _params: dict[str, Any]) -> dict[str, Any]:
        return {"callsReleased": await SessionRoutes(self._hub).end_pause()}

    def _audit(self, _link: ExtensionLink, params: dict[str, Any]) -> dict[str, Any]:
        limit, ring = params.get("limit", _AUDIT), self._hub.engine.limits.audit_ring
        if type(limit) is not int or not 1 <= limit <= ring:
            raise InvalidParams(f"`limit` must be a whole number from 1 to {ring}.")
        return {"entries": [made for made in self._hub.engine.audit.recent(ring) if _wanted(made, params)][:limit]}

    # approvals

    def _decide(self, _link: ExtensionLink, params: dict[str, Any]) -> dict[str, Any]:
        decision, reason = read_decision(params)
        by = "notification" if params.get("by") == "notification" else "panel"
        taken = self._approvals.answer(_text(params, "id"), decision, by, reason)  # type: ignore[arg-type]
        return {"ok": taken}

    # who watches, and what they are told

    def _greet(self, link: ExtensionLink) -> None:
        """A browser has come: it learns what waits, and which tabs are agents'."""
        if link.local:
            for request in self._approvals.pending():
                link.notify("confirmation.request", {**request, "notify": False})
            self.mark_tabs()

    def _watch(self, link: ExtensionLink, params: dict[str, Any]) -> None:
        if params.get("open") is True:
            self._watching.add(link)
        else:
            self._watching.discard(link)
        self._hub.engine.watcher = self if self._watching else None
        if self._watching and (self._looking is None or self._looking.done()):
            self._seen = self._counts()
            self._looking = asyncio.ensure_future(self._look())

    async def _look(self) -> None:
        """Tell what has changed, a few times a second, as long as somebody watches."""
        while self._watching:
            await asyncio.sleep(_LOOK)
            self._watching = {link for link in self._watching if link.closed is None}
            now = self._counts()
            changed = [what for what, count in now.items() if self._seen.get(what) != count]
            self._seen = now
            if changed:
                self._tell("panel.changed", {"what": changed})
            if "sessions" in changed:
                self.mark_tabs()
        self._hub.engine.watcher = None

    def _counts(self) -> dict[str, Any]:
        hub = self._hub
        return {
            "sessions": (hub.sessions.changes, hub.engine.pause.paused),
            "permissions": self._permission.permissions,
            "plugins": (hub.registry.revision, hub.plugins.changes),
            "approvals": self._approvals.version,
            "browsers": tuple((link.browser_id, id(link)) for link in hub.browsers.links()),
            "upstream": hub.upstream.changes,
            "config": hub.config,
        }

    def _tell(self, method: str, params: dict[str, Any]) -> None:
        for link in self._watching:
            link.notify(method, params)

    def tell(self, method: str, params: dict[str, Any], also: ExtensionLink) -> None:
        """Tell those who watch, and one who asked."""
        for link in self._watching | {also}:
            if link.closed is None:
                link.notify(method, params)

    def began(self, call: Call, caller: Caller, arguments: Mapping[str, Any]) -> None:
        """A call is on its way."""
        session = caller.session
        named = arguments.get("tabId") if call.tool.source.kind in ("browser", "plugin") else None
        tab_id = named if type(named) is int else session.tab
        facts = {"callId": str(call.id), "tool": call.tool.name, "source": str(call.tool.source)}
        facts |= {"session": session.short, "client": session.client}
        self._tell("tool.invocationStart", facts | ({} if tab_id is None else {"tabId": tab_id}))

    def ended(self, call: Call, seconds: float, error: TabhubError | None, *, success: bool) -> None:
        """It has its answer."""
        facts = {"callId": str(call.id), "ok": success, "durationMs": round(seconds * 1000, 1)}
        said = {} if error is None else {"error": {"message": error.message[:_TEXT], "category": error.category}}
        self._tell("tool.invocationEnd", facts | said)

    def mark_tabs(self) -> None:
        """Mark the tabs that agents hold, each in its own browser, with the agent's name."""
        hub = self._hub
        marks: dict[str, list[dict[str, Any]]] = {}
        for lease in hub.leases:
            tab = hub.browsers.book.get(lease.tab)
            if tab is not None:
                label = (lease.holder.token or lease.holder.name)[:_LABEL]
                mark = {"tabId": tab.chrome_id, "label": label, "color": colour(lease.holder)}
                marks.setdefault(tab.browser_id, []).append(mark)
        links = [link for link in hub.browsers.links() if link.local]
        self._marks = {link: told for link, told in self._marks.items() if link in links}
        for link in links:
            now = marks.get(link.browser_id, [])
            if now != self._marks.get(link, []):
                link.notify("agents.marks", {"tabs": now})
                self._marks[link] = now

    def stop(self) -> None:
        """The hub is going."""
        self._watching.clear()
        if self._looking is not None:
            self._looking.cancel()

    def _later(self, work: Callable[[dict[str, Any]], Coroutine[Any, Any, Any]]) -> Handler:
        def handle(_link: ExtensionLink, params: dict[str, Any]) -> asyncio.Future[Any]:
            task = asyncio.ensure_future(work(params))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            return task

        return handle


def _wanted(made: Mapping[str, Any], params: Mapping[str, Any]) -> bool:
    """Whether a call is among those asked for; a tool or source may be named in part."""
    before, ok = params.get("before"), params.get("ok")
    if isinstance(before, str) and str(made.get("timestamp")) >= before:
        return False
    if isinstance(ok, bool) and made.get("success") is not ok:
        return False
    for name, among in (("tool", "tool"), ("source", "source"), ("session", "session"), ("client", "client")):
        wanted = params.get(name)
        if isinstance(wanted, str) and wanted and wanted.lower() not in str(made.get(among, "")).lower():
            return False
    return True


def _text(params: Mapping[str, Any], name: str) -> str:
    value = params.get(name)
    if not isinstance(value, str) or not 0 < len(value) <= _TEXT:
        raise InvalidParams(f"`{name}` must be a text of 1 to {_TEXT} characters.")
    return value


def _level(params: Mapping[str, Any]) -> str | None:
    """A permission, or None to go back to what holds without one."""
    level = params.get("permission")
    if level is not None and level not in PERMISSIONS:
        raise InvalidParams(f"`permission` must be {', '.join(PERMISSIONS)}, or null for none.")
    return level
