"""Raw MCP over HTTP in both eras, for tests that must see the bytes."""

from __future__ import annotations

import itertools
from typing import Any

import httpx2

from tests.harness.hub import RunningHub

ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
_ids = itertools.count(1)


def message(method: str, params: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": next(_ids), "method": method, "params": params or {}, **more}


def stateless(method: str, params: dict[str, Any] | None = None, **meta: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """A request of 2026-07-28: its body and its headers."""
    envelope = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
        **meta,
    }
    body = message(method, {**(params or {}), "_meta": envelope})
    headers = {**ACCEPT, "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method}
    if params and "name" in params:
        headers["Mcp-Name"] = params["name"]
    return body, headers


class Agent:
    """A client of the handshake era."""

    def __init__(self, hub: RunningHub, path: str = "/mcp", version: str = "2025-11-25") -> None:
        self.http = httpx2.AsyncClient(base_url=hub.url, headers=hub.bearer, timeout=30)
        self.path = path
        self.version = version
        self.headers: dict[str, str] = dict(ACCEPT)

    async def __aenter__(self) -> Agent:
        params = {"protocolVersion": self.version, "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
        answer = await self.http.post(self.path, json=message("initialize", params), headers=ACCEPT)
        assert answer.status_code == 200, answer.text
        self.headers |= {"Mcp-Session-Id": answer.headers["mcp-session-id"], "MCP-Protocol-Version": self.version}
        await self.http.post(
            self.path, json={"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=self.headers
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.http.aclose()

    async def post(self, body: Any, **headers: str) -> httpx2.Response:
        if isinstance(body, bytes | str):
            return await self.http.post(self.path, content=body, headers=self.headers | headers)
        return await self.http.post(self.path, json=body, headers=self.headers | headers)

    async def request(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        answer: dict[str, Any] = (await self.post(message(method, params))).json()
        return answer

    async def call(self, name: str, arguments: dict[str, Any] | None = None) -> dict[str, Any]:
        return await self.request("tools/call", {"name": name, "arguments": arguments or {}})
