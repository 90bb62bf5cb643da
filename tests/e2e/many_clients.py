"""Clients of every kind at the same time: MCP over HTTP in both eras, stdio, REST and the command line."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol, Self

import httpx2
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.types import Implementation, TextContent

from tests.e2e.live import LiveHub
from tests.harness.agent import client as http_client
from tests.harness.hub import AGENT

KINDS = ("http-2025", "http-2026", "stdio-2025", "stdio-2026", "rest", "cli")
_MODES = {"2025": "legacy", "2026": "2026-07-28"}
_NO_HANDLE = ("browser_get_connection_status", "browser_list_tabs")


@dataclass(frozen=True, slots=True)
class Reply:
    """The result of a call, whatever the transport."""

    ok: bool
    data: dict[str, Any]
    text: str
    handle: str | None = None


class Transport(Protocol):
    """How one kind of client calls a tool."""

    async def call(self, name: str, arguments: dict[str, Any]) -> Reply: ...


class McpTransport:
    """The official client, on any transport."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def call(self, name: str, arguments: dict[str, Any]) -> Reply:
        result = await self._client.call_tool(name, arguments)
        text = "\n".join(part.text for part in result.content if isinstance(part, TextContent))
        handle = (result.meta or {}).get("tabhub/session")
        return Reply(not result.is_error, dict(result.structured_content or {}), text, handle)


class RestTransport:
    """HTTP requests under a session's name."""

    def __init__(self, http: httpx2.AsyncClient) -> None:
        self._http = http

    async def call(self, name: str, arguments: dict[str, Any]) -> Reply:
        return _read((await self._http.post(f"/tools/{name}/call", json={"arguments": arguments})).json())


class CliTransport:
    """`tabhub tool call --session`, a process for every call."""

    def __init__(self, hub: LiveHub, session: str) -> None:
        self._hub = hub
        self._session = session

    async def call(self, name: str, arguments: dict[str, Any]) -> Reply:
        argv = ("tool", "call", name, json.dumps(arguments), "--json", "--session", self._session)
        done = await asyncio.to_thread(self._hub.tabhub, *argv)
        assert done.stdout, done.stderr
        reply = _read(json.loads(done.stdout))
        assert (done.returncode == 0) is reply.ok
        return reply


def _read(answer: dict[str, Any]) -> Reply:
    text = "\n".join(part.get("text", "") for part in answer["content"])
    return Reply(not answer.get("isError"), answer.get("structuredContent") or {}, text)


class ToolClient:
    """One of many clients."""

    def __init__(self, hub: LiveHub, kind: str, number: int) -> None:
        self.hub = hub
        self.kind = kind
        self.name = f"{kind}-{number}"
        self.handle: str | None = None
        """The stateless client's session."""
        self._transport: Transport | None = None
        self._open: AbstractAsyncContextManager[Any] | None = None

    async def begin(self) -> None:
        """Connect."""
        transport, _, era = self.kind.partition("-")
        info = Implementation(name=self.name, version="1")
        if transport == "cli":
            self._transport = CliTransport(self.hub, self.name)
            return
        if transport == "rest":
            self._open = http_client(self.hub, **{"Tabhub-Session": self.name})
            self._transport = RestTransport(await self._open.__aenter__())
            return
        if transport == "http":
            self._open = self.hub.mcp(_MODES[era], client_info=info)
        else:
            argv = ["-m", "tabhub", "start", "--stdio", "--as", AGENT, "--tools", "all,structured"]
            server = StdioServerParameters(command=sys.executable, args=argv, env=self.hub.env)
            self._open = Client(stdio_client(server), mode=_MODES[era], client_info=info)
        self._transport = McpTransport(await self._open.__aenter__())

    async def end(self) -> None:
        """Disconnect as this kind of client does: MCP clients end their session, the others' sessions are ended by the
        person."""
        session = None if self.kind in ("http-2025", "stdio-2025", "stdio-2026") else await self.session()
        if self._open is not None:
            await self._open.__aexit__(None, None, None)
        if session is None:
            return
        if self.kind == "cli":
            done = await asyncio.to_thread(self.hub.tabhub, "sessions", "end", session["session"])
            assert done.returncode == 0, done.stderr
            return
        async with http_client(self.hub) as http:
            ended = await http.post(f"/sessions/{session['session']}/end")
            assert ended.is_success, ended.text

    async def reply(self, tool: str, /, **arguments: Any) -> Reply:
        """Call a tool; a stateless client passes on the session handle it was given."""
        assert self._transport is not None
        if self.handle is not None and tool not in _NO_HANDLE:
            arguments["session"] = self.handle
        reply = await self._transport.call(tool, arguments)
        if reply.handle is not None:
            self.handle = reply.handle
        return reply

    async def get(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """Call a tool that must succeed."""
        reply = await self.reply(tool, **arguments)
        assert reply.ok, (self.name, reply.text)
        return reply.data

    async def run(self, code: str, **more: Any) -> Any:
        """Run a script that must succeed."""
        return (await self.get("browser_execute_script", code=code, **more))["value"]

    async def refused(self, tool: str, /, **arguments: Any) -> str:
        """Call a tool that must fail, and return the reason."""
        reply = await self.reply(tool, **arguments)
        assert not reply.ok, (self.name, reply.data)
        return reply.text

    async def session(self) -> dict[str, Any] | None:
        """The hub's description of this client's own session."""
        sessions = (await self.get("browser_list_sessions"))["sessions"]
        found: dict[str, Any] | None = sessions[0] if sessions else None
        return found


class ManyClients:
    """Clients in the order they connected; they disconnect in reverse order."""

    def __init__(self, hub: LiveHub, kinds: Sequence[str]) -> None:
        self.all = [ToolClient(hub, kind, number) for number, kind in enumerate(kinds)]
        self.here: list[ToolClient] = []

    async def __aenter__(self) -> Self:
        for client in self.all:
            await client.begin()
            self.here.append(client)
        return self

    async def __aexit__(self, *_: object) -> None:
        while self.here:
            await self.leave()

    async def leave(self) -> ToolClient:
        """Disconnect the client that connected last."""
        client = self.here.pop()
        await client.end()
        return client
