"""Raw MCP over HTTP in both eras, for tests that check the bytes."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Self

import httpx2

from tests.harness.hub import Address

ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
PROGRAM = "/mcp?tools=all,structured"
"""The endpoint for programs: all tools in full, and answers as data."""
_ids = itertools.count(1)


def message(method: str, params: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": next(_ids), "method": method, "params": params or {}, **more}


def stateless(method: str, params: dict[str, Any] | None = None, **meta: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """A request of 2026-07-28: its body and headers."""
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


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a stream; `message` is None for one that only carries an id."""

    id: str | None
    message: dict[str, Any] | None


class Events:
    """An open event stream."""

    def __init__(self, response: httpx2.Response) -> None:
        self.response = response
        self._lines = response.aiter_lines()

    async def next(self) -> Event | None:
        """The next event, or None at the end of the stream."""
        ident, data = None, None
        async with asyncio.timeout(30):
            async for line in self._lines:
                if line.startswith("id: "):
                    ident = line[4:]
                elif line.startswith("data:"):
                    data = line[5:].strip()
                elif not line and data is not None:
                    return Event(ident, json.loads(data) if data else None)
        return None

    async def message(self) -> dict[str, Any]:
        """The next event that carries a message."""
        while (event := await self.next()) is not None:
            if event.message is not None:
                return event.message
        raise AssertionError("the stream ended without a further message")

    async def rest(self) -> list[Event]:
        """All events until the end."""
        found = []
        while (event := await self.next()) is not None:
            found.append(event)
        return found


def client(hub: Address, **headers: str) -> httpx2.AsyncClient:
    """An HTTP client of an agent; routes for the person get the person's key instead, if it is known."""

    def authorize(request: httpx2.Request) -> httpx2.Request:
        path = request.url.path
        who = hub if not hub.person_key or path.startswith(("/mcp", "/tools")) else hub.person
        for name, value in who.bearer.items():
            request.headers.setdefault(name, value)
        return request

    # Everything here is plain HTTP: loading certificates for each client would take 30 ms of CPU time.
    return httpx2.AsyncClient(verify=False, base_url=hub.url, headers=headers, auth=authorize, timeout=30)


def answer_in(response: httpx2.Response) -> dict[str, Any]:
    """The answer to a request: the body, or the last event of a stream."""
    text = response.text
    if response.headers.get("content-type", "").startswith("text/event-stream"):
        text = [line[5:] for line in text.splitlines() if line.startswith("data:") and line[5:].strip()][-1]
    answer: dict[str, Any] = json.loads(text)
    return answer


@asynccontextmanager
async def streamed(http: httpx2.AsyncClient, method: str, path: str, **more: Any) -> AsyncIterator[Events]:
    """Send a request and read its answer as a stream of events; leaving the context closes the connection."""
    async with http.stream(method, path, **more) as response:
        if response.status_code != 200:
            raise AssertionError(f"{response.status_code} {(await response.aread()).decode()}")
        yield Events(response)


class Agent:
    """A client of the handshake era."""

    def __init__(
        self,
        hub: Address,
        path: str = PROGRAM,
        version: str = "2025-11-25",
        capabilities: dict[str, Any] | None = None,
    ) -> None:
        self.http = client(hub)
        self.path = path
        self.version = version
        self.capabilities = capabilities or {}
        self.headers: dict[str, str] = dict(ACCEPT)

    async def __aenter__(self) -> Self:
        params = {
            "protocolVersion": self.version,
            "capabilities": self.capabilities,
            "clientInfo": {"name": "raw", "version": "1"},
        }
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
        return answer_in(await self.post(message(method, params)))

    async def call(self, name: str, arguments: dict[str, Any] | None = None) -> dict[str, Any]:
        return await self.request("tools/call", {"name": name, "arguments": arguments or {}})

    def streamed(self, method: str, params: dict[str, Any] | None = None) -> Any:
        """POST a request and read its answer as a stream."""
        return streamed(self.http, "POST", self.path, json=message(method, params), headers=self.headers)

    def listening(self, last: str | None = None) -> Any:
        """GET the session's own stream, or resume the one that ended at an event."""
        headers = self.headers | {"Accept": "text/event-stream"} | ({"Last-Event-ID": last} if last else {})
        return streamed(self.http, "GET", self.path, headers=headers)

    async def notify(self, method: str, params: dict[str, Any]) -> None:
        answer = await self.post({"jsonrpc": "2.0", "method": method, "params": params})
        assert answer.status_code == 202, answer.text
