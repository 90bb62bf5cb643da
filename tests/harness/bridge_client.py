"""A client of the bridge socket that sends exactly what a test defines, byte by byte if needed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.harness.hub import RunningHub

ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


class BridgeClient:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: str | None) -> None:
        self.reader = reader
        self.writer = writer
        self.token = token
        """The agent's, which every REGISTER carries unless the test gives one."""
        self.session = ""
        self._count = 0

    def raw(self, data: bytes) -> None:
        self.writer.write(data)

    def send(self, kind: str, **fields: Any) -> None:
        agent = {"agentToken": self.token} if kind == "REGISTER" else {}
        self.raw(json.dumps({"type": kind, **agent, **fields}).encode() + b"\n")

    async def receive(self) -> dict[str, Any]:
        """The next line."""
        async with asyncio.timeout(30):
            line = await self.reader.readline()
        assert line.endswith(b"\n"), line
        reply: dict[str, Any] = json.loads(line)
        return reply

    async def closed(self) -> bytes:
        """The bytes that arrive until the hub closes the connection."""
        async with asyncio.timeout(30):
            try:
                return await self.reader.read()
            except ConnectionError:
                return b""

    async def register(self, **fields: Any) -> dict[str, Any]:
        self.send("REGISTER", **fields)
        reply = await self.receive()
        assert reply["type"] == "REGISTER_OK", reply
        self.session = reply["sessionId"]
        return reply

    def ask(self, action: str, params: dict[str, Any] | None = None, **fields: Any) -> str:
        """Send a REQUEST and return its id."""
        self._count += 1
        ident = f"{self.session}:{self._count}"
        self.send("REQUEST", **{"id": ident, "sessionId": self.session, "action": action, "params": params} | fields)
        return ident

    async def request(self, action: str, params: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
        """Send a REQUEST and return its RESPONSE, which must be the next line."""
        ident = self.ask(action, params, **fields)
        reply = await self.receive()
        assert (reply["type"], reply["id"]) == ("RESPONSE", fields.get("id", ident)), reply
        return reply

    async def initialize(self, version: str = "2025-11-25", **capabilities: Any) -> dict[str, Any]:
        info = {"name": "raw", "version": "1"}
        params = {"protocolVersion": version, "capabilities": capabilities, "clientInfo": info}
        reply = await self.request("initialize", params)
        assert reply["success"] is True, reply
        self.send("EVENT", sessionId=self.session, event="notifications/initialized")
        result: dict[str, Any] = reply["data"]
        return result

    async def call(self, name: str, arguments: dict[str, Any] | None = None) -> dict[str, Any]:
        reply = await self.request("tools/call", {"name": name, "arguments": arguments or {}})
        result: dict[str, Any] = reply["data"]
        return result


@asynccontextmanager
async def connected(hub: RunningHub, *, limit: int = 2**24) -> AsyncIterator[BridgeClient]:
    """Connect; leaving the context aborts the connection."""
    reader, writer = await asyncio.open_unix_connection(hub.hub.bridge.path, limit=limit)
    try:
        yield BridgeClient(reader, writer, hub.token)
    finally:
        writer.transport.abort()


@asynccontextmanager
async def registered(hub: RunningHub, **fields: Any) -> AsyncIterator[BridgeClient]:
    """Connect and register."""
    async with connected(hub) as client:
        await client.register(**fields)
        yield client


@asynccontextmanager
async def initialized(hub: RunningHub, **capabilities: Any) -> AsyncIterator[BridgeClient]:
    """Connect, register and initialize in the latest revision with a handshake."""
    async with registered(hub) as client:
        await client.initialize(**capabilities)
        yield client
