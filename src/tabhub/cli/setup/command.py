"""`tabhub setup CLIENT`: print what to add to an MCP client's settings, or add it.

Owns the command. The clients are in `tabhub.cli.setup.clients`, merging a file in `tabhub.cli.setup.merge`.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tabhub.cli.command import Command, Group, option
from tabhub.cli.config import mask
from tabhub.cli.hub.client import HOST, find_hub, read_json
from tabhub.cli.setup.clients import NAME, Client, Server, clients
from tabhub.cli.setup.merge import Merged, merge
from tabhub.cli.setup.toml_table import set_table
from tabhub.cli.terminal import paint, show_warning
from tabhub.client_errors import CliError

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable


def _server(*, gateway: bool, tools: str | None = None) -> Server:
    """The hub of this home, with its secret (made if there is none yet); `tools` is the selection it is to list."""
    from tabhub.store.config_file import load
    from tabhub.store.home import Home
    from tabhub.store.secret import load_or_create

    home = Home.find()
    secret = load_or_create(home)
    hub = find_hub()
    if hub.pid is None and not isinstance((read_json(str(home.auth)) or {}).get("port"), int):
        port = load(home, os.environ).port  # never started yet: where it will be
    else:
        port = hub.port
    words = [*_program(), "start", "--stdio"] + (["--gateway"] if gateway else [])
    words += ["--tools", tools] if tools else []
    env = {"TABHUB_HOME": hub.home} if os.environ.get("TABHUB_HOME") else {}
    if os.environ.get("TABHUB_PORT"):
        env["TABHUB_PORT"] = str(port)
    path = "/mcp/gateway" if gateway else f"/mcp?tools={tools}" if tools else "/mcp"
    return Server(f"http://{HOST}:{port}{path}", secret, tuple(words), env)


def selection(text: str) -> str:
    """Check a selection of tools, and return it as part of a URL."""
    from argparse import ArgumentTypeError

    from tabhub.browser.families import CORE, FAMILIES
    from tabhub.core.listing.profiles import Profiles
    from tabhub.errors import InvalidParams

    try:
        Profiles(FAMILIES, CORE).select(text)
    except InvalidParams as error:
        raise ArgumentTypeError(error.text()) from None
    words = ",".join(word.strip().lower() for word in text.split(",") if word.strip())
    if not words:
        raise ArgumentTypeError("a selection has at least one word, such as core")
    return words


def _program() -> list[str]:
    """The command that starts us: with its full path, because a client may have another PATH."""
    beside = Path(sys.executable).with_name("tabhub")
    found = str(beside) if os.access(beside, os.X_OK) else shutil.which("tabhub")
    return [found] if found else [sys.executable, "-m", "tabhub"]


def block(client: Client, server: Server, *, stdio: bool) -> str:
    """The settings for the client, as text to copy."""
    entry = client.entry(server, stdio=stdio)
    if client.toml:
        return set_table("", client.section, NAME, entry).rstrip("\n")
    return json.dumps({client.section: {NAME: entry}}, indent=2, ensure_ascii=False)


def show_all(*, show_secret: bool) -> None:
    """Print the settings for all clients, with the secret masked unless requested."""
    server = _server(gateway=False)
    if not show_secret:
        server = Server(server.url, mask(server.secret), server.command, server.env)
    for client in clients().values():
        print(paint(f"{client.title} ({client.path(project=False)}):", "bold"))
        print(f"{block(client, server, stdio=False)}\n")
    print(f"Gateway, two tools instead of all: {server.url}/gateway")
    if not show_secret:
        print("The secret is masked; --show-secret shows it, `tabhub setup CLIENT --write` fills it in for you.")
    print()


def _setup(name: str) -> Callable[[Namespace], int]:
    def run(args: Namespace) -> int:
        client = clients()[name]
        if args.project and client.project is None:
            raise CliError(f"{client.title} has no settings for a single project.", "Leave out --project.", exit_code=2)
        if args.gateway and args.tools:
            raise CliError(
                "--gateway and --tools exclude each other.", "The gateway always lists its two tools.", exit_code=2
            )
        server = _server(gateway=args.gateway, tools=args.tools)
        path = Path(args.file).expanduser().absolute() if args.file else client.path(project=args.project)
        stdio = args.stdio or client.http is None
        if args.write:
            return _write(client, path, client.entry(server, stdio=stdio), secret=not stdio)
        _say(f"Add this to {path}, merged into what is there:\n")
        print(block(client, server, stdio=stdio))
        sys.stdout.flush()
        _say("")
        if name == "claude-code":
            _say(f"Or let Claude Code do it:\n  {_claude_command(server, stdio=stdio, project=args.project)}\n")
        options = "".join(f" --{o}" for o in ("gateway", "stdio", "project") if getattr(args, o))
        options += f" --tools {args.tools}" if args.tools else ""
        _say(f"Or let Tabhub merge it in, with a backup:\n  tabhub setup {name}{options} --write")
        if not stdio:
            _say("")
            show_warning("These settings contain your hub's secret: anyone who reads them can use your browser.")
        return 0

    return run


def _say(text: str) -> None:
    """Print to stderr: stdout is for the settings alone."""
    print(text, file=sys.stderr, flush=True)


def _claude_command(server: Server, *, stdio: bool, project: bool) -> str:
    """The same by Claude Code's own command, in the scope of the file named; without one it means this folder alone."""
    add = f"claude mcp add --scope {'project' if project else 'user'}"
    if stdio:
        # --env takes every word up to the next option, so the name has to stand before it.
        env = "".join(f" --env {shlex.quote(f'{key}={value}')}" for key, value in server.env.items())
        return f"{add} {NAME}{env} -- {shlex.join(server.command)}"
    url = shlex.quote(server.url)  # a question mark means something to a shell
    return f'{add} --transport http {NAME} {url} --header "Authorization: Bearer {server.secret}"'


def _write(client: Client, path: Path, entry: dict[str, Any], *, secret: bool) -> int:
    done: Merged = merge(path, client, entry)
    if not done.changed:
        print(f"{path} has it already; nothing was changed.")
        return 0
    print(f"Added {NAME} to {path}." if done.added else f"Updated {NAME} in {path}.")
    if done.backup is not None:
        print(f"The file as it was: {done.backup}")
    print(f"{client.title}: {client.restart}")
    if secret and done.mode & 0o077:
        show_warning(f"{path} now holds the secret of your hub, and other users can read it. Run: chmod 600 {path}")
    if secret and client.project is not None and path == client.path(project=True):
        show_warning(f"{path} holds the secret of your hub: keep it out of version control.")
    return 0


COMMAND = Group(
    "Connect an MCP client to the hub: print the required settings, or write them.",
    {
        name: Command(
            f"Connect {client.title}",
            _setup(name),
            option("--write", action="store_true", help="merge it into the client's settings, with a backup"),
            option(
                "--gateway", action="store_true", help="two tools that find and call all others, for small contexts"
            ),
            option(
                "--tools",
                metavar="WORDS",
                type=selection,
                help="list only these tools: core, or families such as core,network",
            ),
            option(
                "--stdio", action="store_true", help="let the client run `tabhub start --stdio`; contains no secret"
            ),
            option("--project", action="store_true", help="the settings of the project in this folder"),
            option("--file", metavar="PATH", help="settings file to use instead of the usual one"),
            details=f"Settings file: {client.path(project=False)}"
            + (f"\nWith --project: {client.project} in this folder" if client.project else ""),
            examples=(
                (f"tabhub setup {name}", "print it"),
                (f"tabhub setup {name} --write", "merge it into the file"),
                (f"tabhub setup {name} --gateway", "two tools instead of all"),
                (f"tabhub setup {name} --tools core", "the tools most work needs"),
            ),
        )
        for name, client in clients().items()
    },
    examples=(
        ("tabhub setup cursor", "print what Cursor needs"),
        ("tabhub setup claude-code --write", "write it into Claude Code's settings"),
    ),
)
