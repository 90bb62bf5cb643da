"""`tabhub mcp`: external MCP servers whose tools the hub offers beside its own.

Owns how servers are named on the command line and shown. A running hub does the work and tries each server at once;
without one, the records are changed on disk and the servers are tried when the hub starts. Secrets are never shown.
"""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tabhub.cli.command import JSON, Command, Group, LazyCommand, option
from tabhub.cli.mcp.servers import find_server, servers
from tabhub.cli.terminal import count, cut, json_text, line, paint, print_json, safe, width
from tabhub.client_errors import CliError
from tabhub.errors import JsoncError

if TYPE_CHECKING:
    from argparse import Namespace

_STATES = {
    "ready": "green",
    "waiting": "red",
    "login": "yellow",
    "connecting": "yellow",
    "off": "dim",
}


def add(args: Namespace) -> int:
    if args.url is not None:
        entry: dict[str, Any] = {"url": args.url}
        if args.header:
            entry["headers"] = dict(_header(each) for each in args.header)
        given: Any = {args.source: entry}
    else:
        if args.header:
            raise CliError("--header goes with NAME URL.", "In a file, headers stand in the entry.", exit_code=2)
        given = read_json(args.source)
    return report(servers().add(given), as_json=args.json, what="added")


def read_json(source: str) -> Any:
    """A configuration from a file, or from standard input for `-`; comments are allowed, as editors write them."""
    from tabhub.cli.setup import jsonc

    where = "standard input" if source == "-" else source
    try:
        text = sys.stdin.read() if source == "-" else Path(source).expanduser().read_text(encoding="utf-8-sig")
        return jsonc.parse(text).value
    except FileNotFoundError:
        raise CliError(
            f"There is no file {source}.", "To add a server by its address: tabhub mcp add NAME URL", exit_code=2
        ) from None
    except OSError as error:
        raise CliError(f"{where} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise CliError(f"{where} is not UTF-8 text.") from None
    except JsoncError as error:
        raise CliError(f"{where} is not valid JSON: {error}.") from None


def report(facts: list[dict[str, Any]], *, as_json: bool, what: str) -> int:
    """Print the state of servers; returns 1 if one of them cannot be used yet."""
    if as_json:
        print(json_text(facts))
    else:
        for each in facts:
            held = ", ".join([count(len(each["tools"]), "tool"), *_beside(each)])
            print(f"{paint(safe(each['name']), 'bold')} {what}: {_state(each)}, {held}")
            _trouble(each)
    return 1 if any(each.get("state") in ("waiting", "login") for each in facts) else 0


def listed(args: Namespace) -> int:
    facts = servers().all()
    if args.json:
        return print_json(facts)
    if not facts:
        print("No external servers. Add one: tabhub mcp add NAME URL")
    for each in facts:
        on = sum(tool["enabled"] for tool in each["tools"])
        held = ", ".join([f"{on} of {count(len(each['tools']), 'tool')} on", *_beside(each)])
        print(paint(safe(each["name"]), "bold"), _state(each), f"({held})")
        print(f"  {safe(each.get('url') or each.get('command') or '')}")
        _trouble(each)
    return 0


def tools(args: Namespace) -> int:
    found = find_server(servers().all(), args.name)
    if args.json:
        return print_json(found["tools"])
    room = width()
    for tool in found["tools"]:
        off = "" if tool["enabled"] else paint(" (disabled)", "dim")
        words = safe(line(tool["description"] or ""))
        print(f"{paint(tool['name'], 'bold')}{off}  {cut(words, room - len(tool['name']) - 14 if room else None)}")
    if not found["tools"]:
        print(f"No tools of {safe(found['name'])} are known. Look for them: tabhub mcp refresh {safe(found['name'])}")
    return 0


def _switch(on: bool, args: Namespace) -> int:
    every = servers()
    if not args.tool:
        facts = every.set(args.name, enabled=on)
    else:
        known = find_server(every.all(), args.name)
        own = {name: tool["tool"] for tool in known["tools"] for name in (tool["name"], tool["tool"])}
        for tool in args.tool:
            if tool not in own:
                raise CliError(f"{args.name} has no tool {tool!r}.", f"List them: tabhub mcp tools {args.name}")
        meant = {own[tool] for tool in args.tool}
        off = {tool["tool"] for tool in known["tools"] if not tool["enabled"]}
        facts = every.set(args.name, disabled=sorted(off - meant if on else off | meant))
    if args.json:
        return print_json(facts)
    what = count(len(args.tool), "tool") if args.tool else "the server"
    print(f"{paint(safe(args.name), 'bold')}: {what} {'enabled' if on else 'disabled'}.")
    _trouble(facts)
    return 0


def refresh(args: Namespace) -> int:
    return report([servers().refresh(args.name)], as_json=args.json, what="refreshed")


def remove(args: Namespace) -> int:
    servers().remove(args.name)
    print(json.dumps({"removed": args.name}) if args.json else f"{paint(safe(args.name), 'bold')} removed.")
    return 0


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise CliError(f"{name[:60]!r} is not a header.", "Write it as 'Name: value'.", exit_code=2)
    return name.strip(), value.strip()


def _state(facts: dict[str, Any]) -> str:
    state = facts.get("state", "off")
    words = {"login": "wants you to log in", "waiting": "not connected", "off": "disabled"}
    if state == "off" and facts.get("enabled"):
        return paint("tried when the hub starts", "dim")
    return paint(words.get(state, state), _STATES.get(state, "dim"))


def _beside(facts: dict[str, Any]) -> list[str]:
    """The number of a server's resources and prompts."""
    return [
        count(facts[f"{kind}Count"], kind) for kind in ("resource", "template", "prompt") if facts.get(f"{kind}Count")
    ]


def _trouble(facts: dict[str, Any]) -> None:
    if error := facts.get("error"):
        print(f"  {safe(error)}")
    if url := facts.get("loginUrl"):
        print(f"  Log in here: {safe(url)}")
    for problem in facts.get("problems", ()):
        print(f"  {safe(problem)}")


_NAME_OPTIONS = (option("name", metavar="NAME", help="the server's name"), JSON)


_SWITCH_OPTIONS = (
    *_NAME_OPTIONS,
    option("--tool", action="append", metavar="TOOL", help="only this tool of it; may be repeated"),
)


COMMAND = Group(
    "External MCP servers: the hub offers their tools to every agent.",
    {
        "add": Command(
            "Add servers from a file, standard input, or by name and URL",
            add,
            option("source", metavar="FILE|-|NAME", help="a JSON file, - for standard input, or a server's name"),
            option("url", nargs="?", metavar="URL", help="the address, after a name"),
            option(
                "--header", action="append", metavar="'NAME: VALUE'", help="sent with every request; may be repeated"
            ),
            JSON,
            details=(
                'The JSON is what MCP clients use: {"name": {"url": "…", "headers": {…}}} or {"name":\n'
                '{"command": "…", "args": […], "env": {…}}}, also inside "mcpServers" or "servers". Secrets are best\n'
                "referred to: ${NAME} is a variable of the hub's environment, ${keyring:SERVICE/USER} the keyring."
            ),
            examples=(
                ("tabhub mcp add weather http://localhost:3001/mcp", "by address"),
                ("tabhub mcp add github URL --header 'Authorization: Bearer ${GITHUB_TOKEN}'", "with a header"),
                ("tabhub mcp add servers.json", "all servers of a file"),
            ),
        ),
        "list": Command("List servers and their state", listed, JSON),
        "tools": Command("Show the tools of a server", tools, *_NAME_OPTIONS),
        "enable": Command("Enable a server, or some of its tools", partial(_switch, True), *_SWITCH_OPTIONS),
        "disable": Command("Disable a server, or some of its tools", partial(_switch, False), *_SWITCH_OPTIONS),
        "refresh": Command("Reload a server's tools; log in if required", refresh, *_NAME_OPTIONS),
        "remove": Command("Remove a server", remove, *_NAME_OPTIONS),
        "import": LazyCommand("Import the servers of Claude Code, Cursor or VS Code", "tabhub.cli.mcp.import_servers"),
    },
    examples=(
        ("tabhub mcp add weather http://localhost:3001/mcp", "add one by its address"),
        ("tabhub mcp import cursor", "import those of another client"),
        ("tabhub mcp disable weather --tool forecast", "switch a single tool off"),
    ),
)
