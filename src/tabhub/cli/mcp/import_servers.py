"""`tabhub mcp import`: add the servers that another MCP client on this machine uses.

Owns where each client keeps them. The client's file is only read; the hub itself is skipped, and so are servers the hub
cannot use, with a warning.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tabhub.cli.command import JSON, Command, option
from tabhub.cli.mcp.command import read_json, report
from tabhub.cli.mcp.servers import servers
from tabhub.cli.setup.clients import NAME, Client, clients
from tabhub.cli.terminal import show_warning
from tabhub.client_errors import CliError

if TYPE_CHECKING:
    from argparse import Namespace

_FROM = ("claude-code", "cursor", "vscode")


def import_servers(args: Namespace) -> int:
    from tabhub.errors import InvalidServerConfig
    from tabhub.upstream.config import read_server

    client = clients()[args.client]
    found, paths = _found(client)
    if not found:
        looked = ", ".join(str(path) for path in paths)
        raise CliError(f"{client.title} is set up with no servers here.", f"Looked in: {looked}.")
    known = {each["name"] for each in servers().all()}
    wanted: dict[str, Any] = {}
    for name, entry in found.items():
        if name == NAME:
            continue  # that is this hub
        if name in known and not args.replace:
            show_warning(f"{name} already exists and was not changed. Use --replace to overwrite it.")
            continue
        try:
            read_server(name, entry)
        except InvalidServerConfig as error:
            show_warning(f"skipped: {error.text()}")
            continue
        wanted[name] = entry
    if args.dry_run or not wanted:
        print(json.dumps(sorted(wanted)) if args.json else f"To import: {', '.join(sorted(wanted)) or 'nothing'}.")
        return 0
    return report(servers().add(wanted), as_json=args.json, what="imported")


def _found(client: Client) -> tuple[dict[str, Any], list[Path]]:
    """The servers of a client's settings and of the project in this folder, which takes precedence."""
    paths = [client.path(project=False), *([client.path(project=True)] if client.project else [])]
    found: dict[str, Any] = {}
    for path in paths:
        if not path.is_file():
            continue
        value = read_json(str(path))
        if not isinstance(value, dict):
            raise CliError(f"{path} does not hold a JSON object.")
        found |= _section(value, client)
        # Claude Code keeps what was added for one folder under that folder's name.
        projects = value.get("projects")
        here = projects.get(str(Path.cwd())) if isinstance(projects, dict) else None
        found |= _section(here, client) if isinstance(here, dict) else {}
    return found, paths


def _section(value: dict[str, Any], client: Client) -> dict[str, Any]:
    section = value.get(client.section)
    return dict(section) if isinstance(section, dict) else {}


COMMAND = Command(
    "Import the servers of Claude Code, Cursor or VS Code",
    import_servers,
    option("client", choices=_FROM, metavar="CLIENT", help=", ".join(_FROM)),
    option("--replace", action="store_true", help="also replace servers that the hub already has"),
    option("--dry-run", action="store_true", help="only show what would be imported"),
    JSON,
    examples=(("tabhub mcp import claude-code", "the servers Claude Code knows, in this folder too"),),
)
