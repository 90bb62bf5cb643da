"""`tabhub mcp`: external MCP servers whose tools the hub offers in addition to its own.

Owns how servers are named on the command line and shown. A running hub does the work and tries each server at once;
without one, the records are changed on disk and the servers are tried when the hub starts. Secrets are never shown.
"""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from functools import partial
from pathlib import Path
from typing import Any

from tabhub.cli.command import JSON, Command, option
from tabhub.cli.mcp.servers import change_servers, find_server, list_servers
from tabhub.cli.setup import jsonc
from tabhub.cli.setup.clients import NAME, Client, clients
from tabhub.cli.terminal import count, paint, print_json, print_row, safe, show_warning
from tabhub.client_errors import CliError, UsageError
from tabhub.errors import InvalidServerConfig, JsoncError
from tabhub.upstream.config import read_server

_STATES = {
    "ready": ("ready", "green"),
    "waiting": ("not connected", "red"),
    "login": ("sign-in required", "yellow"),
    "connecting": ("connecting", "yellow"),
    "off": ("disabled", "dim"),
}
_IMPORTABLE = ("claude-code", "cursor", "vscode")


def add(args: Namespace) -> int:
    if args.url is None and args.header:
        raise UsageError("--header needs NAME and URL.", "In a file, headers are part of the entry.")
    if args.url is None:
        given = _read_json(args.source)
    else:
        headers = {"headers": dict(_header(text) for text in args.header)} if args.header else {}
        given = {args.source: {"url": args.url, **headers}}
    return _report(change_servers("add", {"json": given}), as_json=args.json, done="added")


def _read_json(source: str) -> Any:
    """A configuration from a file, or from standard input for `-`; comments are allowed, as editors write them."""
    where = "standard input" if source == "-" else source
    try:
        text = sys.stdin.read() if source == "-" else Path(source).expanduser().read_text(encoding="utf-8-sig")
        return jsonc.parse(text)
    except FileNotFoundError:
        raise UsageError(f"There is no file {source}.", "To add a server by its URL: tabhub mcp add NAME URL") from None
    except OSError as error:
        raise CliError(f"{where} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise CliError(f"{where} is not UTF-8 text.") from None
    except JsoncError as error:
        raise CliError(f"{where} is not valid JSON: {error}.") from None


def _report(servers: list[dict[str, Any]], *, as_json: bool, done: str) -> int:
    """Print the state of servers; returns 1 if one of them cannot be used yet."""
    if as_json:
        print_json(servers)
    else:
        for server in servers:
            tools = count(len(server["tools"]), "tool")
            print(f"{paint(safe(server['name']), 'bold')} {done}: {_state(server)}, {_contents(server, tools)}")
            _show_problems(server)
            if server.get("state") == "waiting":
                print(f"  When it is available: tabhub mcp refresh {safe(server['name'])}")
    return 1 if any(server.get("state") in ("waiting", "login") for server in servers) else 0


def show(args: Namespace) -> None:
    servers = list_servers()
    if args.json:
        return print_json(servers)
    if not servers:
        print("No external servers. Add one: tabhub mcp add NAME URL")
    for server in servers:
        enabled = sum(tool["enabled"] for tool in server["tools"])
        tools = f"{enabled} of {count(len(server['tools']), 'tool')} on"
        print(paint(safe(server["name"]), "bold"), _state(server), f"({_contents(server, tools)})")
        print(f"  {safe(server.get('url') or server.get('command') or '')}")
        _show_problems(server)


def show_tools(args: Namespace) -> None:
    server = find_server(args.name)
    if args.json:
        return print_json(server["tools"])
    for tool in server["tools"]:
        print_row(f"{tool['name']}{'' if tool['enabled'] else ' (disabled)'}  ", tool["description"] or "")
    if not server["tools"]:
        name = safe(server["name"])
        print(f"No tools of {name} are known yet. Load them: tabhub mcp refresh {name}")


def _switch(on: bool, args: Namespace) -> None:
    if not args.tool:
        body = {"name": args.name, "enabled": on}
    else:
        tools = find_server(args.name)["tools"]
        own_names = {name: tool["tool"] for tool in tools for name in (tool["name"], tool["tool"])}
        for tool in args.tool:
            if tool not in own_names:
                raise CliError(f"{args.name} has no tool {tool!r}.", f"List them: tabhub mcp tools {args.name}")
        selected = {own_names[tool] for tool in args.tool}
        disabled = {tool["tool"] for tool in tools if not tool["enabled"]}
        body = {"name": args.name, "disabledTools": sorted(disabled - selected if on else disabled | selected)}
    (server,) = change_servers("set", body)
    if args.json:
        return print_json(server)
    what = count(len(args.tool), "tool") if args.tool else "server"
    print(f"{paint(safe(args.name), 'bold')}: {what} {'enabled' if on else 'disabled'}.")
    _show_problems(server)


def refresh(args: Namespace) -> int:
    return _report(change_servers("refresh", {"name": args.name}), as_json=args.json, done="refreshed")


def remove(args: Namespace) -> None:
    change_servers("remove", {"name": args.name})
    print(json.dumps({"removed": args.name}) if args.json else f"{paint(safe(args.name), 'bold')} removed.")


def import_servers(args: Namespace) -> int:
    """Add the servers of another client's file, which is only read; this hub and unusable servers are skipped."""
    client = clients()[args.client]
    found, paths = _servers_of(client)
    if not found:
        looked = ", ".join(str(path) for path in paths)
        raise CliError(f"{client.title} has no MCP servers configured.", f"Looked in: {looked}.")
    known = {server["name"] for server in list_servers()}
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
    return _report(change_servers("add", {"json": wanted}), as_json=args.json, done="imported")


def _servers_of(client: Client) -> tuple[dict[str, Any], list[Path]]:
    """The servers of a client's settings and of the project in this folder, which takes precedence; and the files."""
    paths = [client.path(project=False), *([client.path(project=True)] if client.project else [])]
    found: dict[str, Any] = {}
    for path in paths:
        if not path.is_file():
            continue
        value = _read_json(str(path))
        if not isinstance(value, dict):
            raise CliError(f"{path} does not contain a JSON object.")
        # Claude Code keeps what was added for one folder under that folder's name.
        projects = value.get("projects")
        here = projects.get(str(Path.cwd())) if isinstance(projects, dict) else None
        for place in (value, here):
            section = place.get(client.section) if isinstance(place, dict) else None
            found |= section if isinstance(section, dict) else {}
    return found, paths


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise UsageError(f"{name[:60]!r} is not a header.", "Write it as 'Name: value'.")
    return name.strip(), value.strip()


def _state(server: dict[str, Any]) -> str:
    state = server.get("state", "off")
    if state == "off" and server.get("enabled"):
        return paint("tried when the hub starts", "dim")
    return paint(*_STATES.get(state, (state, "dim")))


def _contents(server: dict[str, Any], tools: str) -> str:
    """What a server has: its tools as given, and the numbers of its resources and prompts."""
    kinds = [kind for kind in ("resource", "template", "prompt") if server.get(f"{kind}Count")]
    return ", ".join([tools, *(count(server[f"{kind}Count"], kind) for kind in kinds)])


def _show_problems(server: dict[str, Any]) -> None:
    if error := server.get("error"):
        print(f"  {safe(error)}")
    if url := server.get("loginUrl"):
        print(f"  Sign in here: {safe(url)}")
    for problem in server.get("problems", ()):
        print(f"  {safe(problem)}")


_NAME_OPTIONS = (option("name", metavar="NAME", help="the server's name"), JSON)
_SWITCH_OPTIONS = (
    *_NAME_OPTIONS,
    option("--tool", action="append", metavar="TOOL", help="only this tool of the server; may be repeated"),
)
ADD = Command(
    add,
    option("source", metavar="FILE|-|NAME", help="a JSON file, - for standard input, or a server's name"),
    option("url", nargs="?", metavar="URL", help="the server's URL, after a name"),
    option("--header", action="append", metavar="'NAME: VALUE'", help="for every request; may be repeated"),
    JSON,
    details=(
        'The JSON is what MCP clients use: {"name": {"url": "…", "headers": {…}}} or {"name":\n'
        '{"command": "…", "args": […], "env": {…}}}, also inside "mcpServers" or "servers". Refer to secrets\n'
        "instead of writing them: ${NAME} is a variable of the hub's environment, ${keyring:SERVICE/USER} an\n"
        "entry of the keyring."
    ),
    examples=(
        ("tabhub mcp add weather http://localhost:3001/mcp", "add a server by URL"),
        ("tabhub mcp add github URL --header 'Authorization: Bearer ${GITHUB_TOKEN}'", "with a header"),
        ("tabhub mcp add servers.json", "all servers of a file"),
    ),
)
LIST = Command(show, JSON)
TOOLS = Command(show_tools, *_NAME_OPTIONS)
ENABLE = Command(partial(_switch, True), *_SWITCH_OPTIONS)
DISABLE = Command(
    partial(_switch, False),
    *_SWITCH_OPTIONS,
    examples=(("tabhub mcp disable weather --tool forecast", "disable a single tool"),),
)
REFRESH = Command(refresh, *_NAME_OPTIONS)
REMOVE = Command(remove, *_NAME_OPTIONS)
IMPORT = Command(
    import_servers,
    option("client", choices=_IMPORTABLE, metavar="CLIENT", help=", ".join(_IMPORTABLE)),
    option("--replace", action="store_true", help="also replace servers that the hub already has"),
    option("--dry-run", action="store_true", help="only show what would be imported"),
    JSON,
    examples=(("tabhub mcp import claude-code", "add the servers of Claude Code"),),
)
