"""The question an agent's own client shows its person, and what its answer means.

Owns the form of it in MCP's elicitation. It offers no "always": the answer comes through the agent's own program, and
what holds for good is for the person to say where no agent is in between.
"""

from __future__ import annotations

import json
from typing import Any

from tabhub.core.descriptions import visible
from tabhub.trust.approvals import Answer, Decision, Request

_OFFERED: dict[Decision, str] = {
    "allow_once": "Allow once",
    "allow_session": "Allow for this session",
    "deny": "Deny",
}
_PARAMS = 2_000
_DIFF = 3_000
_KEY = "approve-"


def key_of(ident: str) -> str:
    """The key of a request's question."""
    return f"{_KEY}{ident}"


def question_of(request: Request) -> tuple[str, dict[str, Any]]:
    """The method and params of the question."""
    if request.why == "page":
        return "elicitation/create", {
            "mode": "form",
            "message": request.words,
            "requestedSchema": {"type": "object", "properties": {}},
        }
    where = f" in tab {request.tab_id} ({request.url or request.title})" if request.tab_id is not None else ""
    params = json.dumps(request.params, ensure_ascii=False, default=str)
    shown = params if len(params) <= _PARAMS else f"{params[:_PARAMS]}… ({len(params)} characters)"
    parts = [f"{request.client} wants to run {request.tool}{where}.", request.words, f"Parameters: {shown}"]
    if request.diff:
        parts.append(f"What changed:\n{request.diff[:_DIFF]}")
    offered = _offered(request)
    decision = {
        "type": "string",
        "title": "Decision",
        "enum": offered,
        "enumNames": [_OFFERED[choice] for choice in offered],
    }
    reason = {"type": "string", "title": "Reason (told to the agent)", "maxLength": 500}
    return "elicitation/create", {
        "mode": "form",
        "message": visible("\n\n".join(part for part in parts if part))[0],
        "requestedSchema": {
            "type": "object",
            "properties": {"decision": decision, "reason": reason},
            "required": ["decision"],
        },
    }


def read(result: dict[str, Any], request: Request) -> Answer | None:
    """What the client's person answered; None if they dismissed the question."""
    action, content = result.get("action"), result.get("content")
    said = content if isinstance(content, dict) else {}
    reason = str(said["reason"]) if isinstance(said.get("reason"), str) else ""
    if action == "decline":
        return Answer("deny", "elicitation", reason)
    if action != "accept":
        return Answer("deny", "elicitation", "The question was dismissed.") if request.why == "page" else None
    if request.why == "page":  # a question without choices: to accept is to confirm
        return Answer("allow_once", "elicitation")
    for choice in _offered(request):
        if said.get("decision") == choice:
            return Answer(choice, "elicitation", reason)
    return Answer("deny", "elicitation", "the answer held no decision that was offered")


def _offered(request: Request) -> list[Decision]:
    return [choice for choice in _OFFERED if choice in request.choices]
