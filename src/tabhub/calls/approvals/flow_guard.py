"""The data-flow guard: what an agent has read on one site must not reach another unasked.

Owns which sites a session has read, which places a call acts on, and whether content would go from one to the other.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tabhub.calls.approvals.memory import ApprovalMemory, flow_key, stateless_key
from tabhub.calls.call_sites import uses_tab
from tabhub.core.calls import Call
from tabhub.core.origins import BLANK, name_of, origin_of
from tabhub.core.sessions import Session
from tabhub.core.tabs import Tab
from tabhub.core.tools import Tool
from tabhub.links.browsers import Browsers
from tabhub.store.audit import AuditLog
from tabhub.trust.approvals import DataFlow
from tabhub.trust.dataflow import is_unknown

log = logging.getLogger("tabhub.permissions")

CLOSE = "browser_close_tab"
_CARRIES_NOTHING = frozenset({CLOSE, "browser_focus_tab"})
"""Tools that put no content into their tab."""
_MADE = ("data:", "blob:")
"""How URLs begin whose document any page, or the agent, can have made."""

Act = tuple[Tool, Mapping[str, Any]]
"""A tool and the arguments it is called with."""
CallTab = Callable[[Session, Tool, Mapping[str, Any]], Tab | None]
"""Finds the tab that a call names, or its session's own."""


class FlowGuard:
    """The data-flow guard of one hub."""

    def __init__(self, setting: str, memory: ApprovalMemory, browsers: Browsers, audit: AuditLog, tab: CallTab) -> None:
        self.setting = setting
        """ask, warn or off."""
        self._tab = tab
        self._memory = memory
        self._browsers = browsers
        self._audit = audit

    def apply_settings(self, setting: str) -> None:
        self.setting = setting

    def guards(self, session: Session) -> bool:
        """Whether the session has read anything."""
        return self.setting != "off" and self._memory.flows.knows(flow_key(session))

    def call_answered(self, session: Session, call: Call) -> None:
        """Note the sites a call has read: their content may be carried elsewhere."""
        if self.setting == "off":
            return
        tab = self._browsers.book.get(call.tab) if call.tab is not None else None
        if tab is not None and self._browsers.is_managed(tab.browser_id):
            return
        plugin = call.tool.source.key if call.tool.source.kind == "plugin" else None
        read = [site for site in call.sites if site.startswith(("http:", "https:")) or is_unknown(site)]
        for key in {flow_key(session), stateless_key(session)} if session.kind == "handle" else (session.id,):
            for site in read:
                self._memory.flows.read(key, site, plugin)

    def flow(self, acts: Iterable[Act], session: Session, frame: str = "") -> DataFlow:
        """What calls would carry to which places, or to a frame; if nothing, the first place is where they act."""
        sites: dict[str, None] = {}
        reached: list[tuple[str, ...]] = []
        all_places = [names for tool, arguments in acts if (names := self._places(tool, arguments, session))]
        if frame:
            all_places = [(frame,)]
        for names in dict.fromkeys(all_places):
            if found := self._memory.flows.crossing(flow_key(session), names):
                sites.update(dict.fromkeys(found))
                reached.append(names)
        shown = reached or all_places[:1]
        targets = tuple(name for names in shown for name in names)
        return DataFlow(tuple(sites), targets, tuple(names[0] for names in shown))

    def _places(self, tool: Tool, arguments: Mapping[str, Any], session: Session) -> tuple[str, ...]:
        """The names of the place a call acts on."""
        kind, url = tool.source.kind, arguments.get("url")
        if kind == "page":
            return (tool.source.key,)
        if kind == "browser" and isinstance(url, str) and (site := _target(url)):
            return (site,)
        tab = self._tab(session, tool, arguments) if kind == "browser" or "tabId" in arguments else None
        site = tab.site if tab is not None else BLANK
        if site == BLANK:
            place = (BLANK,) if kind == "browser" and uses_tab(tool) and tool.name not in _CARRIES_NOTHING else ()
        else:
            place = (site,) if site.startswith("http") or is_unknown(site) else ()
        return place if kind == "browser" else (tool.source.key, *place)

    def warn(self, session: Session, tool: Tool, flow: DataFlow) -> None:
        place = " and ".join(flow.places)
        log.warning("%s read %s and acts on %s with %s", session.label, ", ".join(flow.sites), place, tool.name)
        facts = {"of": tool.name, "read": list(flow.sites), "acts": place, "session": session.id}
        self._audit.event(
            "data flow", tool.source, tab_id=None, client=session.client, tokenName=session.token, **facts
        )
        self._memory.flows.allow(flow_key(session), flow.sites, flow.targets)


def known_acts(steps: Iterable[Act]) -> list[Act]:
    """The acts of a batch whose place is known before it runs; after a navigation each step is checked as it comes."""
    known: list[Act] = []
    navigates = False
    for step, arguments in steps:
        leads = "url" in arguments
        if not step.read_only and (leads or not navigates):
            known.append((step, arguments))
            navigates = navigates or leads
    return known


def _target(url: str) -> str | None:
    """The site that a URL leads to; None for files and empty pages, which nothing can be carried to."""
    site = origin_of(url) or (name_of(url) if url.lstrip()[:5].lower() in _MADE else "")
    return site if site.startswith("http") or is_unknown(site) else None
