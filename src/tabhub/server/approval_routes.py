"""The terminal's way to approve: two routes that need the approver's key."""

from __future__ import annotations

from collections.abc import Callable

from tabhub.calls.approvals.inbox import ApprovalInbox
from tabhub.errors import ApprovalNotFound
from tabhub.http.messages import Request, Response, json_response
from tabhub.limits import Limits
from tabhub.server.access import ApproverKey
from tabhub.wire.messages import convert
from tabhub.wire.panel import ApprovalDecision


class ApprovalRoutes:
    """`GET /approvals` and `POST /approvals/<id>`."""

    def __init__(self, inbox: ApprovalInbox, key: ApproverKey, limits: Limits, wall: Callable[[], float]) -> None:
        self._inbox = inbox
        self._key = key
        self._limits = limits
        self._wall = wall

    async def all(self, request: Request) -> Response:
        """What waits for a person."""
        self._require(request)
        return json_response({"approvals": self._inbox.pending(), "time": round(self._wall() * 1000)})

    async def answer(self, request: Request) -> Response:
        """`{"decision", "reason"?}`: a person decided."""
        self._require(request)
        ident = request.path.removeprefix("/approvals/")
        body = convert("decision", request.json_object(self._limits), ApprovalDecision)
        if not self._inbox.answer(ident, body.decision, "terminal", body.reason):
            raise ApprovalNotFound(
                f"No request {ident[:60]!r} waits for that answer.",
                hint="It was answered elsewhere, has ended, or does not offer this decision.",
            )
        return json_response({"ok": True, "id": ident, "decision": body.decision})

    def _require(self, request: Request) -> None:
        self._key.require(
            request,
            "Approvals are the person's: this address needs the approver's key.",
            "Use the panel, or `tabhub approve` in a terminal.",
        )
