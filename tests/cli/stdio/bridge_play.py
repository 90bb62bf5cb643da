"""A bridge whose client and hub are both simulated by the test."""

from __future__ import annotations

import json
from typing import Any

from tabhub.cli.stdio.bridge import Bridge

VERSION = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
SESSION = "ab" * 16
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "me"}}


class Play:
    """The bridge, and what it wrote to either side."""

    def __init__(self, surface: str = "all", tools: str | None = None) -> None:
        self.now = 100.0
        self._to_client: list[bytes] = []
        self._to_hub: list[bytes] = []
        self.bridge = Bridge(self._to_client.append, surface=surface, tools=tools)

    @property
    def to_client(self) -> list[Any]:
        """Messages to the client since the last access."""
        lines, self._to_client[:] = [json.loads(line) for line in self._to_client], []
        return lines

    @property
    def to_hub(self) -> list[Any]:
        """Messages to the hub since the last access."""
        lines, self._to_hub[:] = [json.loads(line) for line in self._to_hub], []
        return lines

    def client(self, *messages: Any) -> None:
        for message in messages:
            line = message if isinstance(message, bytes) else json.dumps(message).encode()
            self.bridge.client_line(line, self.now)

    def request(self, method: str, ident: Any, **params: Any) -> None:
        self.client({"jsonrpc": "2.0", "id": ident, "method": method, "params": params})

    def notify(self, method: str, **params: Any) -> None:
        self.client({"jsonrpc": "2.0", "method": method, "params": params})

    def hub(self, **message: Any) -> None:
        self.bridge.hub_line(json.dumps(message, separators=(",", ":")).encode(), self.now)

    def answer(self, rid: str, **data: Any) -> None:
        self.hub(type="RESPONSE", id=rid, success=True, data=data)

    def connect(self, session: str = SESSION, *, initialized: bool = False) -> Any:
        """Connect and register; returns the REGISTER message."""
        self.bridge.connected(self._to_hub.append, None, None)
        (hello,) = self.to_hub
        self.hub(type="REGISTER_OK", sessionId=session, resumed=False, initialized=initialized)
        return hello

    def greet(self, version: str = "2025-11-25") -> None:
        self.request("initialize", "hello", **{**HELLO, "protocolVersion": version})
        (request,) = self.to_hub
        self.answer(request["id"], protocolVersion=version)
        self.notify("notifications/initialized")
        assert [line["event"] for line in self.to_hub] == ["notifications/initialized"]
        assert self.to_client[0]["result"] == {"protocolVersion": version}
