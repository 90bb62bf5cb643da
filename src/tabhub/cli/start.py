"""`tabhub start`: the hub in the foreground or in the background, or the stdio server of one MCP client.

Owns the command's options and what it prints. Serving is `tabhub.server.run`'s, spawning `tabhub.cli.hub.background`'s.
"""

from __future__ import annotations

import os
import sys
from argparse import SUPPRESS, BooleanOptionalAction, Namespace

from tabhub.cli.command import Command, option, port
from tabhub.cli.hub.client import find_hub
from tabhub.cli.terminal import paint
from tabhub.client_errors import CliError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def start(args: Namespace) -> int:
    _check_options(args)
    if args.stdio:
        from tabhub.cli.stdio.server import run_stdio

        return run_stdio(_hub_options(args), gateway=args.gateway, tools=args.tools, agent=args.agent)
    if args.background:
        from tabhub.cli.hub.background import refuse_second, start_in_background

        refuse_second()
        _refuse_taken_port(args)
        hub, facts = start_in_background(_hub_options(args))
        running = {"connected": facts.get("extensionConnected")} | {
            n: facts.get(n) for n in ("skipPermissions", "notices")
        }
        _greet({**running, "url": f"http://{hub.address}", "home": hub.home}, args)
        return 0
    return _serve(args)


def _check_options(args: Namespace) -> None:
    problem, hint = None, None
    if (args.relay is None) != (args.token_file is None):
        problem = "--relay and --token-file belong together."
        hint = "Get a token from the relay's operator, or with `tabhub relay token issue`."
    elif args.stdio and args.background:
        problem, hint = "--stdio and --background exclude each other.", "--stdio starts a hub if none is running."
    elif args.gateway and not args.stdio:
        problem, hint = "--gateway belongs to --stdio.", "Over HTTP the gateway is always available: /mcp/gateway"
    elif args.agent is not None and not args.stdio:
        problem, hint = "--as belongs to --stdio.", "Over HTTP the token in the Authorization header says who it is."
    elif args.tools is not None and not args.stdio:
        problem, hint = "--tools belongs to --stdio.", "Over HTTP it is part of the URL: /mcp?tools=core"
    if problem is not None:
        raise UsageError(problem, hint)


def _serve(args: Namespace) -> int:
    from tabhub.cli.hub.background import refuse_second

    if not args.background_child:  # otherwise, the parent has checked
        refuse_second()
        _refuse_taken_port(args)
    import gc

    gc.disable()  # what is loaded now stays; the hub enables it when it is ready
    from tabhub.server.run import StartOptions, serve

    return serve(
        StartOptions(
            port=args.port,
            launch=args.launch,
            headless=args.headless,
            home=find_hub().home,
            relay=(args.relay, args.token_file) if args.relay is not None else None,
            background_child=args.background_child,
            on_ready=None if args.background_child else lambda facts: _greet(facts, args),
        )
    )


def _hub_options(args: Namespace) -> list[str]:
    options = []
    if args.port is not None:
        options += ["--port", str(args.port)]
    if args.launch is not None:
        options.append("--launch" if args.launch else "--no-launch")
    if args.headless:
        options.append("--headless")
    if args.relay is not None:
        token_file = os.path.abspath(os.path.expanduser(args.token_file))  # noqa: PTH100,PTH111 - pathlib is slower
        options += ["--relay", args.relay, "--token-file", token_file]
    return options


def _refuse_taken_port(args: Namespace) -> None:
    """Name the process that uses the port, before a hub is started only to fail."""
    from tabhub.cli.hub.port import holder, taken
    from tabhub.cli.hub.settings import home_and_config

    port = args.port if args.port is not None else home_and_config()[1].port
    if port and taken(port):
        raise CliError(
            f"Port {port} is in use by {holder(port)}.",
            f"End that process, or use another port: tabhub start --port {port + 1 if port < 65535 else 9515}",
        )


def _greet(facts: dict[str, Any], args: Namespace) -> None:
    from tabhub import __version__

    home = str(facts.get("home") or find_hub().home)
    print(f"{paint(f'Tabhub {__version__}', 'bold')} is running on {paint(str(facts.get('url')), 'cyan')}\n")
    if args.show_config:
        from tabhub.cli.setup.command import show_all

        show_all()
    else:
        print("Connect an agent:")
        for client in ("claude-code", "claude-desktop", "cursor", "vscode", "windsurf", "opencode", "codex"):
            print(f"  tabhub setup {client}")
        print("\nEach creates the client's own token and prints what to add to its settings; --write adds it for you.")
        print("From the shell, without MCP: tabhub tool list")
        if os.environ.get("MAKELEVEL"):  # make's PATH has the checkout's programs, the person's own has not
            print(f"In this checkout, `tabhub` is {os.path.relpath(os.path.dirname(sys.executable))}/tabhub")  # noqa: PTH120
        print()
    warnings = [str(notice) for notice in facts.get("notices") or []]
    if facts.get("skipPermissions"):
        from tabhub.cli.status import SKIPPED

        warnings.append(SKIPPED)
    if warnings:
        from tabhub.cli.terminal import show_warning

        sys.stdout.flush()
        for warning in warnings:
            show_warning(warning)
    browser = facts.get("browser")
    if browser:
        name = browser.get("name", "its own") if isinstance(browser, dict) else browser
        print(f"Browser: {name}, started by the hub.")
    elif args.launch:
        print("Browser: the hub is starting one; check with `tabhub status`.")
    elif facts.get("connected"):
        print("Browser: connected.")
    else:
        print("Connect your browser (Chrome, Chromium, Edge or Brave), once:")
        print("  1. Open chrome://extensions and switch on Developer mode.")
        print(f"  2. Click Load unpacked and choose {home}/extension")
        print("Or let the hub start a separate browser: tabhub stop, then tabhub start --launch")
    print(f"\nLogs: {home}/logs/hub.log (tabhub logs -f)")
    print("Stop: tabhub stop" if args.background else "Stop: Ctrl+C")
    sys.stdout.flush()


COMMAND = Command(
    start,
    option("--port", metavar="N", type=port, help="port to listen on (default: TABHUB_PORT, PORT, the setting, 9515)"),
    option("--background", action="store_true", help="return when the hub is ready, and keep it running"),
    option("--launch", action=BooleanOptionalAction, default=None, help="start a separate browser with the extension"),
    option("--headless", action="store_true", default=None, help="start that browser without a window"),
    option("--relay", metavar="URL", help="also use your browsers at a relay: wss://… (needs --token-file)"),
    option("--token-file", metavar="FILE", help="with --relay: the file with your token for it"),
    option("--stdio", action="store_true", help="serve MCP on stdin and stdout; start a hub if none is running"),
    option("--gateway", action="store_true", help="with --stdio: list the two gateway tools instead of all"),
    option(
        "--as", metavar="NAME", dest="agent", help="with --stdio: the client's name, whose token `tabhub setup` made"
    ),
    option("--tools", metavar="WORDS", help="with --stdio: list only these tools, such as core or core,network"),
    option("--show-config", action="store_true", help="print the settings for every MCP client"),
    option("--background-child", action="store_true", help=SUPPRESS),
    details=(
        "The hub listens on this machine only. Its files are in ~/.tabhub, or in the folder TABHUB_HOME.\n"
        "Without --launch it waits for the extension in your own browser."
    ),
    examples=(
        ("tabhub start", "in this terminal, until Ctrl+C"),
        ("tabhub start --background --launch", "in the background, with a separate browser"),
        ("tabhub start --port 9600", "on another port"),
        ("tabhub start --relay wss://relay.example.com --token-file ~/relay.token", "with your browsers elsewhere"),
        ("tabhub start --stdio --as cursor", "as an MCP client starts it"),
    ),
)
