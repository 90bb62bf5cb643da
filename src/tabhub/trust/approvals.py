"""Approvals as data: the outcome of a permission check, what a person is asked, and what they answered.

Owns these types and the errors of calls that were not approved. Asking and waiting are calls.approvals'.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

from tabhub.errors import PermissionDenied
from tabhub.trust.redact import clean
from tabhub.wire.panel import Decision

DECISIONS: tuple[Decision, ...] = get_args(Decision)
Why = Literal["permission", "pin", "dataflow", "page", "tab"]
Approver = Literal["panel", "terminal", "notification", "elicitation"]


class Approval(NamedTuple):
    """Who approved a call, for the audit log."""

    by: str
    decision: str
    reason: str = ""

    def describe(self) -> dict[str, Any]:
        return {"by": self.by, "decision": self.decision} | ({"reason": self.reason} if self.reason else {})


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
    this_call_only: bool = False


Outcome = Allowed | Denied | Ask
"""The outcome of a permission check."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a person decided."""

    decision: Decision
    by: Approver
    reason: str = ""

    @property
    def allowed(self) -> bool:
        return self.decision != "deny"


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """A request for approval, with everything a person needs to decide."""

    id: str
    tool: str
    plugin: str
    source: str
    client: str
    session: str
    params: Any
    why: Why
    message: str
    created: float
    expires: float
    token: str | None = None
    """The name of the client's token."""
    tab_id: int | None = None
    title: str | None = None
    url: str | None = None
    origin: str | None = None
    diff: str | None = None
    choices: tuple[Decision, ...] = DECISIONS

    def describe(self, expires_at: float) -> dict[str, Any]:
        """The request for panel and terminal; `expires_at` is in seconds since 1970."""
        description: dict[str, Any] = {
            "id": self.id,
            "tool": self.tool,
            "plugin": self.plugin,
            "source": self.source,
            "params": self.params,
            "client": self.client,
            "session": self.session,
            "reason": self.why,
            "message": self.message,
            "choices": list(self.choices),
            "expiresAt": round(expires_at * 1000),
        }
        optional: Mapping[str, Any] = {
            "token": self.token,
            "tabId": self.tab_id,
            "title": self.title,
            "url": self.url,
            "origin": self.origin,
            "diff": self.diff,
        }
        return description | {name: value for name, value in optional.items() if value is not None}


def choices_for(ask: Ask, *, session_lasts: bool) -> tuple[Decision, ...]:
    """The decisions a person is offered; a session of a single request cannot be approved as a whole."""
    choices: tuple[Decision, ...] = DECISIONS
    if ask.this_call_only:
        choices = ("allow_once", "deny")
    elif ask.why == "dataflow":
        choices = ("allow_once", "allow_session", "deny")
    return choices if session_lasts else tuple(choice for choice in choices if choice != "allow_session")


# errors of calls that were not approved


def denied(request: Request, answer: Answer) -> PermissionDenied:
    reason = f" They said: {answer.reason}" if answer.reason else ""
    return PermissionDenied(
        f"The person denied {request.tool}.{reason}",
        hint="Nothing was sent. Do not try it again unless they ask for it.",
        data={"approval": {"decision": "deny", "by": answer.by}},
    )


def tab_moved(request: Request, answer: Answer, place: str) -> PermissionDenied:
    """The tab navigated to another site while the person was asked."""
    return PermissionDenied(
        f"{request.tool} was approved for {request.origin or request.url}, but tab {request.tab_id} now shows "
        f"{clean(place, 200)}.",
        hint="Nothing was sent. Look at the tab; to act there too, call again: the person is asked again.",
        data={"approval": {"decision": answer.decision, "by": answer.by}},
    )


def tool_changed(request: Request, answer: Answer) -> PermissionDenied:
    """The page replaced the tool the person was shown."""
    return PermissionDenied(
        f"{request.tool} was not run: its page changed it while the person was asked.",
        hint="Nothing was sent. List the tools to see the new definition; a new call asks the person again.",
        data={"approval": {"decision": answer.decision, "by": answer.by}},
    )


def unanswered(request: Request, seconds: float) -> PermissionDenied:
    return PermissionDenied(
        f"{request.tool} was not run: no person answered within {seconds:g} s.",
        hint="Nothing was sent. Ask the person to look at Tabhub's panel or run `tabhub approve`, then call again.",
        data={"approval": {"decision": "none", "by": "timeout"}},
    )
