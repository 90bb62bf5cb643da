"""The hub's HTTP routes: what each path serves, and to whom. http.guard admits the requests."""

from __future__ import annotations

from collections.abc import Mapping

from tabhub.http.guard import Endpoint
from tabhub.http.messages import Route
from tabhub.mcp.rest import Rest
from tabhub.server.admin_routes import Admin
from tabhub.server.approval_routes import ApprovalRoutes
from tabhub.server.permission_routes import PermissionRoutes
from tabhub.server.session_routes import SessionRoutes
from tabhub.server.upstream_routes import UpstreamRoutes


def make_routes(
    mcp: Mapping[str, Route],
    *,
    rest: Rest,
    admin: Admin,
    sessions: SessionRoutes,
    approvals: ApprovalRoutes,
    permissions: PermissionRoutes,
    upstream: UpstreamRoutes,
) -> dict[str, Endpoint]:
    """`mcp` are the MCP endpoints by path."""
    return {
        **{path: Endpoint({"*": route}, "agents") for path, route in mcp.items()},
        "/tools": Endpoint({"GET": rest.list_tools}, "agents"),
        "/tools/*/call": Endpoint({"POST": rest.call_tool}, "agents"),
        "/tools/*": Endpoint({}, "agents"),
        "/health": Endpoint({"GET": admin.get_health}, "anyone"),
        "/ws-info": Endpoint({"GET": admin.ws_info}),
        "/audit": Endpoint({"GET": admin.audit}),
        "/metrics": Endpoint({"GET": admin.metrics}, "metrics"),
        "/reload": Endpoint({"POST": admin.post_reload}),
        "/extension/reload": Endpoint({"POST": admin.reload_extension}),
        "/plugin-settings": Endpoint({"POST": admin.plugin_settings}),
        "/sessions": Endpoint({"GET": sessions.all}),
        "/sessions/*/end": Endpoint({"POST": sessions.act}),
        "/sessions/*/release": Endpoint({"POST": sessions.act}),
        "/pause": Endpoint({"POST": sessions.pause}),
        "/resume": Endpoint({"POST": sessions.resume}),
        "/approvals": Endpoint({"GET": approvals.all}),
        "/approvals/*": Endpoint({"POST": approvals.answer}),
        "/permissions/explain": Endpoint({"POST": permissions.explain}),
        **upstream.endpoints(),
    }
