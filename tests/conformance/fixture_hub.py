"""A hub with the conformance suite's tools, on a free port: `python -m tests.conformance.fixture_hub`.

Resources and prompts are an external server's (fixture_server.py), as they always are.

The suite cannot send a token, so requests get it here, in front of the app; Host and Origin are checked as always.
Prints the port, and ends when standard input closes.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path
from typing import Any

import uvicorn

from tabhub.hub.registry import Entry
from tabhub.hub.tools import EMPTY_SCHEMA, CallContext, Tool, ToolResult
from tabhub.server.app import App
from tabhub.server.http import Receive, Scope, Send
from tabhub.server.hub import Hub
from tabhub.server.run import listen
from tabhub.store import secret as secrets_store
from tabhub.store.config import ConfigFile
from tabhub.store.home import Home
from tests.conformance.fixture_tools import SOURCE, TOOLS
from tests.harness.waiting import until

ROOT = Path(__file__).parents[2]


def trigger(hub: Hub) -> Entry:
    """A tool that changes the list of tools."""
    count = 0

    async def run(ctx: CallContext, args: dict[str, Any]) -> ToolResult:
        nonlocal count
        count += 1
        added = Entry(Tool(f"test_added_{count}", SOURCE, "Added while running", EMPTY_SCHEMA), run)
        hub.register(SOURCE, [*TOOLS, trigger(hub), trigger_prompts(hub), added])
        return ToolResult.text("The list has changed.")

    return Entry(Tool("test_trigger_tool_change", SOURCE, "Changes the list of tools", EMPTY_SCHEMA), run)


def trigger_prompts(hub: Hub) -> Entry:
    """A tool that has the external server change its list of prompts."""

    async def run(ctx: CallContext, args: dict[str, Any]) -> ToolResult:
        return await hub.engine.find("mcp__suite__change_prompts").run(ctx, {})

    return Entry(Tool("test_trigger_prompt_change", SOURCE, "Changes the list of prompts", EMPTY_SCHEMA), run)


async def with_server(hub: Hub) -> None:
    """Wait until the external server has told all it has."""
    module = ["-m", "tests.conformance.fixture_server"]
    await hub.upstream.add({"suite": {"command": sys.executable, "args": module, "cwd": str(ROOT)}})
    life = hub.upstream.pool.get("suite")
    assert life is not None
    await until(lambda: bool(life.offers.current.prompts), 30)  # prompts are asked for last


async def serve(folder: Path) -> None:
    home = Home(folder)
    home.ensure()
    home.config.write_text('{"limits": {"session_rate": 0}, "permissions": {"default": "auto"}, "dataflow": "off"}')
    sockets = listen(0)
    port: int = sockets[0].getsockname()[1]
    secret = secrets_store.load_or_create(home)
    hub = Hub(home, port=port, config_file=ConfigFile(home), secret=secret)
    hub.register(SOURCE, [*TOOLS, trigger(hub), trigger_prompts(hub)])
    app = App(hub)
    header = (b"authorization", b"Bearer " + secret.encode())

    async def with_token(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope = {**scope, "headers": [*scope["headers"], header]}
        await app(scope, receive, send)

    config = uvicorn.Config(with_token, log_level="warning", lifespan="on", ws="websockets-sansio")
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve(sockets=sockets))
    await with_server(hub)
    print(port, flush=True)
    await asyncio.to_thread(sys.stdin.read)
    hub.closing()
    server.should_exit = True
    await serving


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(serve(Path(folder) / "home"))
