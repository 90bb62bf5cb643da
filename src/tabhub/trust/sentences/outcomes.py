"""How a call in the audit log ended, in one word, and who let it run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

Outcome = Literal["done", "denied", "failed", "timed out", "cancelled"]
_DECISIONS = {
    "allow_once": "allowed once",
    "allow_session": "allowed for the session",
    "allow_always": "always allowed",
    "deny": "denied",
    "none": "nobody answered",
}
_WHERE = {
    "panel": "in the panel",
    "terminal": "in a terminal",
    "notification": "in a notification",
    "elicitation": "through the agent's client",
}


def outcome(entry: Mapping[str, Any]) -> Outcome:
    """The outcome of an entry of the audit log. Extension: panel/outcomes.js has the same."""
    if entry.get("success") is True:
        return "done"
    error, approval = entry.get("error"), entry.get("approval")
    decision = approval.get("decision") if isinstance(approval, Mapping) else None
    category = error.get("category") if isinstance(error, Mapping) else None
    if decision == "none" or category == "timeout":
        return "timed out"
    if decision == "deny" or category == "permission":
        return "denied"
    return "cancelled" if category == "cancelled" else "failed"


def approved_by(entry: Mapping[str, Any]) -> str:
    """Who let the call run, or did not; empty if nobody was asked."""
    approval = entry.get("approval")
    if not isinstance(approval, Mapping):
        return ""
    decision, by = str(approval.get("decision")), str(approval.get("by", ""))
    shown = _DECISIONS.get(decision, decision)
    return f"{shown} {_WHERE[by]}" if by in _WHERE else shown
