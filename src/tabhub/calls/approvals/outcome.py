"""A person's word on a call: by whom it was given, for the audit log, and how its lack reads to an agent."""

from __future__ import annotations

from typing import Any, NamedTuple

from tabhub.errors import PermissionDenied
from tabhub.trust.approvals import Answer, Request
from tabhub.trust.redact import clean


class Approval(NamedTuple):
    """A person's word, or that nobody is asked."""

    by: str
    decision: str
    reason: str = ""

    def facts(self) -> dict[str, Any]:
        """For the audit log."""
        facts = {"by": self.by, "decision": self.decision}
        return {**facts, "reason": self.reason} if self.reason else facts


SKIPPED = Approval("nobody", "permissions skipped")
"""`ask` was turned into `auto` by the person's setting."""


def denied(request: Request, answer: Answer) -> PermissionDenied:
    """The person said no."""
    why = f" They said: {answer.reason}" if answer.reason else ""
    return PermissionDenied(
        f"The person did not allow {request.tool}.{why}",
        hint="Nothing was sent. Do not try it again unless they ask for it.",
        data={"approval": {"decision": "deny", "by": answer.by}},
    )


def moved(request: Request, answer: Answer, place: str) -> PermissionDenied:
    """The tab went to another site while the person thought."""
    return PermissionDenied(
        f"{request.tool} was allowed for {request.origin or request.url}, but tab {request.tab_id} shows "
        f"{clean(place, 200)} now.",
        hint="Nothing was sent. Look at the tab; if it is wanted there too, call again: the person is asked anew.",
        data={"approval": {"decision": answer.decision, "by": answer.by}},
    )


def changed(request: Request, answer: Answer) -> PermissionDenied:
    """The page put another tool in the place of the one the person was shown."""
    return PermissionDenied(
        f"{request.tool} was not run: its page changed it while the person was asked.",
        hint="Nothing was sent. List the tools to see what it is now; a new call asks the person anew.",
        data={"approval": {"decision": answer.decision, "by": answer.by}},
    )


def unanswered(request: Request, seconds: float) -> PermissionDenied:
    """The person said nothing."""
    return PermissionDenied(
        f"{request.tool} was not run: no person answered within {seconds:g} s.",
        hint="Nothing was sent. Ask the person to look at Tabhub's panel or run `tabhub approve`, then call again.",
        data={"approval": {"decision": "none", "by": "timeout"}},
    )
