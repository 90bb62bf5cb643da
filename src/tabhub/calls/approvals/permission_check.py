"""Whether a call may run: looked up in the settings, and asked of a person where they or the guards say so.

Owns the verdict on each tool and client (kept until settings, pins or the tool itself change), whose browser a call
will reach, and what sessions carry from site to site. The rules are trust/'s; asking is approvals.py's. A call that may
run costs one look-up here.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from tabhub.browser.tools.acting import batch as act
from tabhub.calls.approvals.inbox import Approvals, Question
from tabhub.calls.approvals.outcome import SKIPPED, Approval, changed, moved
from tabhub.calls.protocols import Caller
from tabhub.config.settings import Config
from tabhub.core.calls import Call
from tabhub.core.page_tools import PageTool
from tabhub.core.sessions import Session
from tabhub.core.tabs import origin_of
from tabhub.core.tools import Tool
from tabhub.errors import PermissionDenied
from tabhub.links.browsers import Browsers
from tabhub.store.audit import AuditLog
from tabhub.store.pins import PinStore
from tabhub.trust import pins
from tabhub.trust.approvals import Answer, Request, Why
from tabhub.trust.dataflow import DataFlows
from tabhub.trust.guard import EXTENSION_ORIGIN
from tabhub.trust.permissions import Permission, Permissions, unstated

log = logging.getLogger("tabhub.permits")

_KEPT = 20_000
_PINNED = ("page", "plugin", "upstream")
"""Sources that are others': their definitions may change under an approval."""
HUB_ONLY = frozenset({"browser_release_tab", "browser_request_tab"})
"""Tools of the browser that only concern who holds a tab; whose it is, is asked by themselves."""
_BATCH = act.browser_act.tool.name
"""The one tool that does what others do: what is set for them holds in it."""
_STATELESS = "stateless"
_PANEL = EXTENSION_ORIGIN.decode()


@dataclass(frozen=True, slots=True)
class Verdict:
    """What holds for one tool when one client calls it."""

    level: Permission | None
    """None: it depends on whose browser the call reaches."""
    why: Why = "permission"
    words: str = ""
    diff: str | None = None


class Carried(NamedTuple):
    """What a call may carry from site to site."""

    sites: tuple[str, ...] = ()
    """Those that were read."""
    targets: tuple[str, ...] = ()
    """All names of the places acted on."""
    places: tuple[str, ...] = ()
    """One name of each."""


NOTHING = Carried()


class Names(NamedTuple):
    """How a tool is known: to its source and in settings, and all names it may be set by."""

    own: str
    all: tuple[str, ...]


class PermissionCheck:
    """The verdicts of one hub."""

    def __init__(
        self,
        config: Config,
        *,
        approvals: Approvals,
        browsers: Browsers,
        pin_store: PinStore,
        audit: AuditLog,
        declared: Callable[[Tool], PageTool | None],
        may_act: Callable[[Session, int], None],
    ) -> None:
        self.permissions = Permissions.parse(config)
        self._dataflow = config.dataflow
        self._approvals = approvals
        self._browsers = browsers
        self._pins = pin_store
        self._audit = audit
        self._declared = declared
        self._may_act = may_act
        self._verdicts: dict[tuple[Tool, str | None], Verdict] = {}
        self.flows = DataFlows()
        approvals.on_allowed = self._allowed
        approvals.unchanged = self._unchanged

    def take(self, config: Config) -> None:
        """Settings changed."""
        self.permissions = Permissions.parse(config)
        self._dataflow = config.dataflow
        self._verdicts.clear()

    # before a call

    def permit(self, caller: Caller, tool: Tool, arguments: Mapping[str, Any]) -> Awaitable[Approval] | Approval | None:
        """Let a call run (None, or by whose word), refuse it (PermissionDenied), or give what waits for a person."""
        session = caller.session
        if not tool.read_only and tool.source.kind == "browser":
            self._keep_off_panel(tool, arguments, session)
        verdict = self._verdicts.get((tool, session.token)) or self.verdict(tool, session.token)
        level = verdict.level
        guarded = self._dataflow != "off" and not tool.read_only and self.flows.knows(who(session))
        parts = tuple(act.tool_calls(arguments)) if tool.name == _BATCH else ()
        if level == "auto" and not guarded and not parts:
            return None
        if level == "off":
            raise self._off(tool)
        asking = self._asking(parts, session)
        own = self.reaches_own(tool, arguments, session) if level is None or guarded else True
        if level is None:
            level = "ask" if own else "auto"
        carried = self._carried(((tool, arguments), *parts), session) if guarded and own else NOTHING
        crossing = carried.sites
        if level == "auto" and not crossing and not asking:
            return None
        if self.permissions.skipped:
            return SKIPPED
        self._worth_asking(tool, arguments, session)
        if asking:
            question = self._question(tool, verdict, "ask", carried)
            words = f"{tool.name} would use {', '.join(asking)}, set to ask. {question.words if crossing else ''}"
            return self._approvals.ask(caller, tool, arguments, replace(question, words=words.strip(), lasting=False))
        if level == "ask" and (grant := self._approvals.granted(session, tool, self._text(tool))) is not None:
            if not crossing:
                return grant
            level = "auto"
        if level == "auto" and self._dataflow == "warn":
            self._warn(session, tool, carried)
            return None
        return self._approvals.ask(caller, tool, arguments, self._question(tool, verdict, level, carried))

    def _worth_asking(self, tool: Tool, arguments: Mapping[str, Any], session: Session) -> None:
        """Refuse a call on a tab that is gone, or that another session holds: a person's word would change nothing."""
        named = arguments.get("tabId")
        if tool.source.kind == "browser" and tool.name not in HUB_ONLY and type(named) is int:
            self._browsers.tab(named)
            if not tool.read_only:
                self._may_act(session, named)

    def _asking(self, parts: Iterable[tuple[Tool, Any]], session: Session) -> list[str]:
        """The tools of a batch that are set to ask and not allowed for the session; refused if one of them is off."""
        asking: dict[str, None] = {}
        for part, _ in parts:
            level = (self._verdicts.get((part, session.token)) or self.verdict(part, session.token)).level
            if level == "off":
                raise self._off(part)
            if level == "ask" and self._approvals.granted(session, part, "") is None:
                asking[part.name] = None
        return list(asking)

    def still(self, session: Session, tool: Tool) -> None:
        """PermissionDenied if a tool was switched off while a call that had been permitted was held back."""
        if self.verdict(tool, session.token).level == "off":
            raise self._off(tool)

    def _off(self, tool: Tool) -> PermissionDenied:
        return PermissionDenied(
            f"{tool.name} is switched off by the person who runs this hub.",
            hint=f"They can allow it with: tabhub config set {setting(tool, self.names(tool))} auto",
        )

    def _keep_off_panel(self, tool: Tool, arguments: Mapping[str, Any], session: Session) -> None:
        """No agent acts in the extension's own pages, whatever the settings: it would approve its own calls there."""
        named = arguments.get("tabId", session.tab)
        tab = self._browsers.book.get(named) if type(named) is int else None
        if tab is not None and tab.url.startswith(_PANEL):
            raise PermissionDenied(
                f"{tool.name} cannot be used in tab {tab.tab_id}: it shows Tabhub's own panel.",
                hint="The panel is the person's alone. Use another tab.",
            )

    def verdict(self, tool: Tool, client: str | None) -> Verdict:
        """What holds for a tool, and is kept."""
        if len(self._verdicts) >= _KEPT:
            self._verdicts.clear()
        verdict = self._verdicts[tool, client] = self._judge(tool, client)
        return verdict

    def _judge(self, tool: Tool, client: str | None) -> Verdict:
        source, names = tool.source, self.names(tool)
        stated = self.permissions.stated(source.setting, names.all, client)
        if stated is None:
            if tool.name in HUB_ONLY:
                return Verdict("auto")
            trust = self.permissions.trust_pages
            return Verdict(unstated(source.kind, reads=tool.read_only, trust_pages=trust))
        if stated.level != "auto" or stated.scope == "default" or source.kind not in _PINNED:
            return Verdict(stated.level)
        text = self._text(tool)
        mark, pin = pins.fingerprint(text), self._pins.get(source.setting, names.own)
        if pin is None:
            self._pins.approve(source.setting, names.own, mark, text)
        elif not pin.holds(mark):
            words = f"{tool.name} is not what was approved: its definition has changed since."
            log.warning("%s has changed since it was approved; the person is asked again", tool.name)
            facts = {"of": tool.name, "approved": pin.fingerprints[-1][:16], "now": mark[:16]}
            self._audit.event("definition changed", source, tab_id=None, **facts)
            return Verdict("ask", "pin", words, pins.diff(pin.text, text))
        return Verdict("auto")

    def _question(self, tool: Tool, verdict: Verdict, level: Permission, carried: Carried) -> Question:
        carries, crossing = "", carried.sites
        if crossing:
            read = ", ".join(crossing[:5]) + (f" and {len(crossing) - 5} more" if len(crossing) > 5 else "")
            to = " and ".join(carried.places)
            carries = f"This agent has read {read}, and now acts on {to}: it may carry content from one to the other."
        why: Why = verdict.why if level == "ask" else "dataflow"
        words = " ".join(part for part in (verdict.words, carries) if part)
        names = self.names(tool)
        return Question(
            why=why,
            words=words or f"{tool.name} acts, and is set to ask.",
            diff=verdict.diff,
            own_name=names.own,
            text=self._text(tool),
            crossing=crossing,
            targets=carried.targets,
            target=carried.places[0] if carried.places else None,
        )

    # whose browser

    def reaches_own(self, tool: Tool, arguments: Mapping[str, Any], session: Session) -> bool:
        """Whether a call reaches a browser of the person's own; in doubt it does."""
        if tool.source.kind in ("hub", "upstream"):
            return True
        browsers = self._browsers
        managed = [link.browser_id for link in browsers.links() if browsers.is_managed(link.browser_id)]
        if len(managed) == len(browsers.links()):
            browsers.default_link()  # with no browser at all there is nothing to ask for: it says what is missing
            return False
        if not managed or tool.source.kind == "page":
            return True
        named, tab_id = arguments.get("browserId"), arguments.get("tabId")
        if isinstance(named, str):
            return named not in managed
        if tab_id is None and tool.source.kind == "plugin":
            return True
        tab = browsers.book.get(tab_id if type(tab_id) is int else session.tab if session.tab is not None else -1)
        return (tab.browser_id if tab is not None else browsers.default_link().browser_id) not in managed

    # from site to site

    def after(self, session: Session, call: Call) -> None:
        """A call has given its answer: what it read may be carried elsewhere."""
        if self._dataflow == "off" or call.origin is None or not call.origin.startswith(("http:", "https:")):
            return
        tab = self._browsers.book.get(call.tab) if call.tab is not None else None
        if tab is not None and self._browsers.is_managed(tab.browser_id):
            return
        through = call.tool.source.key if call.tool.source.kind == "plugin" else None
        for key in {who(session), _loose(session)} if session.kind == "handle" else (session.id,):
            self.flows.read(key, call.origin, through)

    def _carried(self, acts: Iterable[tuple[Tool, Mapping[str, Any]]], session: Session) -> Carried:
        """What acts would carry, and to which of their places; without any, the first is where they act."""
        sites: dict[str, None] = {}
        reached: list[tuple[str, ...]] = []
        all_places = [names for tool, arguments in acts if (names := self._targets(tool, arguments, session))]
        for names in dict.fromkeys(all_places):
            if found := self.flows.crossing(who(session), names):
                sites.update(dict.fromkeys(found))
                reached.append(names)
        shown = reached or all_places[:1]
        return Carried(tuple(sites), tuple(name for names in shown for name in names), tuple(each[0] for each in shown))

    def _targets(self, tool: Tool, arguments: Mapping[str, Any], session: Session) -> tuple[str, ...]:
        """The names of the place a call acts on."""
        if tool.source.kind == "page":
            return (tool.source.key,)
        url = arguments.get("url")
        if tool.source.kind == "browser" and isinstance(url, str) and (site := _origin(url)):
            return (site,)
        tab_id = arguments.get("tabId", session.tab if tool.source.kind == "browser" else None)
        tab = self._browsers.book.get(tab_id) if type(tab_id) is int else None
        place = (tab.origin,) if tab is not None and tab.origin is not None and _origin(tab.url) else ()
        return place if tool.source.kind == "browser" else (tool.source.key, *place)

    def _warn(self, session: Session, tool: Tool, carried: Carried) -> None:
        place = " and ".join(carried.places)
        log.warning("%s read %s and acts on %s with %s", session.client, ", ".join(carried.sites), place, tool.name)
        facts = {"of": tool.name, "read": list(carried.sites), "acts": place, "session": session.id}
        self._audit.event("data flow", tool.source, tab_id=None, client=session.client, **facts)
        self.flows.allow(who(session), carried.sites, carried.targets)

    def _allowed(self, session: Session, tool: Tool, question: Question) -> None:
        """A person allowed a call: its tool's form is approved, and what it carries may pass."""
        if question.crossing:
            self.flows.allow(who(session), question.crossing, question.targets)
        if tool.source.kind in _PINNED and question.why == "pin":
            self.pin(tool, question.text)

    def _unchanged(self, request: Request, tool: Tool, text: str, answer: Answer) -> None:
        """A person's word is for what they were shown: refuse a call whose tab or tool is another by now."""
        kind = tool.source.kind
        if kind == "page":  # called by its site and document, wherever its tab is
            if self._declared(tool) is not None and self._text(tool) != text:
                raise changed(request, answer)
        elif kind in ("browser", "plugin") and request.tab_id is not None:
            tab = self._browsers.book.get(request.tab_id)
            if tab is not None and tab.origin != origin_of(request.url or ""):
                raise moved(request, answer, tab.origin or tab.url)

    def pin(self, tool: Tool, text: str | None = None) -> None:
        """Approve a tool as a person was shown it; without that, as it is defined now."""
        if tool.source.kind in _PINNED:
            text = self._text(tool) if text is None else text
            self._pins.approve(tool.source.setting, self.names(tool).own, pins.fingerprint(text), text)
        self._verdicts.clear()

    def ended(self, session: Session) -> None:
        """A session is over."""
        self.flows.end(session.id)
        self._approvals.forget(session.id)

    # tools as settings and pins know them

    def names(self, tool: Tool) -> Names:
        """How a tool is known."""
        key = tool.source.key
        if tool.source.kind == "page":
            declared = self._declared(tool)
            own = declared.name if declared is not None else tool.name
        elif tool.source.kind == "upstream":
            own = tool.name.removeprefix(f"mcp__{key}__")
        else:
            own = tool.name
        return Names(own, (tool.name, own) if own != tool.name else (own,))

    def _text(self, tool: Tool) -> str:
        """A tool's definition, in the words of whoever made it."""
        if tool.source.kind not in _PINNED:
            return ""
        declared = self._declared(tool) if tool.source.kind == "page" else None
        meta = (tool.meta or {}).get("tabhub/plugin")
        said = declared if declared is not None else tool
        return pins.definition(
            name=said.name,
            title=said.title,
            description=said.description,
            input_schema=said.input_schema,
            output_schema=said.output_schema,
            annotations=said.annotations,
            version=str(meta.get("version")) if isinstance(meta, Mapping) and tool.source.kind == "plugin" else None,
        )

    def is_off(self, tool: Tool) -> bool:
        """Whether a tool is switched off for everyone."""
        return self.verdict_for_all(tool).level == "off"

    def verdict_for_all(self, tool: Tool) -> Verdict:
        """What holds for clients without settings of their own."""
        return self._verdicts.get((tool, None)) or self.verdict(tool, None)


def setting(tool: Tool, names: Names) -> str:
    """The key of a tool's permission in the settings."""
    return f"permissions.{tool.source.setting}.tools.{names.own}"


def who(session: Session) -> str:
    """Whose reading is counted together: the session's, or that of a stateless client without one."""
    return session.id if session.id != _STATELESS else _loose(session)


def _loose(session: Session) -> str:
    return f"{_STATELESS}:{session.token or ''}:{session.client}"


def _origin(url: str) -> str | None:
    site = origin_of(url)
    return site if site is not None and site.startswith("http") else None
