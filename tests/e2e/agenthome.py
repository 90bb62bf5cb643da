"""A home for a hub whose own agent is tried: it asks for scripts, allows the rest, and has one external server."""

from __future__ import annotations

import json
import sys
from pathlib import Path

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


def prepared(folder: Path, **agent: str) -> None:
    """Write it, with these settings of the agent; its model's key is in the hub's environment."""
    (folder / "sums.py").write_text(_SERVER)
    (folder / "home").mkdir(mode=0o700)
    permissions = {"default": "auto", "browser": {"tools": {ASKED: "ask"}}}
    config = {"permissions": permissions, "dataflow": "off", "agent": {**agent, "key": "${MODEL_KEY}"}}
    (folder / "home" / "config.json").write_text(json.dumps(config))
    record = {"id": "s1", "name": "sums", "enabled": True, "command": sys.executable, "args": [str(folder / "sums.py")]}
    (folder / "home" / "mcp.json").write_text(json.dumps({"version": 1, "servers": [record]}))
    (folder / "home" / "mcp.json").chmod(0o600)
