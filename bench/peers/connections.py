"""Connections to an MCP server: over stdio, and over Streamable HTTP with plain answers.

Owns sending a request and reading its answer, with as little work of its own as possible: the time of a call ends when
its last byte has arrived, before it is parsed.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

_VERSION = "2025-06-18"
_HELLO = {"protocolVersion": _VERSION, "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
_ENDS = 400
"""Bytes at both ends of a message in which its id is looked for."""


class Failed(Exception):
    """A server did not do what it was asked for."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back, and after how many milliseconds."""

    ms: float
    text: str
    image: str | None
    """Base64."""


class Connection(Protocol):
    """An initialized session."""

    def exchange(self, body: bytes, number: int) -> bytes:
        """Send a request and return its answer as it arrived."""

    def notify(self, body: bytes) -> None:
        """Send a notification."""

    def close(self) -> None: ...


class Session:
    """Calls of tools over a connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._number = 1_000_000
        self.request("initialize", _HELLO)
        connection.notify(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')

    def request(self, method: str, params: Mapping[str, Any]) -> tuple[float, dict[str, Any]]:
        """The milliseconds until the answer, and its result."""
        self._number += 1
        body = json.dumps({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}).encode()
        before = time.perf_counter()
        raw = self._connection.exchange(body, self._number)
        ms = (time.perf_counter() - before) * 1000
        answer: dict[str, Any] = json.loads(raw)
        if "result" not in answer:
            raise Failed(f"{method}: {json.dumps(answer)[:500]}")
        return ms, answer["result"]

    def call(self, tool: str, arguments: Mapping[str, Any]) -> Answer:
        """Call a tool, which must succeed."""
        ms, result = self.request("tools/call", {"name": tool, "arguments": arguments})
        content = result.get("content", [])
        text = "\n".join(part.get("text", "") for part in content)
        if result.get("isError"):
            raise Failed(f"{tool} {json.dumps(arguments)[:200]}: {text[:500]}")
        if "structuredContent" in result:
            text += json.dumps(result["structuredContent"])
        return Answer(ms, text, next((part["data"] for part in content if part["type"] == "image"), None))

    def close(self) -> None:
        self._connection.close()


class Stdio:
    """A server that is started for this connection."""

    def __init__(self, command: Sequence[str], *, env: Mapping[str, str], folder: Path, log: Path) -> None:
        self._log = log.open("ab")
        self.process = subprocess.Popen(
            list(command), cwd=folder, env=dict(env), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._in, self._out = self.process.stdin, self.process.stdout

    def exchange(self, body: bytes, number: int) -> bytes:
        self.notify(body)
        wanted = b'"id":%d' % number
        while line := self._out.readline():
            if wanted in line[:_ENDS] or wanted in line[-_ENDS:]:
                return line
        raise Failed(f"{self.process.args!r} ended with {self.process.wait()}")

    def notify(self, body: bytes) -> None:
        self._in.write(body + b"\n")
        self._in.flush()

    def close(self) -> None:
        """End the server as clients do: close its input, and terminate it if it stays."""
        self._in.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.terminate()
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self._out.close()
        self._log.close()


class Http:
    """A session at the hub's /mcp over one kept connection."""

    def __init__(self, port: int, token: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        self._headers = {
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": _VERSION,
        }

    def exchange(self, body: bytes, number: int) -> bytes:
        self._connection.request("POST", "/mcp", body, self._headers)
        answer = self._connection.getresponse()
        if (session := answer.getheader("Mcp-Session-Id")) is not None:
            self._headers["Mcp-Session-Id"] = session
        raw = answer.read()
        if answer.getheader("Content-Type", "").startswith("text/event-stream"):  # with progress ahead of the answer
            raw = raw.strip().rpartition(b"data: ")[2]
        return raw

    def notify(self, body: bytes) -> None:
        self.exchange(body, 0)

    def close(self) -> None:
        self._connection.close()
