"""The terminal's way to approve: two routes, and the key without which they answer nobody.

Owns the key, made anew at each start and readable by this user alone, and what the routes take. The hub's secret, which
agents may have, is not enough here, and an agent's token even less; no tool reads the key. A program that runs as the
person can read their files: docs/security.md says so.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from tabhub.errors import ApprovalNotFound, Forbidden, InvalidParams
from tabhub.http.messages import Request, Response, json_response
from tabhub.platform.files import write_atomic
from tabhub.store.home import Home
from tabhub.trust.approvals import DECISIONS, Decision
from tabhub.trust.tokens import same_token

if TYPE_CHECKING:
    from tabhub.server.hub import Hub

HEADER = b"tabhub-approver"
_REASON = 500


class ApproverKey:
    """What opens the routes."""

    def __init__(self, home: Home) -> None:
        self._path = home.root / "run" / "approver.key"
        self._key = os.urandom(32).hex()

    def publish(self) -> None:
        """Write the key where the person's terminal finds it."""
        self._path.parent.mkdir(mode=0o700, exist_ok=True)
        write_atomic(self._path, self._key)

    def withdraw(self) -> None:
        """The hub is going."""
        self._path.unlink(missing_ok=True)

    def fits(self, key: bytes) -> bool:
        """Whether somebody has the key, in a time that tells nothing of it."""
        return same_token(key, self._key.encode())


class ApprovalRoutes:
    """`GET /approvals` and `POST /approvals/<id>`."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    async def all(self, request: Request) -> Response:
        """What waits for a person."""
        self._require(request)
        return json_response({"approvals": self._hub.trust.approvals.pending(), "time": self._now()})

    async def answer(self, request: Request) -> Response:
        """`{"decision", "reason"?}`: a person decided."""
        self._require(request)
        ident = request.path.removeprefix("/approvals/")
        decision, reason = read_decision(request.json_object(self._hub.engine.limits))
        if not self._hub.trust.approvals.answer(ident, decision, "terminal", reason):
            raise ApprovalNotFound(
                f"No request {ident[:60]!r} waits for that answer.",
                hint="It was answered elsewhere, has ended, or does not offer this decision.",
            )
        return json_response({"ok": True, "id": ident, "decision": decision})

    def _now(self) -> int:
        return round(self._hub.engine.wall() * 1000)

    def _require(self, request: Request) -> None:
        given = [value for name, value in request.raw_headers if name == HEADER]
        if len(given) != 1 or not self._hub.trust.key.fits(given[0]):
            raise Forbidden(
                "Approvals are the person's: this address wants the approver's key.",
                hint="Use the panel, or `tabhub approve` in a terminal.",
            )


def read_decision(body: Any) -> tuple[Decision, str]:
    """A decision and its reason, as panel and terminal send them."""
    decision = body.get("decision") if isinstance(body, dict) else None
    for known in DECISIONS:
        if decision == known:
            reason = body.get("reason") or ""
            if not isinstance(reason, str) or len(reason) > _REASON:
                raise InvalidParams(f"`reason` must be a text of at most {_REASON} characters.")
            return known, reason
    raise InvalidParams(f"`decision` must be one of {', '.join(DECISIONS)}.")
