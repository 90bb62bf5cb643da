"""The elicitation channel: a request for approval put to the person by the agent's own client.

Owns the form and what its answer means. It offers no "always": the answer comes through the agent's own program, and
what holds for good is decided where no agent is in between.
"""

from __future__ import annotations

import json
import logging
from typing import Any

from tabhub.calls.protocols import Caller
from tabhub.core.descriptions import visible
from tabhub.errors import TabhubError
from tabhub.trust.approvals import Answer
from tabhub.wire.extension_link import ConfirmationRequest
from tabhub.wire.panel import Decision

_OFFERED: dict[Decision, str] = {
    "allow_once": "Allow once",
    "allow_session": "Allow for this session",
    "deny": "Deny",
}
_PARAMS = 2_000
_DIFF = 3_000
_KEY = "approve-"

log = logging.getLogger("tabhub.approvals")

DISMISSED = Answer("deny", "elicitation", "the question was dismissed")


def key_of(request_id: str) -> str:
    return f"{_KEY}{request_id}"


def request_id(key: str) -> str:
    return key.removeprefix(_KEY)


async def ask_client(caller: Caller, request: ConfirmationRequest) -> Answer | None:
    """Ask through the agent's client; a client that cannot ask, or a dismissed question, decides nothing."""
    key = key_of(request.id)
    try:
        answers = await caller.ask(request.tool, {key: question_of(request)})
    except TabhubError as error:
        log.info("the client %s could not ask its person: %s", request.client, error.message)
        return None
    return read(answers[key], request)


def question_of(request: ConfirmationRequest) -> tuple[str, dict[str, Any]]:
    if request.reason == "page":
        return "elicitation/create", {
            "mode": "form",
            "message": request.message,
            "requestedSchema": {"type": "object", "properties": {}},
        }
    params = json.dumps(request.params, ensure_ascii=False, default=str)
    shown = params if len(params) <= _PARAMS else f"{params[:_PARAMS]}… ({len(params)} characters)"
    steps = "\n".join(f"{number}. {step}" for number, step in enumerate(request.steps, 1))
    where = ", ".join(filter(None, (request.title, request.url or request.origin)))
    changed = f"The page has changed. Before, this was: {request.changed}." if request.changed else ""
    why = request.message if request.reason != "permission" else ""
    parts = [f"{request.sentence}.", steps, where, changed, why, f"Details: {request.tool} {shown}"]
    if request.diff:
        parts.append(f"What changed:\n{request.diff[:_DIFF]}")
    offered = _offered(request)
    decision = {
        "type": "string",
        "title": "Decision",
        "enum": offered,
        "enumNames": [_OFFERED[choice] for choice in offered],
    }
    reason = {"type": "string", "title": "Reason (shown to the agent)", "maxLength": 500}
    return "elicitation/create", {
        "mode": "form",
        "message": visible("\n\n".join(part for part in parts if part))[0],
        "requestedSchema": {
            "type": "object",
            "properties": {"decision": decision, "reason": reason},
            "required": ["decision"],
        },
    }


def read(result: dict[str, Any], request: ConfirmationRequest) -> Answer | None:
    """The answer in an elicitation result; None if the question was dismissed."""
    action, content = result.get("action"), result.get("content")
    fields = content if isinstance(content, dict) else {}
    reason = str(fields["reason"]) if isinstance(fields.get("reason"), str) else ""
    if action == "decline":
        return Answer("deny", "elicitation", reason)
    if action != "accept":
        return Answer("deny", "elicitation", "The question was dismissed.") if request.reason == "page" else None
    if request.reason == "page":  # a question without choices: to accept is to confirm
        return Answer("allow_once", "elicitation")
    for choice in _offered(request):
        if fields.get("decision") == choice:
            return Answer(choice, "elicitation", reason)
    return Answer("deny", "elicitation", "the answer held no decision that was offered")


def _offered(request: ConfirmationRequest) -> list[Decision]:
    return [choice for choice in _OFFERED if choice in request.choices]
