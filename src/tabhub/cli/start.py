"""`tabhub start`: the hub in the foreground or in the background, or the stdio server of one MCP client.

Owns the command's options and what it prints. Serving is `tabhub.server.run`'s, spawning `tabhub.cli.hub.background`'s.
"""

from __future__ import annotations

import os
import sys
from argparse import SUPPRESS, BooleanOptionalAction

from tabhub.cli.command import Command, option, port
from tabhub.cli.hub.client import find_hub
from tabhub.cli.terminal import paint
from tabhub.client_errors import CliError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from typing import Any


def start(args: Namespace) -> int:
    if (args.relay is None) != (args.token_file is None):
        raise CliError(
            "--relay and --token-file belong together.",
            "Get a token from the relay's operator, or with `tabhub relay token issue`.",
            exit_code=2,
        )
    if args.show_secret and not args.show_config:
        raise CliError(
            "--show-secret belongs to --show-config.", "`tabhub config show --show-secret` shows it alone.", exit_code=2
        )
    if args.stdio:
        if args.background:
            raise CliError(
                "--stdio and --background exclude each other.", "--stdio starts a hub if none runs.", exit_code=2
            )
        from tabhub.cli.stdio.server import run_stdio

        return run_stdio(_words(args), gateway=args.gateway, tools=args.tools)
    if args.gateway:
        raise CliError(
            "--gateway belongs to --stdio.", "Over HTTP the gateway is always there: /mcp/gateway", exit_code=2
        )
    if args.tools is not None:
        raise CliError(
            "--tools belongs to --stdio.", "Over HTTP it is part of the address: /mcp?tools=core", exit_code=2
        )
    if args.background:
        from tabhub.cli.hub.background import start_in_background

        _refuse_taken_port(args)
        hub, facts = start_in_background(_words(args))
        _greet(
            {
                "url": f"http://{hub.address}",
                "port": hub.port,
                "home": hub.home,
                "connected": facts.get("extensionConnected"),
                "skipPermissions": facts.get("skipPermissions"),
            },
            args,
            background=True,
        )
        return 0
    return _serve(args)


def _serve(args: Namespace) -> int:
    from tabhub.cli.hub.background import refuse_second

    if not args.background_child:  # there, the parent has looked
        refuse_second()
        _refuse_taken_port(args)
    from tabhub.server.run import StartOptions, serve

    return serve(
        StartOptions(
            port=args.port,
            launch=args.launch,
            headless=args.headless,
            home=find_hub().home,
            relay=(args.relay, args.token_file) if args.relay is not None else None,
            background_child=args.background_child,
            on_ready=None if args.background_child else lambda facts: _greet(facts, args, background=False),
        )
    )


def _words(args: Namespace) -> list[str]:
    """The options of the hub, for its process."""
    words = []
    if args.port is not None:
        words += ["--port", str(args.port)]
    if args.launch is not None:
        words.append("--launch" if args.launch else "--no-launch")
    if args.headless:
        words.append("--headless")
    if args.relay is not None:
        from pathlib import Path

        words += ["--relay", args.relay, "--token-file", str(Path(args.token_file).expanduser().absolute())]
    return words


def _refuse_taken_port(args: Namespace) -> None:
    """Name the process that uses the port, before a hub is started only to fail."""
    from tabhub.cli.hub.port import holder, taken
    from tabhub.store.config_file import load
    from tabhub.store.home import Home

    port = args.port if args.port is not None else load(Home.find(), os.environ).port
    if port and taken(port):
        raise CliError(
            f"Port {port} is taken: {holder(port)} listens on it.",
            f"End that process, or use another port: tabhub start --port {port + 1 if port < 65535 else 9515}",
        )


def _greet(facts: dict[str, Any], args: Namespace, *, background: bool) -> None:
    """Print where the hub is and what to do next."""
    from tabhub import __version__

    home = str(facts.get("home") or find_hub().home)
    print(f"{paint(f'Tabhub {__version__}', 'bold')} is running on {paint(str(facts.get('url')), 'cyan')}\n")
    if args.show_config:
        from tabhub.cli.setup.command import show_all

        show_all(show_secret=args.show_secret)
    else:
        print("Connect an agent:")
        for client in ("claude-code", "claude-desktop", "cursor", "vscode", "windsurf", "opencode", "codex"):
            print(f"  tabhub setup {client}")
        print("\nEach prints what to add to the client's settings; with --write it is added for you.")
        print("From the shell, without MCP: tabhub tool list")
        if os.environ.get("MAKELEVEL"):  # make's PATH has the checkout's programs, the person's own has not
            print(f"In this checkout, `tabhub` is {os.path.relpath(os.path.dirname(sys.executable))}/tabhub")  # noqa: PTH120
        print()
    if facts.get("skipPermissions"):
        from tabhub.cli.status import SKIPPED
        from tabhub.cli.terminal import show_warning

        sys.stdout.flush()
        show_warning(f"{SKIPPED}.")
    browser = facts.get("browser")
    if browser:
        name = browser.get("name", "a browser of its own") if isinstance(browser, dict) else browser
        print(f"Browser: {name}, started by the hub.")
    elif args.launch:
        print("Browser: one of the hub's own is starting; `tabhub status` shows it.")
    elif facts.get("connected"):
        print("Browser: connected.")
    else:
        print("Connect your browser (Chrome, Chromium, Edge or Brave), once:")
        print("  1. Open chrome://extensions and switch on Developer mode.")
        print(f"  2. Load unpacked: {home}/extension")
        print("Or let the hub start a browser of its own: stop it, then tabhub start --launch")
    print(f"\nLogs: {home}/logs/hub.log (tabhub logs -f)")
    print("Stop: tabhub stop" if background else "Stop: Ctrl+C")
    sys.stdout.flush()


COMMAND = Command(
    "Start the hub",
    start,
    option("--port", metavar="N", type=port, help="port to listen on (default: TABHUB_PORT, PORT, the setting, 9515)"),
    option("--background", action="store_true", help="return when the hub is ready, and keep it running"),
    option(
        "--launch",
        action=BooleanOptionalAction,
        default=None,
        help="start a separate browser with the extension loaded; --no-launch waits for yours",
    ),
    option("--headless", action="store_true", default=None, help="that browser without a window"),
    option("--relay", metavar="URL", help="use the browsers you have at a relay, too: wss://… (needs --token-file)"),
    option("--token-file", metavar="FILE", help="with --relay: the file that holds your token for it"),
    option(
        "--stdio",
        action="store_true",
        help="serve MCP on stdin and stdout through the hub; start a hub if none is running",
    ),
    option("--gateway", action="store_true", help="with --stdio: offer the two gateway tools instead of all"),
    option("--tools", metavar="WORDS", help="with --stdio: offer a selection of tools, such as core or core,network"),
    option("--show-config", action="store_true", help="print the settings for every MCP client"),
    option("--show-secret", action="store_true", help="with --show-config: do not mask the secret"),
    option("--background-child", action="store_true", help=SUPPRESS),
    details=(
        "The hub listens on this machine only. Everything it keeps is in ~/.tabhub, or where TABHUB_HOME says.\n"
        "Without --launch it waits for the extension in your own browser."
    ),
    examples=(
        ("tabhub start", "in this terminal, until Ctrl+C"),
        ("tabhub start --background --launch", "in the background, with a browser of its own"),
        ("tabhub start --port 9600", "on another port"),
        ("tabhub start --relay wss://relay.example.com --token-file ~/relay.token", "with your browsers elsewhere"),
        ("tabhub start --stdio", "as an MCP client starts it"),
    ),
)
