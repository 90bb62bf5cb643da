"""A hub for tests of its own agent: scripts need approval, the rest is allowed, and one external server is set up."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.agent.scripted import KEY, Scripted
from tests.e2e.live import LiveHub
from tests.e2e.live_settings import change
from tests.e2e.restartable_hub import RestartableHub

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


def create_agent_hub(folder: Path) -> RestartableHub:
    """Create it with its home below `folder`; the model key is in its environment."""
    (folder / "sums.py").write_text(_SERVER)
    (folder / "home").mkdir(mode=0o700)
    permissions = {"default": "auto", "browser": {"tools": {ASKED: "ask"}}}
    config = {"permissions": permissions, "dataflow": "off", "limits": {"admin_rate": 1000}}
    (folder / "home" / "config.json").write_text(json.dumps({**config, "agent": {"key": "${MODEL_KEY}"}}))
    record = {"id": "s1", "name": "sums", "enabled": True, "command": sys.executable, "args": [str(folder / "sums.py")]}
    (folder / "home" / "mcp.json").write_text(json.dumps({"version": 1, "servers": [record]}))
    (folder / "home" / "mcp.json").chmod(0o600)
    return RestartableHub(folder, MODEL_KEY=KEY)


def give_model(
    hub: LiveHub, server: Scripted, model: str = "m1", *, provider: str | None = None, form: str | None = None
) -> None:
    """Configure the model of its agent, whatever was configured before."""
    settings = {"provider": provider, "format": form, "baseUrl": server.url, "model": model}
    change(hub, {f"agent.{key}": value for key, value in settings.items()})
