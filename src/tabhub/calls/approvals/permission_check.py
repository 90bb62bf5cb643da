"""The permission check of a hub: settings and site rules first, then an approval where they or a guard require one.

Gathers the facts of a call (the verdict on its tool, the rules of the sites it is about, whose browser it reaches,
which content it may carry from site to site) and lets trust.approvals decide. A call that needs no approval costs one
lookup here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from tabhub.browser.tools.acting import batch
from tabhub.calls.approvals.disturbance import disturbance
from tabhub.calls.approvals.flow_guard import CLOSE, Act, FlowGuard, known_acts
from tabhub.calls.approvals.inbox import ApprovalInbox
from tabhub.calls.approvals.memory import PINNED, ApprovalMemory
from tabhub.calls.approvals.permission import Asked, Permission
from tabhub.calls.approvals.tool_verdicts import BATCH, ToolVerdicts
from tabhub.calls.call_sites import CallSites
from tabhub.calls.hidden_tools import HiddenTools
from tabhub.calls.protocols import Caller
from tabhub.config.settings import Config
from tabhub.core.leases import Lease
from tabhub.core.origins import BLANK, origin_of
from tabhub.core.pages.tools import PageTool
from tabhub.core.sessions import Session
from tabhub.core.tabs import Tab
from tabhub.core.tools import Tool
from tabhub.errors import PermissionDenied
from tabhub.links.browsers import Browsers
from tabhub.store.audit import AuditLog
from tabhub.trust.actions import LEASE_TOOLS
from tabhub.trust.approvals import (
    ALLOWED,
    NO_FLOW,
    Allowed,
    Approval,
    Ask,
    CallFacts,
    Denied,
    Outcome,
    Verdict,
    decide,
    denied,
    tab_moved,
    tool_changed,
)
from tabhub.trust.dataflow import UNKNOWN
from tabhub.trust.explain import Question, explain
from tabhub.trust.grants import Scope
from tabhub.trust.guard import EXTENSION_ORIGIN
from tabhub.trust.permissions import Permissions
from tabhub.trust.site_rules import SiteRules, strictest
from tabhub.trust.verdicts import apply_site_rule
from tabhub.trust.visibility import EVERYTHING, View, Visibility

_PANEL = EXTENSION_ORIGIN.decode()
_SOME_FRAME = f"{UNKNOWN}(frame)"
"""The site of a frame of which nothing is known."""


class PermissionCheck(Permission):
    """The permissions of one hub."""

    def __init__(
        self,
        config: Config,
        *,
        inbox: ApprovalInbox,
        memory: ApprovalMemory,
        browsers: Browsers,
        audit: AuditLog,
        sites: CallSites,
        declared: Callable[[Tool], PageTool | None],
        require_free: Callable[[Session, int], None],
        held_by_others: Callable[[Session], list[Lease]],
    ) -> None:
        super().__init__(inbox)
        self._inbox = inbox
        self._memory = memory
        self._browsers = browsers
        self._call_sites = sites
        self._require_free = require_free
        self.hidden = HiddenTools(self.visibility, browsers.book, sites.plugin_patterns, sites.plugin_tabs)
        self._held_by_others = held_by_others
        self.tools = ToolVerdicts(Permissions.parse(config), memory, audit, declared)
        self._flow_guard = FlowGuard(config.dataflow, memory, browsers, audit, self.tab)
        self.call_answered = self._flow_guard.call_answered
        self.sites = SiteRules.parse(config)
        self._visibilities: dict[str | None, Visibility] = {}

    def apply_settings(self, config: Config) -> None:
        self.tools.apply_settings(Permissions.parse(config))
        self._flow_guard.apply_settings(config.dataflow)
        self.sites = SiteRules.parse(config)
        self._visibilities.clear()

    # before a call

    def tab(self, session: Session, tool: Tool, arguments: Mapping[str, Any]) -> Tab | None:
        if "tabId" in arguments:
            tab_id = arguments["tabId"]
        else:
            tab_id = session.tab if tool.source.kind in ("browser", "plugin") else None
        return self._browsers.book.get(tab_id) if type(tab_id) is int else None

    def check(
        self, caller: Caller, tool: Tool, arguments: Mapping[str, Any], tab: Tab | None, frame: str = ""
    ) -> Outcome:
        session = caller.session
        rules = self.tools.rules(tool, session.token)
        if rules.acts_in_tab and tab is not None and tab.url.startswith(_PANEL) and not _leaves_own(tool, session, tab):
            return Denied(_panel_only(tool))  # an agent could approve its own calls there
        guarded = not tool.read_only and self._flow_guard.guards(session)
        if rules.is_free and not guarded and self.sites.empty:
            return ALLOWED
        return self._decide(session, tool, arguments, tab, frame, guarded=guarded)

    def tells_frames_apart(self, caller: Caller, tool: Tool, arguments: Mapping[str, Any], tab: Tab | None) -> bool:
        return not self.sites.empty or self.check(caller, tool, arguments, tab, _SOME_FRAME) is not ALLOWED

    def _decide(
        self,
        session: Session,
        tool: Tool,
        arguments: Mapping[str, Any],
        tab: Tab | None,
        frame: str,
        *,
        guarded: bool,
    ) -> Outcome:
        rules = self.tools.rules(tool, session.token)
        steps = tuple(batch.tool_calls(arguments)) if rules.has_steps else ()
        disturbs = ""
        if rules.may_disturb:
            disturbs = disturbance(session, tool, arguments, self._browsers, self._held_by_others)
        acts = ((tool, arguments), *steps)
        set_levels = [self.tools.verdict(each, session.token) for each, _ in acts]
        if off := next((each for (each, _), its in zip(acts, set_levels, strict=True) if its.level == "off"), None):
            return Denied(self.tools.switched_off(off))
        verdicts: list[Verdict] = []
        for act, its in zip(acts, set_levels, strict=True):
            on_site = self._on_site(session, act, its, frame)
            if isinstance(on_site, PermissionDenied):
                return Denied(on_site)
            verdicts.append(on_site)
        loosened = verdicts[0].level == "auto" != set_levels[0].level
        undecided = verdicts[0].level is None or (loosened and any(its.level is None for its in verdicts))
        own_browser = self._reaches_own(tool, arguments, session) if undecided or guarded else True
        if loosened and own_browser:  # the rule speaks for its own site only
            verdicts[1:] = [its if its.level is not None else Verdict("ask") for its in verdicts[1:]]
        acts_known = known_acts(steps) if steps else acts
        flow = self._flow_guard.flow(acts_known, session, frame) if guarded and own_browser else NO_FLOW
        level = verdicts[0].level or ("ask" if own_browser else "auto")
        steps_to_ask = self._steps_to_ask(session, steps, verdicts[1:])
        if level == "auto" and not flow.sites and not steps_to_ask and not disturbs:
            return ALLOWED
        scope = self._scope(session, acts, frame)
        definition = self.tools.definition(tool) if tool.source.kind in PINNED else ""
        verdict, earlier = verdicts[0], self._earlier(session, tool, scope, definition)
        if isinstance(earlier, Verdict):
            verdict, earlier = earlier, None
        outcome = decide(
            CallFacts(
                tool=tool.name,
                verdict=verdict,
                level=level,
                flow=flow,
                steps_to_ask=steps_to_ask,
                disturbs=disturbs,
                earlier=earlier,
                skipped=self.tools.permissions.skipped,
                dataflow=self._flow_guard.setting,
                setting_name=self.tools.names(tool).own,
                definition=definition,
                scope=scope,
                frame=frame,
            )
        )
        if isinstance(outcome, Ask) or outcome.warn:
            self._require_usable_tab(tool, arguments, session)
        if isinstance(outcome, Allowed) and outcome.warn:
            self._flow_guard.warn(session, tool, flow)
        return replace(outcome, site=BLANK if tab is None else tab.site) if isinstance(outcome, Ask) else outcome

    async def ask(self, caller: Caller, tool: Tool, arguments: Mapping[str, Any], ask: Ask) -> Asked:
        """Wait for an approval; PermissionDenied without one, or if the call is not what the person was shown."""
        steps = tuple(batch.tool_calls(arguments)) if tool.name == BATCH else ()
        request, shown, answer, seen = await self._inbox.ask(caller, tool, arguments, ask, steps=steps)
        if not answer.allowed:
            raise denied(request, answer)
        kind = tool.source.kind
        if kind == "page":  # called by its site and document, wherever its tab is
            if self.tools.declares(tool) and self.tools.definition(tool) != shown.definition:
                raise tool_changed(request, answer)
        elif kind in ("browser", "plugin") and request.tab_id is not None:
            tab = self._browsers.book.get(request.tab_id)
            if tab is not None and tab.site != shown.site:
                raise tab_moved(request, answer, tab.site)
        self.recheck(caller.session, tool, arguments, ask.frame)
        return Asked(Approval(answer.by, answer.decision, answer.reason), seen.shown)

    def confirm_tab(self, caller: Caller, tool: Tool, message: str, tab_id: int) -> Awaitable[bool] | None:
        """Ask the person for a tab that another session holds; None in a managed browser, where nobody may be."""
        tab = self._browsers.book.get(tab_id)
        if tab is None or self._browsers.is_managed(tab.browser_id) or self.tools.permissions.skipped:
            return None

        async def confirm() -> bool:
            return (await self._inbox.confirm(caller, tool, Ask("tab", message, this_call_only=True), tab_id)).allowed

        return confirm()

    def recheck(
        self, session: Session, tool: Tool, arguments: Mapping[str, Any] | None = None, frame: str = ""
    ) -> None:
        """PermissionDenied if the tool, or a site it reaches, was switched off while a permitted call was held."""
        verdict = self.tools.verdict(tool, session.token)
        if verdict.level == "off":
            raise self.tools.switched_off(tool)
        if arguments is not None:
            for place in ("", frame) if frame else ("",):
                on_site = self._on_site(session, (tool, arguments), verdict, place)
                if isinstance(on_site, PermissionDenied):
                    raise on_site

    def visibility(self, agent: str | None) -> Visibility:
        if (known := self._visibilities.get(agent)) is None:
            known = self._visibilities[agent] = Visibility(self.sites, agent)
        return known

    def view(self, session: Session) -> View:
        """What a call of a session may show."""
        return EVERYTHING if self.sites.empty else self.visibility(session.token).view()

    def hidden_tools(self, agent: str | None) -> Callable[[Tool], bool] | None:
        return self.hidden.of(agent)

    def _require_usable_tab(self, tool: Tool, arguments: Mapping[str, Any], session: Session) -> None:
        """Fail a call on a tab that is closed or another session's: an approval would not help it."""
        tab_id = arguments.get("tabId")
        if tool.source.kind == "browser" and tool.name not in LEASE_TOOLS and type(tab_id) is int:
            self._browsers.tab(tab_id)
            if not tool.read_only:
                self._require_free(session, tab_id)

    def _steps_to_ask(self, session: Session, steps: Iterable[Act], verdicts: Iterable[Verdict]) -> list[str]:
        """The tools of a batch that need an approval of their own and have none."""
        asking = (act for act, verdict in zip(steps, verdicts, strict=True) if verdict.level == "ask")
        found = (
            step.name
            for step, arguments in asking
            if not self._earlier(session, step, self._scope(session, ((step, arguments),)), "")
        )
        return list(dict.fromkeys(found))

    def explain(self, tool: Tool, agent: str | None, url: str | None, frame: str | None = None) -> str:
        """Which rule decides on a call of a tool by an agent on a page, or in a frame of it, and why."""
        return explain(
            Question(self.tools.facts(tool), tool.source.setting, self.tools.names(tool).all, agent, url, frame),
            self.tools.verdict(tool, agent),
            self.tools.permissions,
            self.sites,
            self._memory.grants.all(),
        )

    # sites and earlier approvals

    def _on_site(self, session: Session, act: Act, verdict: Verdict, frame: str = "") -> Verdict | PermissionDenied:
        """What holds on the sites a call is about, or in a frame."""
        if self.sites.empty:
            return verdict
        tool, arguments = act
        urls = [frame] if frame else self._call_sites.urls(session, tool, arguments)
        rules = [self.sites.rule(url, session.token) for url in urls]
        if tool.source.kind == "plugin" and "tabId" not in arguments:  # it runs in a tab that is not blocked
            rules = [rule for rule in rules if rule is None or rule.level != "block"] or rules
        return apply_site_rule(self.tools.facts(tool), verdict, strictest(rules))

    def _scope(self, session: Session, acts: Iterable[Act], frame: str = "") -> tuple[Scope, ...]:
        """What an approval of these calls covers; empty if the site of one is not known."""
        scopes: dict[Scope, None] = {}
        for place, (tool, arguments) in enumerate(acts):
            if place and tool.read_only:
                continue  # a batch may read and wait
            site = None
            if self._call_sites.on_site(tool, arguments):
                site = origin_of(frame) if frame else self._call_sites.site(session, tool, arguments)
                if site is None:
                    return ()
            scopes[Scope(self.tools.kind(tool), site)] = None
        return tuple(scopes)

    def _earlier(
        self, session: Session, tool: Tool, scope: tuple[Scope, ...], definition: str
    ) -> Approval | Verdict | None:
        """An approval that covers the call; a verdict if the tool has changed since it was granted."""
        approvals: list[Approval] = []
        for each in scope:
            if approval := self._memory.session_approval(session, each, definition):
                approvals.append(approval)
            elif (grant := self._memory.grant(session, each)) is None:
                return None
            elif tool.source.kind in PINNED and (changed := self.tools.changed(tool, definition)) is not None:
                return changed
            else:
                approvals.append(Approval(grant.approved_by, "allow_always", f"grant {grant.id}"))
        return approvals[0] if approvals else None

    # whose browser

    def _reaches_own(self, tool: Tool, arguments: Mapping[str, Any], session: Session) -> bool:
        """Whether a call reaches the person's own browser; if in doubt, it does."""
        if tool.source.kind in ("hub", "upstream"):
            return True
        browsers = self._browsers
        browsers.require_introduced()
        managed = [link.browser_id for link in browsers.links() if browsers.is_managed(link.browser_id)]
        if len(managed) == len(browsers.links()):
            browsers.default_link()  # raises if there is no browser at all: then there is nothing to approve
            return False
        if not managed or tool.source.kind == "page":
            return True
        browser_id, tab_id = arguments.get("browserId"), arguments.get("tabId")
        if isinstance(browser_id, str):
            return browser_id not in managed
        if tab_id is None and tool.source.kind == "plugin":
            return True
        tab = browsers.book.get(tab_id if type(tab_id) is int else session.tab if session.tab is not None else -1)
        return (tab.browser_id if tab is not None else browsers.default_link().browser_id) not in managed


def _leaves_own(tool: Tool, session: Session, tab: Tab) -> bool:
    """Whether a session closes its own tab, which a page can have sent to the panel."""
    return tool.name == CLOSE and tab.tab_id in (session.tab, *session.opened_tabs)


def _panel_only(tool: Tool) -> PermissionDenied:
    return PermissionDenied(
        f"{tool.name} cannot be used in a tab that shows Tabhub's own panel.",
        hint="The panel is for the person only. Use another tab.",
    )
