"""The measured requests: one tool call, as each of the hub's surfaces accepts it.

Owns their bytes and the session they need, not how they are sent.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bench.extension import MARKER, TABS
from bench.load import NUMBER, Request, post
from bench.servers import TOOL, Server
from bench.servers import post as send

CLIENT = {"name": "bench", "version": "1"}
_META = "io.modelcontextprotocol/"


@dataclass(frozen=True, slots=True)
class Case:
    """One surface of the hub."""

    name: str
    make: Callable[[Server], Request]


def _arguments(tab_id: int) -> dict[str, Any]:
    return {"tabId": tab_id, "code": "return 1"}


def _encode(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _mcp_headers(server: Server, version: str) -> dict[str, str]:
    return {
        "Authorization": f"Bearer {server.token}",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": version,
    }


def _tools_call(params: dict[str, Any]) -> bytes:
    return _encode({"jsonrpc": "2.0", "id": int(NUMBER), "method": "tools/call", "params": params})


def mcp_sessions(server: Server) -> Request:
    """`tools/call` of 2025-11-25, in an initialized session."""
    headers = _mcp_headers(server, "2025-11-25")
    start = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": CLIENT}
    hello = _encode({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": start}).decode()
    status, found, text = send(server.port, "/mcp", hello, headers)
    if status != 200 or "mcp-session-id" not in found:
        raise SystemExit(f"error: initialize was answered with {status} {text}")
    headers["Mcp-Session-Id"] = found["mcp-session-id"]
    ready = _encode({"jsonrpc": "2.0", "method": "notifications/initialized"}).decode()
    status, _, text = send(server.port, "/mcp", ready, headers)
    if status != 202:
        raise SystemExit(f"error: notifications/initialized was answered with {status} {text}")
    body = _tools_call({"name": TOOL, "arguments": _arguments(TABS[0])})
    return Request(post(server.port, "/mcp", body, headers), MARKER, numbered=True, check_number=True)


def mcp_stateless(server: Server) -> Request:
    """`tools/call` of 2026-07-28: without a session, everything in the request."""
    headers = _mcp_headers(server, "2026-07-28") | {"Mcp-Method": "tools/call", "Mcp-Name": TOOL}
    meta = {f"{_META}protocolVersion": "2026-07-28", f"{_META}clientCapabilities": {}, f"{_META}clientInfo": CLIENT}
    body = _tools_call({"name": TOOL, "arguments": _arguments(TABS[1]), "_meta": meta})
    return Request(post(server.port, "/mcp", body, headers), MARKER, numbered=True, check_number=True)


def rest(server: Server) -> Request:
    """`POST /tools/NAME/call`."""
    body = _encode({"arguments": _arguments(TABS[2])})
    headers = {"Authorization": f"Bearer {server.token}"}
    return Request(post(server.port, f"/tools/{TOOL}/call", body, headers), MARKER)


def bare(server: Server) -> Request:
    """The same body as an MCP call, for the limit, which does not parse it."""
    body = _tools_call({"name": TOOL, "arguments": _arguments(TABS[0])})
    return Request(post(server.port, "/", body, {}), MARKER, numbered=True)


LIMIT = Case("limit", bare)
HUB = (Case("/mcp 2025-11-25", mcp_sessions), Case("/mcp 2026-07-28", mcp_stateless), Case("REST", rest))
