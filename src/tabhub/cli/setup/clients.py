"""The MCP clients: where each keeps its settings and how it wants a server written. Files are written by `merge`."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NAME = "tabhub"
"""What the server is called in every client's settings."""


@dataclass(frozen=True, slots=True)
class Server:
    """What a client has to know to reach the hub."""

    url: str
    token: str
    """The client's own."""
    command: tuple[str, ...]
    env: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Client:
    """One MCP client."""

    title: str
    section: str
    """The key of the section with the servers."""
    file: str
    """Its settings; `~` is the home folder."""
    project: str | None = None
    """The same for one project, relative to it."""
    http: Mapping[str, Any] | None = field(default_factory=dict)
    """What an HTTP server's entry has besides URL and headers; None if the client knows only commands."""
    url_key: str = "url"
    headers_key: str = "headers"
    stdio: Mapping[str, Any] = field(default_factory=dict)
    """What a command's entry has besides the command."""
    env_key: str = "env"
    joined: bool = False
    """The command and its arguments are one list."""
    restart: str = "Restart it, or reload its MCP servers."

    @property
    def toml(self) -> bool:
        """Whether the settings are TOML; JSON otherwise."""
        return self.file.endswith(".toml")

    def entry(self, server: Server, *, stdio: bool) -> dict[str, Any]:
        if stdio or self.http is None:
            command: dict[str, Any] = dict(self.stdio)
            if self.joined:
                command["command"] = list(server.command)
            else:
                command["command"], command["args"] = server.command[0], list(server.command[1:])
            return {**command, self.env_key: dict(server.env)} if server.env else command
        headers = {"Authorization": f"Bearer {server.token}"}
        return {**self.http, self.url_key: server.url, self.headers_key: headers}

    def path(self, *, project: bool) -> Path:
        """The settings file of this person, or of the project in the current folder."""
        if project and self.project is not None:
            return Path(self.project).absolute()
        return Path(self.file).expanduser()


TRANSPORT_KEYS = frozenset(
    {"type", "url", "serverUrl", "headers", "http_headers", "env_http_headers", "bearer_token_env_var"}
    | {"command", "args", "env", "environment"}
)
"""The keys of an entry that say how to reach the server; others are the person's own and stay."""


def _applications(name: str) -> str:
    """The folder of desktop applications' settings on this system."""
    if sys.platform == "darwin":
        return f"~/Library/Application Support/{name}"
    if sys.platform == "win32":
        return f"{os.environ.get('APPDATA', '~/AppData/Roaming')}/{name}"
    return f"{os.environ.get('XDG_CONFIG_HOME') or '~/.config'}/{name}"


def clients() -> dict[str, Client]:
    codex = os.environ.get("CODEX_HOME") or "~/.codex"
    opencode = f"{os.environ.get('XDG_CONFIG_HOME') or '~/.config'}/opencode/opencode.json"
    if Path(f"{opencode}c").expanduser().exists():
        opencode += "c"
    return {
        "claude-code": Client(
            "Claude Code",
            "mcpServers",
            f"{os.environ.get('CLAUDE_CONFIG_DIR') or '~'}/.claude.json",
            ".mcp.json",
            http={"type": "http"},
            stdio={"type": "stdio"},
            restart="Start a new session, and see it with /mcp.",
        ),
        "claude-desktop": Client(
            "Claude Desktop", "mcpServers", f"{_applications('Claude')}/claude_desktop_config.json", http=None
        ),
        "cursor": Client("Cursor", "mcpServers", "~/.cursor/mcp.json", ".cursor/mcp.json", http={"type": "http"}),
        "vscode": Client(
            "VS Code",
            "servers",
            f"{_applications('Code')}/User/mcp.json",
            ".vscode/mcp.json",
            http={"type": "http"},
            stdio={"type": "stdio"},
        ),
        "windsurf": Client("Windsurf", "mcpServers", "~/.codeium/windsurf/mcp_config.json", url_key="serverUrl"),
        "opencode": Client(
            "OpenCode",
            "mcp",
            opencode,
            "opencode.json",
            http={"type": "remote"},
            stdio={"type": "local"},
            env_key="environment",
            joined=True,
        ),
        "codex": Client(
            "Codex", "mcp_servers", f"{codex}/config.toml", ".codex/config.toml", headers_key="http_headers"
        ),
    }
