"""Many agents and browsers in one process, lightweight enough that the hub remains the bottleneck.

Owns the bytes of both: MCP over one persistent connection per agent, a WebSocket per browser. Every script returns its
own tab and text, so that an answer that reached another agent, or came from another tab, is detected.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
from typing import Any, Self

import orjson
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

from tests.harness.fake_extension import tab

_VERSION = "2025-11-25"
_PATIENCE = 60.0
"""Seconds after which an answer counts as lost; the hub ends every call after half of that."""


class Agent:
    """One MCP client of the handshake era."""

    def __init__(self, port: int, token: str) -> None:
        self._port = port
        self._base = (
            f"Host: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n"
            "Accept: application/json, text/event-stream\r\n"
        )
        self._session = ""
        self._ids = itertools.count(1)
        self._listening = False
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def __aenter__(self) -> Self:
        await self._connect()
        info = {"name": "crowd", "version": "1"}
        params = {"protocolVersion": _VERSION, "capabilities": {}, "clientInfo": info}
        await self.request("initialize", params)
        await self._send("POST", {"jsonrpc": "2.0", "method": "notifications/initialized"})
        await self._answer()
        return self

    async def __aexit__(self, trouble: object, *_: object) -> None:
        if trouble is None and self._session:
            await self.end()
        self.cut()

    async def _connect(self) -> None:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)

    def cut(self) -> None:
        """Abort the connection without closing the session."""
        if self._writer is not None:
            self._writer.transport.abort()

    async def listen(self) -> None:
        """Open the session's stream on this connection, and then send nothing."""
        assert self._reader is not None
        await self._send("GET")
        self._listening = True
        head = await self._reader.readuntil(b"\r\n\r\n")
        assert b" 200 " in head.split(b"\r\n")[0], head

    async def end(self) -> None:
        """End the session, on a new connection if the old one is closed or is a stream."""
        if self._listening:
            self.cut()
        if self._writer is None or self._writer.transport.is_closing():
            await self._connect()
        await self._send("DELETE")
        await self._answer()
        self._session = ""

    async def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """The result of a request; raises if the answer belongs to another one."""
        number = next(self._ids)
        await self._send("POST", {"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        async with asyncio.timeout(_PATIENCE):
            answer = orjson.loads(await self._answer())
        if answer.get("id") != number:
            raise CrossedError(f"{method} {number} was answered with {answer}")
        result: dict[str, Any] = answer["result"]
        return result

    async def call(self, name: str, arguments: dict[str, Any]) -> str:
        """The text of a call that must succeed, which is what agents get."""
        result = await self.request("tools/call", {"name": name, "arguments": arguments})
        text: str = result["content"][0]["text"]
        if result.get("isError"):
            raise AssertionError(text)
        return text

    async def echo(self, tab_id: int, text: str) -> None:
        """Run a script in a tab; checks that the answer belongs to that tab and this call."""
        answer = await self.call("browser_execute_script", {"tabId": tab_id, "code": f"return '{text}'"})
        value = orjson.loads(answer)["value"]
        if value != f"{tab_id}:{text}":
            raise CrossedError(f"tab {tab_id}, {text}: the answer was {value}")

    async def _send(self, method: str, body: dict[str, Any] | None = None) -> None:
        assert self._writer is not None
        data = b"" if body is None else orjson.dumps(body)
        head = f"{method} /mcp HTTP/1.1\r\n{self._base}{self._session}Content-Length: {len(data)}\r\n\r\n"
        self._writer.write(head.encode() + data)
        await self._writer.drain()

    async def _answer(self) -> bytes:
        assert self._reader is not None
        head = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        status = head.split(b" ", 2)[1]
        _, found, rest = head.partition(b"content-length:")
        body = await self._reader.readexactly(int(rest.split(b"\r\n", 1)[0])) if found else b""
        if not status.startswith(b"2"):
            raise AssertionError(f"{status.decode()} {body.decode()}")
        if not self._session and b"\r\nmcp-session-id:" in head:
            ident = head.partition(b"mcp-session-id:")[2].split(b"\r\n", 1)[0].strip().decode()
            self._session = f"Mcp-Session-Id: {ident}\r\nMCP-Protocol-Version: {_VERSION}\r\n"
        return body


class CrossedError(AssertionError):
    """An answer belongs to another call."""


class Browser:
    """One browser with several tabs."""

    def __init__(self, port: int, key: str, name: str, tabs: range) -> None:
        self._url = f"ws://127.0.0.1:{port}/ws"
        self._protocols = [Subprotocol(word) for word in ("tabhub", key, name)]
        self._name = name
        self._tabs = tabs
        self._socket: ClientConnection | None = None
        self._reader: asyncio.Task[None] | None = None
        self._taken = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._socket = await connect(self._url, subprotocols=self._protocols, max_size=None, ping_interval=None)
        await self._notify("extension.hello", {"browserId": self._name, "browserName": "Crowd"})
        tabs = [tab(number, f"https://site{number}.example/") for number in self._tabs]
        await self._notify("tab.syncAll", {"tabs": tabs, "plugins": {}, "debugger": {"attached": []}})
        await self._notify("ping", {})
        self._reader = asyncio.create_task(self._read(self._socket))
        async with asyncio.timeout(30):
            await self._taken.wait()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._socket is not None:
            await self._socket.close()
        if self._reader is not None:
            await self._reader

    def cut(self) -> None:
        """Abort the connection."""
        assert self._socket is not None
        self._socket.transport.abort()

    async def _notify(self, method: str, params: dict[str, Any]) -> None:
        assert self._socket is not None
        await self._socket.send(orjson.dumps({"jsonrpc": "2.0", "method": method, "params": params}).decode())

    async def _read(self, socket: ClientConnection) -> None:
        with contextlib.suppress(ConnectionClosed):
            async for text in socket:
                message = orjson.loads(text)
                method = message.get("method")
                if method == "pong":
                    self._taken.set()
                elif method == "ping":
                    await self._notify("pong", {})
                elif method is not None and "id" in message:
                    result = _answer(method, message.get("params", {}))
                    await socket.send(orjson.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).decode())


def _answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    if method != "forwardCDPCommand" or params["method"] != "Runtime.evaluate":
        return {}
    text = params["params"]["expression"].split("return '", 1)[1].split("'", 1)[0]
    return {"result": {"type": "string", "value": f"{params['tabId']}:{text}"}}


async def over_bridge(socket: str, token: str) -> None:
    """A client of the bridge socket that registers, makes one request and disconnects."""
    reader, writer = await asyncio.open_unix_connection(socket)
    for line in ({"type": "REGISTER", "agentToken": token}, {"type": "PING", "id": "p"}, {"type": "DISCONNECT"}):
        writer.write(json.dumps(line).encode() + b"\n")
    async with asyncio.timeout(10):
        reply = await reader.readline() + await reader.readline()
    assert b"REGISTER_OK" in reply, reply
    writer.close()
    await writer.wait_closed()
