"""`POST /permissions/explain`: which rule decides on a call, for the person's command line."""

from __future__ import annotations

from dataclasses import dataclass

from tabhub.calls.approvals.permission_check import PermissionCheck
from tabhub.core.registry import Registry
from tabhub.http.messages import Request, Response, json_response
from tabhub.limits import Limits
from tabhub.wire.messages import convert
from tabhub.wire.panel import Explain


@dataclass(frozen=True, slots=True)
class PermissionRoutes:
    """What the command line asks about permissions."""

    permission: PermissionCheck
    registry: Registry
    limits: Limits

    async def explain(self, request: Request) -> Response:
        wanted = convert("explain", request.json_object(self.limits), Explain)
        found = self.registry.by_name.get(wanted.tool)
        if found is None:
            raise self.registry.unknown(wanted.tool)
        explanation = self.permission.explain(found.tool, wanted.agent, wanted.url, wanted.frame)
        return json_response({"explanation": explanation})
