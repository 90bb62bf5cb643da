"""`tabhub setup CLIENT`: create an MCP client's token, and print what to add to its settings, or add it."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
import time
from argparse import ArgumentTypeError, Namespace
from functools import partial
from pathlib import Path

from tabhub.browser.families import CORE, FAMILIES
from tabhub.cli.command import Command, Group, option
from tabhub.cli.hub.client import HOST, find_hub, read_json
from tabhub.cli.hub.settings import home_and_config
from tabhub.cli.setup.clients import NAME, Client, Server, clients
from tabhub.cli.setup.merge import find, merge, remove
from tabhub.cli.setup.migrate import migrate
from tabhub.cli.setup.toml_table import set_table
from tabhub.cli.terminal import paint, show_warning
from tabhub.client_errors import UsageError
from tabhub.core.listing.profiles import Profiles
from tabhub.errors import InvalidParams, JsoncError, SetupError, TomlError
from tabhub.store import tokens
from tabhub.store.home import Home

_TOKEN = "<the client's token>"  # noqa: S105 - shown in place of one


def _server(name: str, token: str, *, gateway: bool = False, tools: str | None = None) -> Server:
    """The hub of this home for the client of a name; `tools` is the selection it lists."""
    home, config = home_and_config()
    hub = find_hub()
    never_started = hub.pid is None and not isinstance((read_json(str(home.auth)) or {}).get("port"), int)
    port = config.port if never_started else hub.port
    words = [*_program(), "start", "--stdio", "--as", name]
    words += ["--gateway"] if gateway else []
    words += ["--tools", tools] if tools else []
    env = {"TABHUB_HOME": hub.home} if os.environ.get("TABHUB_HOME") else {}
    if os.environ.get("TABHUB_PORT"):
        env["TABHUB_PORT"] = str(port)
    path = "/mcp/gateway" if gateway else f"/mcp?tools={tools}" if tools else "/mcp"
    return Server(f"http://{HOST}:{port}{path}", token, tuple(words), env)


def selection(text: str) -> str:
    """Check a selection of tools, and return it as part of a URL."""
    try:
        Profiles(FAMILIES, CORE).select(text)
    except InvalidParams as error:
        raise ArgumentTypeError(error.text()) from None
    words = ",".join(word.strip().lower() for word in text.split(",") if word.strip())
    if not words:
        raise ArgumentTypeError("the selection is empty. Use default, all, or families such as core,network")
    return words


def _program() -> list[str]:
    """The command that starts this program: with its full path, because a client may have another PATH."""
    beside = Path(sys.executable).with_name("tabhub")
    found = str(beside) if os.access(beside, os.X_OK) else shutil.which("tabhub")
    return [found] if found else [sys.executable, "-m", "tabhub"]


def block(client: Client, server: Server, *, stdio: bool) -> str:
    entry = client.entry(server, stdio=stdio)
    if client.toml:
        return set_table("", client.section, NAME, entry).rstrip("\n")
    return json.dumps({client.section: {NAME: entry}}, indent=2, ensure_ascii=False)


def show_all() -> None:
    """Print the settings for all clients, without tokens."""
    for name, client in clients().items():
        print(paint(f"{client.title} ({client.path(project=False)}):", "bold"))
        print(f"{block(client, _server(name, _TOKEN), stdio=False)}\n")
    print(f"Gateway, two tools that find and call all others: {_server('', _TOKEN).url}/gateway")
    print("`tabhub setup CLIENT` creates the client's token; with --write it fills in everything for you.\n")


def _setup(name: str, args: Namespace) -> None:
    client = clients()[name]
    if args.project and client.project is None:
        raise UsageError(f"{client.title} has no settings for a single project.", "Leave out --project.")
    if args.gateway and args.tools:
        raise UsageError("--gateway and --tools exclude each other.", "The gateway always lists its two tools.")
    path = Path(args.file).expanduser().absolute() if args.file else client.path(project=args.project)
    if args.remove:
        return _remove(name, client, path)
    server = _server(name, client_token(name), gateway=args.gateway, tools=args.tools)
    stdio = args.stdio or client.http is None
    if args.write:
        return _write(client, path, server, stdio=stdio)
    _say(f"Add this to {path}, merged with its other settings:\n")
    print(block(client, server, stdio=stdio), flush=True)
    _say("")
    if name == "claude-code":
        _say(f"Or let Claude Code do it:\n  {_claude_command(server, stdio=stdio, project=args.project)}\n")
    options = "".join(f" --{o}" for o in ("gateway", "stdio", "project") if getattr(args, o))
    options += f" --tools {args.tools}" if args.tools else ""
    _say(f"Or let Tabhub add it and make a backup:\n  tabhub setup {name}{options} --write")
    if not stdio:
        _say("")
        show_warning(
            f"These settings contain {client.title}'s own token: anyone who reads them can call tools in its name. "
            f"To revoke it: tabhub setup {name} --remove"
        )


def client_token(name: str) -> str:
    """The client's token; created if it has none."""
    token, how = tokens.client_token(Home.find(), name, time.time())
    if how == "created":
        _say(f"Created the token {name!r}. `tabhub token list` shows all tokens.")
    elif how == "replaced":
        show_warning(f"The token {name!r} was replaced. Who used the earlier one has to get the new one.")
    return token


def _say(text: str) -> None:
    """Print to stderr: stdout is for the settings alone."""
    print(text, file=sys.stderr, flush=True)


def _claude_command(server: Server, *, stdio: bool, project: bool) -> str:
    """The same with Claude Code's own command, in the scope of the settings file (its default is this folder only)."""
    add = f"claude mcp add --scope {'project' if project else 'user'}"
    if stdio:
        # --env takes every word up to the next option, so the name must come first.
        env = "".join(f" --env {shlex.quote(f'{key}={value}')}" for key, value in server.env.items())
        return f"{add} {NAME}{env} -- {shlex.join(server.command)}"
    url = shlex.quote(server.url)  # a question mark is special in a shell
    return f'{add} --transport http {NAME} {url} --header "Authorization: Bearer {server.token}"'


def _write(client: Client, path: Path, server: Server, *, stdio: bool) -> None:
    merged = merge(path, client, client.entry(server, stdio=stdio))
    if merged is None:
        return print(f"{path} is already up to date.")
    print(f"Added {NAME} to {path}." if merged.added else f"Updated {NAME} in {path}.")
    if merged.backup is not None:
        print(f"Backup: {merged.backup}")
    print(f"{client.title}: {client.restart}")
    if not stdio and merged.mode & 0o077:
        show_warning(f"{path} contains a token for your hub, and other users can read it. Run: chmod 600 {path}")
    if not stdio and client.project is not None and path == client.path(project=True):
        show_warning(f"{path} contains a token for your hub. Keep it out of version control, or use --stdio.")


def _remove(name: str, client: Client, path: Path) -> None:
    """Take our entry out of the client's settings, and revoke its token."""
    removed = remove(path, client)
    if removed is not None:
        print(f"Removed {NAME} from {path}.\nBackup: {removed.backup}")
    try:
        tokens.revoke(Home.find(), name)
    except SetupError as error:
        if removed is None:
            raise UsageError(f"{path} has no entry {NAME}, and {client.title} has no token.", error.hint) from None
        print(f"{client.title} had no token.")
    else:
        print(f"Revoked the token of {client.title}. It stops working at once.")
    for other in {client.path(project=False), client.path(project=True)} - {path}:
        if _has_entry(client, other):
            show_warning(
                f"{other} still has the entry {NAME}. Remove it too: tabhub setup {name} --remove --file {other}"
            )


def _has_entry(client: Client, path: Path) -> bool:
    try:
        return find(client, path.read_text("utf-8")) is not None
    except (OSError, ValueError, JsoncError, TomlError):
        return False


_OPTIONS = (
    option("--write", action="store_true", help="add it to the client's settings, with a backup"),
    option("--gateway", action="store_true", help="two tools that find and call all others, for small contexts"),
    option("--tools", metavar="WORDS", type=selection, help="list only these tools, such as core or core,network"),
    option(
        "--stdio", action="store_true", help="let the client run `tabhub start --stdio`; its settings hold no token"
    ),
    option("--remove", action="store_true", help="remove it from the client's settings, and revoke the client's token"),
    option("--project", action="store_true", help="the settings of the project in this folder"),
    option("--file", metavar="PATH", help="settings file to use instead of the usual one"),
)
COMMAND = Group(
    {
        name: Command(
            partial(_setup, name),
            *_OPTIONS,
            summary=f"Connect {client.title}",
            details=f"Settings file: {client.path(project=False)}"
            + (f"\nWith --project: {client.project} in this folder" if client.project else ""),
            examples=(
                (f"tabhub setup {name}", "print the settings"),
                (f"tabhub setup {name} --write", "add them to the file"),
                (f"tabhub setup {name} --gateway", "only the tools that find and call others"),
                (f"tabhub setup {name} --tools all", "list all tools"),
                (f"tabhub setup {name} --remove", "disconnect it"),
            ),
        )
        for name, client in clients().items()
    }
    | {
        "--migrate": Command(
            lambda _args: migrate(_server, client_token),
            summary="Give each client of version 0.1.0 its own token; their shared secret then opens nothing",
        )
    },
    examples=(
        ("tabhub setup cursor", "print what Cursor needs"),
        ("tabhub setup claude-code --write", "write it into Claude Code's settings"),
    ),
)
