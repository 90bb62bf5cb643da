"""Every surface that accepts JSON over HTTP, so that each invalid input is tried on all of them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

import httpx2

from tests.harness.agent import ACCEPT, message
from tests.harness.hub import Address
from tests.harness.raw import Header

Kind = Literal["handshake", "stateless", "rest", "settings"]
_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


@dataclass(frozen=True, slots=True)
class Surface:
    """One surface."""

    name: str
    path: str
    kind: Kind

    def __str__(self) -> str:
        return self.name

    @property
    def speaks_jsonrpc(self) -> bool:
        return self.kind in ("handshake", "stateless")

    async def headers(self, hub: Address) -> list[Header]:
        """The headers of a valid request; a session is opened where one is needed."""
        who = hub.person if self.kind == "settings" else hub
        headers = [("Host", f"127.0.0.1:{hub.port}"), *who.bearer.items(), *ACCEPT.items()]
        if self.kind == "handshake":
            params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bad"}}
            async with httpx2.AsyncClient(verify=False, base_url=hub.url) as http:
                opened = await http.post(self.path, json=message("initialize", params), headers=dict(headers))
            headers.append(("Mcp-Session-Id", opened.headers["mcp-session-id"]))
        elif self.kind == "stateless":
            name = "tabhub_call" if self.path == "/mcp/gateway" else "probe_echo"
            headers += [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call"), ("Mcp-Name", name)]
        return headers

    def body(self, value: str) -> bytes:
        """A valid request around `value`, which is inserted unchanged."""
        if self.kind == "rest":
            return f'{{"arguments":{{"value":{value}}}}}'.encode("utf-8", "surrogatepass")
        if self.kind == "settings":
            return f'{{"plugin":"none","settings":{{"value":{value}}}}}'.encode("utf-8", "surrogatepass")
        params: dict[str, Any] = {"name": "probe_echo", "arguments": {"value": "@"}}
        if self.path == "/mcp/gateway":
            params = {"name": "tabhub_call", "arguments": {"name": "probe_echo", "arguments": {"value": "@"}}}
        if self.kind == "stateless":
            params["_meta"] = _META
        text = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        return text.replace('"@"', value).encode("utf-8", "surrogatepass")

    def accepted(self, status: int, body: bytes) -> bool:
        """Whether an answer is that to a valid request: the echo, or that there is no such plugin."""
        if self.kind == "settings":
            return status == 404 and b"no plugin" in body
        return status == 200 and b'"structuredContent"' in body


SURFACES = [
    Surface("mcp-2025", "/mcp", "handshake"),
    Surface("mcp-2026", "/mcp", "stateless"),
    Surface("gateway-2025", "/mcp/gateway", "handshake"),
    Surface("gateway-2026", "/mcp/gateway", "stateless"),
    Surface("rest", "/tools/probe_echo/call", "rest"),
    Surface("plugin-settings", "/plugin-settings", "settings"),
]
