"""An MCP client at the other end of the bridge's pipes, and a hub of the 2025 eras for it to talk to."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from tests.cli.fakehub import Asked, FakeHub, Reply

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
HEALTH = {"status": "ok", "version": "0.1.0"}


class Agent:
    """An MCP client at the other end of the pipes."""

    def __init__(self, env: dict[str, str], *words: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tabhub", "start", "--stdio", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=env,
        )

    def raw(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, method: str, ident: Any = None, **params: Any) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        self.raw(json.dumps(message if ident is None else {**message, "id": ident}).encode() + b"\n")

    def modern(self, method: str, ident: Any, **params: Any) -> None:
        self.send(method, ident, _meta={VERSION_KEY: "2026-07-28"}, **params)

    def read(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the bridge has ended"
        return json.loads(line)

    def leave(self) -> int:
        """Close stdin, as a client does, and see that nothing more was said."""
        rest, _ = self.process.communicate(timeout=20)
        assert rest == b""
        return self.process.returncode


def result(asked: Asked, **value: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": asked.json["id"], "result": value}


def sessions(hub: FakeHub, session: str = "s1", notices: list[dict[str, Any]] | None = None) -> None:
    """Make the fake hub one of the 2025 eras: it knows one session and answers every request with its params."""

    def post(asked: Asked, reply: Reply) -> None:
        message = asked.json
        if message["method"] == "initialize":
            reply.json(result(asked, protocolVersion="2025-11-25"), Mcp_Session_Id=session)
        elif asked.headers.get("mcp-session-id") != session:
            reply.json({"jsonrpc": "2.0", "id": None, "error": {"code": -32012, "message": "no session"}}, 404)
        elif "id" in message and "method" in message:
            reply.json(result(asked, echo=message.get("params")))
        else:
            reply.send(202, b"")

    def get(asked: Asked, reply: Reply) -> None:
        if asked.headers.get("mcp-session-id") != session:
            reply.json({"error": {"message": "no session"}}, 404)
            return
        reply.events()
        for number, notice in enumerate(notices or [], 1):
            reply.event(notice, str(number))
        reply.wait_closed()

    hub.answer("GET /health", HEALTH)
    hub.on("POST /mcp", post)
    hub.on("GET /mcp", get)
    hub.on("DELETE /mcp", lambda _asked, reply: reply.send(204, b""))


def greet(agent: Agent) -> None:
    agent.send("initialize", 0, protocolVersion="2025-11-25")
    assert agent.read()["result"]["protocolVersion"] == "2025-11-25"
    agent.send("notifications/initialized")
