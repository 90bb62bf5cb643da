"""A hub whose own agent is tried: it asks for scripts, allows the rest, and has one external server."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.agent.scripted import KEY, Scripted
from tests.e2e.changing import change
from tests.e2e.lasting import LastingHub
from tests.e2e.live import LiveHub

ASKED = "browser_execute_script"
_SERVER = """
from mcp.server.mcpserver import MCPServer

server = MCPServer("sums")


@server.tool()
def add(a: int, b: int) -> str:
    "Add two numbers."
    return f"The sum is {a + b}."


server.run()
"""


def prepared(folder: Path) -> LastingHub:
    """Such a hub, with a home in a folder; the key of its model is in its environment."""
    (folder / "sums.py").write_text(_SERVER)
    (folder / "home").mkdir(mode=0o700)
    permissions = {"default": "auto", "browser": {"tools": {ASKED: "ask"}}}
    config = {"permissions": permissions, "dataflow": "off", "limits": {"admin_rate": 1000}}
    (folder / "home" / "config.json").write_text(json.dumps({**config, "agent": {"key": "${MODEL_KEY}"}}))
    record = {"id": "s1", "name": "sums", "enabled": True, "command": sys.executable, "args": [str(folder / "sums.py")]}
    (folder / "home" / "mcp.json").write_text(json.dumps({"version": 1, "servers": [record]}))
    (folder / "home" / "mcp.json").chmod(0o600)
    return LastingHub(folder, MODEL_KEY=KEY)


def give_model(
    hub: LiveHub, server: Scripted, model: str = "m1", *, provider: str | None = None, form: str | None = None
) -> None:
    """Have its agent use a model, whatever it used before."""
    settings = {"provider": provider, "format": form, "baseUrl": server.url, "model": model}
    change(hub, {f"agent.{key}": value for key, value in settings.items()})
