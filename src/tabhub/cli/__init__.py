"""The `tabhub` command.

Owns the list of commands and how a failure ends the process. A command's module is imported when that command is
used and not before: `tabhub tool call` has to start in a few milliseconds.

Exit codes: 0 it worked, 1 it failed, 2 wrong usage or the hub is not running, 130 interrupted.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from tabhub.cli.command import Group, LazyCommand, run_command
from tabhub.cli.terminal import show_error
from tabhub.client_errors import CliError

TABHUB = Group(
    {
        "start": LazyCommand("Start the hub", "tabhub.cli.start"),
        "stop": LazyCommand("Stop the hub", "tabhub.cli.stop"),
        "status": LazyCommand("Show whether the hub is running and what is connected", "tabhub.cli.status"),
        "logs": LazyCommand("Show the hub's log", "tabhub.cli.logs"),
        "doctor": LazyCommand("Diagnose the setup from agent to browser tab and suggest fixes", "tabhub.cli.doctor"),
        "demo": LazyCommand("Take a tour: an agent uses an example shop, step by step", "tabhub.cli.demo.command"),
        "setup": LazyCommand("Connect Claude Code, Cursor, VS Code or another MCP client", "tabhub.cli.setup.command"),
        "tool": LazyCommand("List tools, show their schemas, call them", "tabhub.cli.tool"),
        "agent": LazyCommand("Give a task to a model that uses the hub's tools", "tabhub.cli.agent"),
        "sessions": LazyCommand("List agents' sessions; end one or release its tab", "tabhub.cli.sessions"),
        "pause": LazyCommand("Pause agents: calls that act wait until you resume", "tabhub.cli.sessions", "PAUSE"),
        "resume": LazyCommand("Resume agents: waiting calls continue", "tabhub.cli.sessions", "RESUME"),
        "site": LazyCommand("Choose what agents may do on which sites", "tabhub.cli.site"),
        "permissions": LazyCommand(
            "List and revoke what agents may always do; explain a call", "tabhub.cli.permissions"
        ),
        "approve": LazyCommand("Approve or deny pending calls", "tabhub.cli.approve"),
        "token": LazyCommand("Create, list and revoke tokens: one for each agent", "tabhub.cli.token"),
        "secret": LazyCommand("Store secrets that agents can use but not read", "tabhub.cli.secret"),
        "audit": LazyCommand("Show which tools were called, by whom, and the outcome", "tabhub.cli.audit"),
        "config": LazyCommand("Show and change settings; rotate the extension's key", "tabhub.cli.config"),
        "plugin": LazyCommand("Find, install and configure plugins for web apps", "tabhub.cli.plugin"),
        "mcp": LazyCommand("Add, list, enable, disable and refresh external MCP servers", "tabhub.cli.mcp"),
        "relay": LazyCommand("Run a relay for browsers and agents on different machines", "tabhub.cli.relay"),
        "extension": LazyCommand("Show where the browser extension is and how to load it", "tabhub.cli.extension"),
    },
    summary="One local hub that lets AI agents use the tabs of your real browser",
    examples=(
        ("tabhub start --background", "start the hub in the background"),
        ("tabhub setup claude-code --write", "connect Claude Code"),
        ("tabhub tool call browser_list_tabs", "call a tool from the shell"),
        ("tabhub doctor", "find out what is wrong"),
    ),
)


def main(argv: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # what pages say may not fit the terminal's encoding
            stream.reconfigure(errors="backslashreplace")
    if words[:1] in (["-V"], ["--version"]):
        from tabhub import __version__

        print(f"tabhub {__version__}")
        return 0
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    try:
        code = run_command(TABHUB, "tabhub", words)
        sys.stdout.flush()
        return code
    except CliError as error:
        show_error(error.message, error.hint, error.detail)
        return error.exit_code
    except KeyboardInterrupt:
        import signal

        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second Ctrl+C must not show a traceback
        return 130
    except BrokenPipeError:
        # The reader (`| head`) has closed the pipe; keep the interpreter from reporting it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except UnicodeEncodeError:
        # Python keeps bytes of an argument that are not UTF-8 as lone surrogates.
        wrong = next((word for word in words if any("\udc80" <= c <= "\udcff" for c in word)), None)
        if wrong is None:
            raise
        show_error(f"{wrong!r} is not UTF-8 text.", "What stands after \\udc is a byte of it; write it in UTF-8.")
        return 2
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        show_error(f"{error.strerror or error}{where}.", "Run `tabhub doctor` to check the setup.")
        return 1
    except Exception as error:
        errors = sys.modules.get("tabhub.errors")  # not imported: then it cannot have raised
        if errors is None or not isinstance(error, errors.TabhubError):
            raise
        show_error(error.message, error.hint)
        return 1
