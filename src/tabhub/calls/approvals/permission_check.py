"""The permission check of a hub: settings and site rules first, then an approval where they or a guard require one.

Gathers the facts of a call (the verdict on its tool, the rules of the sites it is about, whose browser it reaches,
which content it may carry from site to site) and lets trust.approvals decide. Owns the cached verdicts, which hold
until settings, pins or the tool change. A call that needs no approval costs one lookup here.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from tabhub.browser.tools.acting import batch
from tabhub.calls.approvals.disturbance import disturbance
from tabhub.calls.approvals.inbox import ApprovalInbox
from tabhub.calls.approvals.memory import PINNED, ApprovalMemory, flow_key, stateless_key
from tabhub.calls.approvals.permission import Permission
from tabhub.calls.call_sites import CallSites
from tabhub.calls.hidden_tools import HiddenTools
from tabhub.calls.protocols import Caller
from tabhub.config.settings import Config
from tabhub.core.calls import Call
from tabhub.core.leases import Lease
from tabhub.core.origins import BLANK, name_of, origin_of
from tabhub.core.page_tools import PageTool
from tabhub.core.sessions import Session
from tabhub.core.tabs import Tab
from tabhub.core.tools import Tool
from tabhub.errors import PermissionDenied
from tabhub.links.browsers import Browsers
from tabhub.store.audit import AuditLog
from tabhub.trust import pins
from tabhub.trust.actions import LEASE_TOOLS, kind_of
from tabhub.trust.approvals import (
    ALLOWED,
    NO_FLOW,
    Allowed,
    Approval,
    Ask,
    CallFacts,
    DataFlow,
    Denied,
    Outcome,
    Verdict,
    decide,
    denied,
    tab_moved,
    tool_changed,
)
from tabhub.trust.dataflow import is_unknown
from tabhub.trust.explain import Question, explain
from tabhub.trust.grants import Scope
from tabhub.trust.guard import EXTENSION_ORIGIN
from tabhub.trust.permissions import Permissions, ToolFacts
from tabhub.trust.site_rules import SiteRules, strictest
from tabhub.trust.verdicts import apply_site_rule, tool_verdict
from tabhub.trust.visibility import EVERYTHING, View, Visibility

log = logging.getLogger("tabhub.permissions")

_CLOSE = "browser_close_tab"
_CARRIES_NOTHING = frozenset({_CLOSE, "browser_focus_tab"})
"""Tools that put no content into their tab."""
_BATCH = batch.browser_act.tool.name
"""The tool that runs steps of other tools: their settings hold in it."""
_MADE = ("data:", "blob:")
"""How URLs begin whose document any page, or the agent, can have made."""
_NO_VERDICTS: dict[str | None, Verdict] = {}
_PANEL = EXTENSION_ORIGIN.decode()


Act = tuple[Tool, Mapping[str, Any]]
"""A tool and the arguments it is called with."""


class Names(NamedTuple):
    """A tool's name in its source and in the settings, and all names it may be set by."""

    own: str
    all: tuple[str, ...]


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
        self._audit = audit
        self._call_sites = sites
        self._declared = declared
        self._require_free = require_free
        self.hidden = HiddenTools(self.visibility, browsers.book, sites.plugin_patterns, sites.plugin_tabs)
        self._held_by_others = held_by_others
        self._verdicts: WeakKeyDictionary[Tool, dict[str | None, Verdict]] = WeakKeyDictionary()
        memory.on_pin(self._verdicts.clear)
        self.apply_settings(config)

    def apply_settings(self, config: Config) -> None:
        self.permissions = Permissions.parse(config)
        self.sites = SiteRules.parse(config)
        self._visibilities: dict[str | None, Visibility] = {}
        self._dataflow = config.dataflow
        self._verdicts.clear()

    # before a call

    def check(self, caller: Caller, tool: Tool, arguments: Mapping[str, Any]) -> Outcome:
        session = caller.session
        acts = not tool.read_only
        if acts and self._acts_in_panel(session, tool, arguments):
            return Denied(_panel_only(tool))
        verdict = self.verdict(tool, session.token)
        guarded = self._dataflow != "off" and acts and self._memory.flows.knows(flow_key(session))
        steps = tuple(batch.tool_calls(arguments)) if tool.name == _BATCH else ()
        disturbs = disturbance(session, tool, arguments, self._browsers, self._held_by_others) if acts else ""
        if verdict.level == "auto" and not guarded and not steps and not disturbs and self.sites.empty:
            return ALLOWED
        return self._decide(session, tool, arguments, steps, guarded=guarded, disturbs=disturbs)

    def _decide(
        self,
        session: Session,
        tool: Tool,
        arguments: Mapping[str, Any],
        steps: tuple[Act, ...],
        *,
        guarded: bool,
        disturbs: str,
    ) -> Outcome:
        acts = ((tool, arguments), *steps)
        set_levels = [self.verdict(each, session.token) for each, _ in acts]
        if off := next((each for (each, _), its in zip(acts, set_levels, strict=True) if its.level == "off"), None):
            return Denied(self._switched_off(off))
        verdicts: list[Verdict] = []
        for act, its in zip(acts, set_levels, strict=True):
            on_site = self._on_site(session, act, its)
            if isinstance(on_site, PermissionDenied):
                return Denied(on_site)
            verdicts.append(on_site)
        loosened = verdicts[0].level == "auto" != set_levels[0].level
        undecided = verdicts[0].level is None or (loosened and any(its.level is None for its in verdicts))
        own_browser = self._reaches_own(tool, arguments, session) if undecided or guarded else True
        if loosened and own_browser:  # the rule speaks for its own site only
            verdicts[1:] = [its if its.level is not None else Verdict("ask") for its in verdicts[1:]]
        acts_known = _known_acts(steps) if steps else acts
        flow = self._flow(acts_known, session) if guarded and own_browser else NO_FLOW
        level = verdicts[0].level or ("ask" if own_browser else "auto")
        steps_to_ask = self._steps_to_ask(session, steps, verdicts[1:])
        if level == "auto" and not flow.sites and not steps_to_ask and not disturbs:
            return ALLOWED
        scope = self._scope(session, acts)
        definition = self._definition(tool) if tool.source.kind in PINNED else ""
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
                skipped=self.permissions.skipped,
                dataflow=self._dataflow,
                setting_name=self.names(tool).own,
                definition=definition,
                scope=scope,
            )
        )
        if isinstance(outcome, Ask) or outcome.warn:
            self._require_usable_tab(tool, arguments, session)
        if isinstance(outcome, Allowed) and outcome.warn:
            self._warn(session, tool, flow)
        return replace(outcome, site=self.site(session, tool, arguments)) if isinstance(outcome, Ask) else outcome

    def site(self, session: Session, tool: Tool, arguments: Mapping[str, Any]) -> str:
        tab = self._tab(session, tool, arguments)
        return tab.site if tab is not None else BLANK

    def _tab(self, session: Session, tool: Tool, arguments: Mapping[str, Any]) -> Tab | None:
        """The tab that a call names, or the session's own."""
        own = session.tab if tool.source.kind in ("browser", "plugin") else None
        tab_id = arguments.get("tabId", own)
        return self._browsers.book.get(tab_id) if type(tab_id) is int else None

    async def ask(self, caller: Caller, tool: Tool, arguments: Mapping[str, Any], ask: Ask) -> Approval:
        """Wait for an approval; PermissionDenied without one, or if the call is not what the person was shown."""
        request, shown, answer = await self._inbox.ask(caller, tool, arguments, ask)
        if not answer.allowed:
            raise denied(request, answer)
        kind = tool.source.kind
        if kind == "page":  # called by its site and document, wherever its tab is
            if self._declared(tool) is not None and self._definition(tool) != shown.definition:
                raise tool_changed(request, answer)
        elif kind in ("browser", "plugin") and request.tab_id is not None:
            tab = self._browsers.book.get(request.tab_id)
            if tab is not None and tab.site != shown.site:
                raise tab_moved(request, answer, tab.site)
        self.recheck(caller.session, tool, arguments)
        return Approval(answer.by, answer.decision, answer.reason)

    def confirm_tab(self, caller: Caller, tool: Tool, message: str, tab_id: int) -> Awaitable[bool] | None:
        """Ask the person for a tab that another session holds; None in a managed browser, where nobody may be."""
        tab = self._browsers.book.get(tab_id)
        if tab is None or self._browsers.is_managed(tab.browser_id) or self.permissions.skipped:
            return None

        async def confirm() -> bool:
            return (await self._inbox.confirm(caller, tool, Ask("tab", message, this_call_only=True), tab_id)).allowed

        return confirm()

    def recheck(self, session: Session, tool: Tool, arguments: Mapping[str, Any] | None = None) -> None:
        """PermissionDenied if the tool, or a site it reaches, was switched off while a permitted call was held."""
        verdict = self.verdict(tool, session.token)
        if verdict.level == "off":
            raise self._switched_off(tool)
        if arguments is not None:
            on_site = self._on_site(session, (tool, arguments), verdict)
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

    def _switched_off(self, tool: Tool) -> PermissionDenied:
        return PermissionDenied(
            f"{tool.name} is switched off by the person who runs this hub.",
            hint=f"They can allow it with: tabhub config set "
            f"permissions.{tool.source.setting}.tools.{self.names(tool).own} auto",
        )

    def explain(self, tool: Tool, agent: str | None, url: str | None) -> str:
        """Which rule decides on a call of a tool by an agent on a page, and why."""
        return explain(
            Question(self.facts(tool), tool.source.setting, self.names(tool).all, agent, url),
            self.verdict(tool, agent),
            self.permissions,
            self.sites,
            self._memory.grants.all(),
        )

    # sites and earlier approvals

    def _on_site(self, session: Session, act: Act, verdict: Verdict) -> Verdict | PermissionDenied:
        """What holds on the sites a call is about."""
        if self.sites.empty:
            return verdict
        tool, arguments = act
        urls = self._call_sites.urls(session, tool, arguments)
        rules = [self.sites.rule(url, session.token) for url in urls]
        if tool.source.kind == "plugin" and "tabId" not in arguments:  # it runs in a tab that is not blocked
            rules = [rule for rule in rules if rule is None or rule.level != "block"] or rules
        return apply_site_rule(self.facts(tool), verdict, strictest(rules))

    def _scope(self, session: Session, acts: Iterable[Act]) -> tuple[Scope, ...]:
        """What an approval of these calls covers; empty if the site of one is not known."""
        scopes: dict[Scope, None] = {}
        for place, (tool, arguments) in enumerate(acts):
            if place and tool.read_only:
                continue  # a batch may read and wait
            site = None
            if self._call_sites.on_site(tool, arguments):
                site = self._call_sites.site(session, tool, arguments)
                if site is None:
                    return ()
            scopes[Scope(self._kind(tool), site)] = None
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
            elif tool.source.kind in PINNED and (changed := self._changed(tool, definition)) is not None:
                return changed
            else:
                approvals.append(Approval(grant.approved_by, "allow_always", f"grant {grant.id}"))
        return approvals[0] if approvals else None

    def _acts_in_panel(self, session: Session, tool: Tool, arguments: Mapping[str, Any]) -> bool:
        """Whether a call acts in a tab that shows the panel, where an agent could approve its own calls."""
        if tool.source.kind != "browser" or tool.name in LEASE_TOOLS or not _in_tab(tool):
            return False
        tab = self._tab(session, tool, arguments)
        if tab is None or not tab.url.startswith(_PANEL):
            return False
        # A page can send an agent's own tab there.
        return not (tool.name == _CLOSE and tab.tab_id in (session.tab, *session.opened_tabs))

    # verdicts

    def facts(self, tool: Tool) -> ToolFacts:
        reads = tool.read_only and (tool.source.kind != "page" or self.permissions.trust_pages)
        return ToolFacts(tool.name, tool.source.kind, self._kind(tool), reads)

    def _kind(self, tool: Tool) -> str:
        """Its kind of action; a page's tool goes by its own name, whichever tab has it."""
        return kind_of(tool.source.kind, self.names(tool).own if tool.source.kind == "page" else tool.name)

    def verdict(self, tool: Tool, client: str | None = None) -> Verdict:
        """What holds for a tool; without `client`, for clients without settings of their own."""
        return self._verdicts.get(tool, _NO_VERDICTS).get(client) or self._judge(tool, client)

    def is_off(self, tool: Tool) -> bool:
        return self.verdict(tool).level == "off"

    def _judge(self, tool: Tool, client: str | None) -> Verdict:
        verdict = self._look_up(tool, client)
        self._verdicts.setdefault(tool, {})[client] = verdict
        return verdict

    def _look_up(self, tool: Tool, client: str | None) -> Verdict:
        """The verdict from the settings and pins; a tool that is allowed for good is pinned as it is now."""
        source, names = tool.source, self.names(tool)
        stated = self.permissions.stated(source.setting, names.all, client)
        if stated is None or stated.level != "auto" or stated.scope == "default" or source.kind not in PINNED:
            return tool_verdict(self.permissions, self.facts(tool), source.setting, names.all, client)
        definition = self._definition(tool)
        if self._memory.pins.get(source.setting, names.own) is None:
            self._memory.pins.approve(source.setting, names.own, pins.fingerprint(definition), definition)
        return self._changed(tool, definition) or Verdict("auto", own=stated.scope == "tool")

    def _changed(self, tool: Tool, definition: str) -> Verdict | None:
        """The verdict on a tool whose definition is not one that was approved."""
        source, fingerprint = tool.source, pins.fingerprint(definition)
        pin = self._memory.pins.get(source.setting, self.names(tool).own)
        if pin is not None and pin.has(fingerprint):
            return None
        log.warning("%s has changed since it was approved; the person is asked again", tool.name)
        approved = pin.fingerprints[-1][:16] if pin is not None else None
        facts = {"of": tool.name, "approved": approved, "now": fingerprint[:16]}
        self._audit.event("definition changed", source, tab_id=None, **facts)
        message = f"{tool.name} is not what was approved: its definition has changed since."
        return Verdict("ask", "pin", message, pins.diff(pin.text, definition) if pin is not None else None)

    def pin(self, tool: Tool) -> None:
        """Approve a tool as it is defined now."""
        if tool.source.kind in PINNED:
            self._memory.pin(tool, self.names(tool).own, self._definition(tool))

    # whose browser

    def _reaches_own(self, tool: Tool, arguments: Mapping[str, Any], session: Session) -> bool:
        """Whether a call reaches the person's own browser; if in doubt, it does."""
        if tool.source.kind in ("hub", "upstream"):
            return True
        browsers = self._browsers
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

    # data flow from site to site

    def call_answered(self, session: Session, call: Call) -> None:
        """Note the sites a call has read: their content may be carried elsewhere."""
        if self._dataflow == "off":
            return
        tab = self._browsers.book.get(call.tab) if call.tab is not None else None
        if tab is not None and self._browsers.is_managed(tab.browser_id):
            return
        plugin = call.tool.source.key if call.tool.source.kind == "plugin" else None
        read = [site for site in call.sites if site.startswith(("http:", "https:")) or is_unknown(site)]
        for key in {flow_key(session), stateless_key(session)} if session.kind == "handle" else (session.id,):
            for site in read:
                self._memory.flows.read(key, site, plugin)

    def _flow(self, acts: Iterable[Act], session: Session) -> DataFlow:
        """What calls would carry to which places; if nothing, the first place is where they act."""
        sites: dict[str, None] = {}
        reached: list[tuple[str, ...]] = []
        all_places = [names for tool, arguments in acts if (names := self._places(tool, arguments, session))]
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
            place = (BLANK,) if kind == "browser" and _in_tab(tool) and tool.name not in _CARRIES_NOTHING else ()
        else:
            place = (site,) if site.startswith("http") or is_unknown(site) else ()
        return place if kind == "browser" else (tool.source.key, *place)

    def _warn(self, session: Session, tool: Tool, flow: DataFlow) -> None:
        place = " and ".join(flow.places)
        log.warning("%s read %s and acts on %s with %s", session.label, ", ".join(flow.sites), place, tool.name)
        facts = {"of": tool.name, "read": list(flow.sites), "acts": place, "session": session.id}
        self._audit.event(
            "data flow", tool.source, tab_id=None, client=session.client, tokenName=session.token, **facts
        )
        self._memory.flows.allow(flow_key(session), flow.sites, flow.targets)

    # tools as settings and pins know them

    def names(self, tool: Tool) -> Names:
        key = tool.source.key
        if tool.source.kind == "page":
            declared = self._declared(tool)
            own = declared.name if declared is not None else tool.name
        elif tool.source.kind == "upstream":
            own = tool.name.removeprefix(f"mcp__{key}__")
        else:
            own = tool.name
        return Names(own, (tool.name, own) if own != tool.name else (own,))

    def _definition(self, tool: Tool) -> str:
        """The definition of a tool of PINNED as its author wrote it."""
        declared = self._declared(tool) if tool.source.kind == "page" else None
        meta = (tool.meta or {}).get("tabhub/plugin")
        defined = declared if declared is not None else tool
        return pins.definition(
            name=defined.name,
            title=defined.title,
            description=defined.description,
            input_schema=defined.input_schema,
            output_schema=defined.output_schema,
            annotations=defined.annotations,
            version=str(meta.get("version")) if isinstance(meta, Mapping) and tool.source.kind == "plugin" else None,
        )


def _panel_only(tool: Tool) -> PermissionDenied:
    return PermissionDenied(
        f"{tool.name} cannot be used in a tab that shows Tabhub's own panel.",
        hint="The panel is for the person only. Use another tab.",
    )


def _known_acts(steps: Iterable[Act]) -> list[Act]:
    """The acts of a batch whose place is known before it runs; after a navigation each step is checked as it comes."""
    known: list[Act] = []
    navigates = False
    for step, arguments in steps:
        leads = "url" in arguments
        if not step.read_only and (leads or not navigates):
            known.append((step, arguments))
            navigates = navigates or leads
    return known


def _in_tab(tool: Tool) -> bool:
    return "tabId" in tool.input_schema["properties"]


def _target(url: str) -> str | None:
    """The site that a URL leads to; None for files and empty pages, which nothing can be carried to."""
    site = origin_of(url) or (name_of(url) if url.lstrip()[:5].lower() in _MADE else "")
    return site if site.startswith("http") or is_unknown(site) else None
