"""Clients for measuring a relay: browsers and agents that connect, and then send nothing unless asked.

Owns frames on raw sockets. The clients that produce load are in relay_load.c.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

_MASK = b"\x00\x00\x00\x00"
"""Masking with zeros leaves the payload unchanged."""


def frame(data: bytes) -> bytes:
    if len(data) < 126:
        return bytes((0x81, 0x80 | len(data))) + _MASK + data
    return b"\x81\xfe" + len(data).to_bytes(2, "big") + _MASK + data


class Wire(asyncio.Protocol):
    """One WebSocket: passes complete messages to `on_message`."""

    def __init__(self, path: str, port: int) -> None:
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.on_message: Callable[[bytes], None] = lambda _: None
        self._path, self._port = path, port
        self._buffer = b""
        self._upgraded = False
        self.transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.transport.write(
            f"GET {self._path} HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\nUpgrade: websocket\r\n"
            "Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
            "Sec-WebSocket-Version: 13\r\n\r\n".encode()
        )

    def data_received(self, data: bytes) -> None:
        data = self._buffer + data if self._buffer else data
        if not self._upgraded:
            head, end, data = data.partition(b"\r\n\r\n")
            if not end:
                self._buffer = head
                return
            self._upgraded = True
            self.opened.set_result(None)
        at, size = 0, len(data)
        while size - at >= 2:
            length, head_size = data[at + 1], 2
            if length == 126:
                if size - at < 4:
                    break
                length, head_size = int.from_bytes(data[at + 2 : at + 4], "big"), 4
            stop = at + head_size + length
            if stop > size:
                break
            if data[at] == 0x89:  # a ping
                self.transport.write(b"\x8a" + bytes((0x80 | length,)) + _MASK + data[at + head_size : stop])
            else:
                self.on_message(data[at + head_size : stop])
            at = stop
        self._buffer = data[at:]

    def send(self, data: bytes) -> None:
        self.transport.write(frame(data))

    async def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        """Send a request and wait for its answer."""
        got: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()

        def take(data: bytes) -> None:
            answer = json.loads(data)
            if answer.get("id") == message["id"] and not got.done():
                got.set_result(answer)

        self.on_message = take
        self.send(json.dumps({"jsonrpc": "2.0", **message}).encode())
        return await got


async def opened(path: str, port: int) -> Wire:
    """A WebSocket to a path on this machine."""
    loop = asyncio.get_running_loop()
    _, wire = await loop.create_connection(lambda: Wire(path, port), "127.0.0.1", port)
    await wire.opened
    return wire


async def browser(port: int, token: str, instance: str) -> Wire:
    """An authenticated browser that answers every request with a small result."""
    wire = await opened("/extension", port)
    admitted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    answer = {"name": "Bench", "accessToken": token, "instanceId": instance}

    def take(data: bytes) -> None:
        start = data.find(b'"id":"') + 6
        if start < 6:
            if not admitted.done() and b'"authenticated"' in data:
                admitted.set_result(None)
            return
        ident = data[start : data.index(b'"', start)]
        if ident.startswith(b"proxy:"):
            wire.send(json.dumps({"jsonrpc": "2.0", "id": ident.decode(), "result": answer}).encode())
        else:
            wire.send(b'{"jsonrpc":"2.0","id":"%b","result":{"tabId":42,"url":"https://example.com/"}}' % ident)

    wire.on_message = take
    # The question may arrive together with the answer to the upgrade, before the handler is set.
    wire.send(json.dumps({"jsonrpc": "2.0", "id": "proxy:1", "result": answer}).encode())
    await admitted
    return wire


async def agent(port: int, token: str) -> Wire:
    """An authenticated agent, connected to its user's first browser."""
    wire = await opened("/mcp", port)
    await wire.ask({"id": 1, "method": "mcp_handshake", "params": {"accessToken": token}})
    listed = await wire.ask({"id": 2, "method": "list_extensions", "params": {}})
    first = listed["result"]["extensions"][0]["id"]
    await wire.ask({"id": 3, "method": "connect", "params": {"extension_id": first}})
    return wire
