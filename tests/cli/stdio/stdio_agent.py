"""An MCP client at the other end of the stdio server's pipes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from tabhub.store.home import Home
from tests.harness.hub import AGENT, agent_token
from tests.harness.process import environment

ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
WORDS = [sys.executable, "-m", "tabhub", "start", "--stdio", "--as", AGENT]


class Agent:
    """An MCP client at the other end of the pipes."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    @property
    def stdin(self) -> asyncio.StreamWriter:
        assert self.process.stdin is not None
        return self.process.stdin

    def raw(self, data: bytes) -> None:
        self.stdin.write(data)

    def say(self, value: Any) -> None:
        self.raw(json.dumps(value).encode() + b"\n")

    def send(self, method: str, ident: Any = None, **params: Any) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        self.say(message if ident is None else {**message, "id": ident})

    def modern(self, method: str, ident: Any, **params: Any) -> None:
        self.send(method, ident, _meta={**ENVELOPE, **params.pop("_meta", {})}, **params)

    async def read(self, seconds: float = 30.0) -> Any:
        assert self.process.stdout is not None
        async with asyncio.timeout(seconds):
            line = await self.process.stdout.readline()
        assert line, "the stdio server has ended"
        return json.loads(line)

    async def request(self, method: str, ident: Any, **params: Any) -> Any:
        """Send a request and return its answer, which must be the next line."""
        self.send(method, ident, **params)
        answer = await self.read()
        assert answer.get("id") == ident, answer
        return answer

    async def greet(self, version: str = "2025-11-25", **capabilities: Any) -> Any:
        info = {"name": "raw", "version": "1"}
        answer = await self.request(
            "initialize", 0, protocolVersion=version, capabilities=capabilities, clientInfo=info
        )
        self.send("notifications/initialized")
        return answer["result"]

    async def leave(self) -> int:
        """Close stdin, as a client does, and check that nothing more was written."""
        self.stdin.close()
        async with asyncio.timeout(30):
            rest, _ = await self.process.communicate()
        assert rest == b""
        assert self.process.returncode is not None
        return self.process.returncode


@contextlib.asynccontextmanager
async def stdio_agent(home: Path, *words: str, **env: str) -> AsyncIterator[Agent]:
    """Start the stdio server of a home, and kill it at the end if it still runs."""
    agent_token(Home(home))
    process = await asyncio.create_subprocess_exec(
        *WORDS,
        *words,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={**environment(home), **env},
        limit=2**24,
    )
    try:
        yield Agent(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


def stopped(home: Path) -> None:
    """Stop the hub that a stdio server started."""
    record = home / "hub.json"
    if record.exists():
        with contextlib.suppress(ProcessLookupError):  # it was killed and left its record behind
            os.kill(json.loads(record.read_text())["pid"], signal.SIGKILL)
