"""Approvals as data: whether a call needs one, what a person is asked, and what they answered.

Owns the decision on a call from its facts, the types of its outcome, and the errors of calls that were not approved.
The level of a tool is looked up in permissions.py; asking and waiting are calls.approvals'.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import msgspec

from tabhub.config.permissions import Permission
from tabhub.errors import PermissionDenied, SiteChanged
from tabhub.trust.grants import Scope
from tabhub.trust.redact import clean
from tabhub.wire.extension_link import ConfirmationRequest
from tabhub.wire.panel import Decision, WiderScope

DECISIONS: tuple[Decision, ...] = get_args(Decision)
Why = Literal["permission", "pin", "dataflow", "page", "tab"]
Approver = Literal["panel", "terminal", "notification", "elicitation"]


class Approval(msgspec.Struct, frozen=True, omit_defaults=True):
    """Who approved a call, for the audit log."""

    by: str
    decision: str
    reason: str = ""


SKIPPED = Approval("nobody", "permissions skipped")
"""The person's settings turn `ask` into `auto`."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """The call may run."""

    approval: Approval | None = None
    """The approval it runs by, if it needed one."""
    warn: bool = False
    """Whether to log that it may carry content from one site to another."""


ALLOWED = Allowed()


@dataclass(frozen=True, slots=True)
class Denied:
    """The call must not run."""

    error: PermissionDenied


@dataclass(frozen=True, slots=True)
class Ask:
    """The call needs an approval: why, and what an approval would settle."""

    why: Why
    message: str
    diff: str | None = None
    setting_name: str = ""
    """The tool's name in the settings."""
    definition: str = ""
    """The definition the person is asked about, for tools whose source may change it."""
    crossing: tuple[str, ...] = ()
    """Sites whose content the call may carry elsewhere."""
    targets: tuple[str, ...] = ()
    """All names of the places it acts on."""
    target: str | None = None
    scope: tuple[Scope, ...] = ()
    """What an approval beyond this call covers."""
    this_call_only: bool = False
    site: str = ""
    """The site that the call's tab shows when the person is asked; empty without a tab."""
    frame: str = ""
    """The site of the frame that the call is about to act in, if it runs already and that is another site."""


Outcome = Allowed | Denied | Ask
"""The outcome of a permission check."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The permission of one tool for one client."""

    level: Permission | None
    """None: it depends on whose browser the call reaches."""
    why: Why = "permission"
    message: str = ""
    diff: str | None = None
    own: bool = False
    """Whether the level was set for the tool itself."""


class DataFlow(NamedTuple):
    """Content a call may carry from site to site."""

    sites: tuple[str, ...] = ()
    """The sites that were read."""
    targets: tuple[str, ...] = ()
    """All names of the places acted on."""
    places: tuple[str, ...] = ()
    """One name for each place acted on."""

    def message(self) -> str:
        more = f" and {len(self.sites) - 5} more" if len(self.sites) > 5 else ""
        places = " and ".join(self.places)
        return (
            f"This agent has read {', '.join(self.sites[:5])}{more}, and now acts on {places}: "
            "it may carry content from one to the other."
        )


NO_FLOW = DataFlow()


@dataclass(frozen=True, slots=True)
class CallFacts:
    """What the decision depends on, for a call that is neither off nor auto without conditions."""

    tool: str
    verdict: Verdict
    level: Permission
    flow: DataFlow
    steps_to_ask: Sequence[str]
    """The tools of a batch that need an approval."""
    disturbs: str
    """How it would disturb other sessions; empty if it would not."""
    earlier: Approval | None
    """An approval for the session or for good that covers the call."""
    skipped: bool
    dataflow: str
    """The setting: ask, warn or off."""
    setting_name: str
    definition: str
    scope: tuple[Scope, ...] = ()
    """What an approval beyond this call would cover; empty if that is not known."""
    frame: str = ""
    """The site of the frame that is acted in; empty for the tab's own page."""


def decide(call: CallFacts) -> Allowed | Ask:
    verdict, level, crossing, steps = call.verdict, call.level, bool(call.flow.sites), call.steps_to_ask
    if call.skipped:
        return Allowed(SKIPPED)
    this_call_only = bool(steps or call.disturbs)
    if not this_call_only:
        if level == "ask" and call.earlier is not None:
            if not crossing:
                return Allowed(call.earlier)
            level = "auto"
        if level == "auto" and call.dataflow == "warn":
            return Allowed(warn=True)
    messages = [f"It acts in a frame of {clean(call.frame, 200)} inside the page."] if call.frame else []
    messages += [f"{call.tool} would use {', '.join(steps)}, set to ask."] if steps else []
    if call.disturbs:
        messages.append(call.disturbs)
    if verdict.message and (crossing or not steps):
        messages.append(verdict.message)
    if crossing:
        messages.append(call.flow.message())
    return Ask(
        why=verdict.why if this_call_only or level == "ask" else "dataflow",
        message=" ".join(messages if len(messages) > bool(call.frame) else [*messages, _acts(call.tool)]),
        diff=verdict.diff,
        setting_name=call.setting_name,
        definition=call.definition,
        crossing=call.flow.sites,
        targets=call.flow.targets,
        target=call.flow.places[0] if call.flow.places else None,
        scope=call.scope,
        this_call_only=this_call_only or not call.scope,
        frame=call.frame,
    )


def _acts(tool: str) -> str:
    return f"{tool} acts, and is set to ask."


@dataclass(frozen=True, slots=True)
class Answer:
    """What a person decided."""

    decision: Decision
    by: Approver
    reason: str = ""
    every_site: bool = False
    """With allow_always: on every site, not only on those of the request."""
    every_agent: bool = False
    """With allow_always: for every agent, not only for the one that asks."""

    @property
    def allowed(self) -> bool:
        return self.decision != "deny"


def choices_for(ask: Ask, *, session_lasts: bool) -> list[str]:
    """The decisions a person is offered; a session of a single request cannot be approved as a whole."""
    choices: tuple[Decision, ...] = DECISIONS
    if ask.this_call_only:
        choices = ("allow_once", "deny")
    elif ask.why == "dataflow":
        choices = ("allow_once", "allow_session", "deny")
    return [choice for choice in choices if session_lasts or choice != "allow_session"]


def wider_scopes(ask: Ask) -> list[WiderScope]:
    """How an approval for good may be widened. A page's tool stays with its page, whose name for it means nothing
    elsewhere."""
    sites = any(scope.site is not None for scope in ask.scope) and not any(
        scope.kind.startswith("page:") for scope in ask.scope
    )
    return ["every_site", "every_agent"] if sites else ["every_agent"]


# errors of calls that were not approved


def denied(request: ConfirmationRequest, answer: Answer) -> PermissionDenied:
    reason = f" They said: {answer.reason}" if answer.reason else ""
    return PermissionDenied(
        f"The person denied {request.tool}.{reason}",
        hint="Nothing was sent. Do not try it again unless they ask for it.",
        data={"approval": {"decision": "deny", "by": answer.by}},
    )


def tab_moved(request: ConfirmationRequest, answer: Answer, place: str) -> PermissionDenied:
    """The tab navigated to another site while the person was asked."""
    return PermissionDenied(
        f"{request.tool} was approved for {request.origin or request.url}, but tab {request.tab_id} now shows "
        f"{clean(place, 200)}.",
        hint="Nothing was sent. Look at the tab; to act there too, call again: the person is asked again.",
        data={"approval": {"decision": answer.decision, "by": answer.by}},
    )


def site_changed(
    tool: str, tab_id: int, permitted: str, site: str, outcome: Denied | Ask, *, sent: bool
) -> SiteChanged:
    """The tab went to another site during a call, where the call needs an approval or is denied."""
    before, now = clean(permitted, 200) or "an empty tab", clean(site, 200)
    denied = isinstance(outcome, Denied)
    why = outcome.error.message if isinstance(outcome, Denied) else f"There it needs an approval: {outcome.message}"
    error = SiteChanged(
        f"Tab {tab_id} went from {before} to {now}, and {tool} was not done there. {why}",
        hint="Look at the tab, and do not act on that site."
        if denied
        else f"Look at the tab. To act on {now} make a new call for it: the person is asked about that site.",
        data={"tabId": tab_id, "permitted": permitted, "site": site},
    )
    if sent:
        error.outcome = "failed"
    return error


def frame_denied(error: PermissionDenied, site: str) -> PermissionDenied:
    """The call was about to act in a frame of a site where it is denied."""
    error.message += f" It would have acted in a frame of {clean(site, 200)} inside the page."
    return error


def frame_not_approved(tool: str, site: str, ask: Ask) -> PermissionDenied:
    """A step of a batch was about to act in a frame of a site where it needs an approval."""
    return PermissionDenied(
        f"{tool} was not run in a frame of {clean(site, 200)}: there it needs an approval. {ask.message}",
        hint="Make it a call of its own: the person is asked about that frame.",
        data={"frame": site},
    )


def frame_changed(tab_id: int, permitted: str, site: str) -> SiteChanged:
    """The frame that a call was about to act in went to another site."""
    return SiteChanged(
        f"A frame of tab {tab_id} went from {clean(permitted, 200)} to {clean(site, 200)}; nothing was done there.",
        hint="Look at the tab, and call again: the call is checked for what the frame shows then.",
        data={"tabId": tab_id, "permitted": permitted, "site": site},
    )


def tool_changed(request: ConfirmationRequest, answer: Answer) -> PermissionDenied:
    """The page replaced the tool the person was shown."""
    return PermissionDenied(
        f"{request.tool} was not run: its page changed it while the person was asked.",
        hint="Nothing was sent. List the tools to see the new definition; a new call asks the person again.",
        data={"approval": {"decision": answer.decision, "by": answer.by}},
    )


def unanswered(request: ConfirmationRequest, seconds: float) -> PermissionDenied:
    return PermissionDenied(
        f"{request.tool} was not run: no person answered within {seconds:g} s.",
        hint="Nothing was sent. Ask the person to look at Tabhub's panel or run `tabhub approve`, then call again.",
        data={"approval": {"decision": "none", "by": "timeout"}},
    )
