"""External servers for tests: examples of the official SDKs, and small broken ones in Python."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.harness.hub import RunningHub
from tests.harness.waiting import until

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "node_modules/@modelcontextprotocol/sdk/dist/esm/examples/server"
FIXTURES = Path(__file__).parent / "fixtures"
NODE = str(Path(sys.executable).parent / "node")


@asynccontextmanager
async def process(*argv: str, port: int, host: str = "127.0.0.1", **env: str) -> AsyncIterator[str]:
    """Run a server until the end of the block; yields the URL of its `/mcp` once it listens."""
    running = await asyncio.create_subprocess_exec(
        *argv,
        env={**os.environ, **env},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        await until(lambda: running.returncode is not None or listens(port, host), 60)
        assert running.returncode is None, (await running.stderr.read()).decode()  # type: ignore[union-attr]
        yield f"http://{host}:{port}/mcp"
    finally:
        if running.returncode is None:
            os.killpg(running.pid, 9)
        await running.wait()
        transport: Any = getattr(running, "_transport", None)
        transport.close()


def listens(port: int, host: str) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((host, port)) == 0


def typescript(example: str, port: int) -> Any:
    """One of the TypeScript SDK's example servers."""
    moved = ("--import", str(FIXTURES / "port.mjs"))
    return process(NODE, *moved, str(EXAMPLES / f"{example}.js"), port=port, MCP_PORT=str(port), PORT=str(port))


def python(fixture: str, *args: str) -> dict[str, Any]:
    """The configuration of a server in Python, as a local command."""
    return {"command": sys.executable, "args": [str(FIXTURES / f"{fixture}.py"), *args]}


def python_http(fixture: str, port: int, *args: str) -> Any:
    """A server in Python, over HTTP."""
    return process(sys.executable, str(FIXTURES / f"{fixture}.py"), "http", str(port), *args, port=port)


async def ready(hub: RunningHub, name: str) -> None:
    """Wait until a server is connected."""
    await until(lambda: state(hub, name) == "ready", 30)


def state(hub: RunningHub, name: str) -> str:
    connection = hub.hub.upstream.pool.get(name)
    return connection.state if connection is not None else "none"


def names(hub: RunningHub) -> set[str]:
    """The names of all registered external tools."""
    return {tool.name for tool in hub.hub.registry.tools() if tool.source.kind == "upstream"}


def text(result: dict[str, Any]) -> str:
    return "".join(block.get("text", "") for block in result["content"])


def plain(words: str) -> str:
    """A text with normalized whitespace."""
    return re.sub(r"\s+", " ", words)
