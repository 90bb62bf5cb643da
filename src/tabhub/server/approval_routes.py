"""The command line's approvals."""

from __future__ import annotations

from dataclasses import dataclass

from tabhub.calls.approvals.inbox import ApprovalInbox
from tabhub.calls.engine import Engine
from tabhub.errors import NotFound
from tabhub.http.messages import Request, Response, json_response
from tabhub.wire.messages import convert
from tabhub.wire.panel import ApprovalDecision


@dataclass(frozen=True, slots=True)
class ApprovalRoutes:
    """`GET /approvals` and `POST /approvals/<id>`."""

    inbox: ApprovalInbox
    engine: Engine

    async def all(self, request: Request) -> Response:
        return json_response({"approvals": self.inbox.pending(), "time": round(self.engine.wall() * 1000)})

    async def answer(self, request: Request) -> Response:
        """`{"decision", "reason"?}`: the person's decision."""
        ident = request.path.removeprefix("/approvals/")
        body = convert("decision", request.json_object(self.engine.limits), ApprovalDecision)
        if not self.inbox.answer(ident, body.decision, "terminal", body.reason, body.wider):
            raise NotFound(
                f"No request {ident[:60]!r} waits for that answer.",
                hint="It was answered elsewhere, has ended, or does not offer this decision.",
            )
        return json_response({"ok": True, "id": ident, "decision": body.decision})
