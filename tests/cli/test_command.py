"""The shape of the command line: help, usage errors, exit codes, colour."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

from tabhub import __version__
from tabhub.cli import TABHUB, main
from tabhub.cli.command import Group, LazyCommand
from tests.cli.conftest import Run
from tests.cli.fake_http_hub import FakeHub

HEAVY = {"asyncio", "jsonschema_rs", "jwt", "msgspec", "orjson", "rich", "ssl", "tabhub.errors", "tabhub.limits"}


def names_of_commands(group: Group) -> Iterator[list[str]]:
    for name, command in group.commands.items():
        yield [name]
        loaded = command.load() if isinstance(command, LazyCommand) else command
        if isinstance(loaded, Group):
            yield from ([name, *rest] for rest in names_of_commands(loaded))


@pytest.mark.parametrize("words", list(names_of_commands(TABHUB)), ids=" ".join)
def test_every_command_has_help_with_its_usage(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    assert main([*words, "--help"]) == 0
    shown = capsys.readouterr()
    assert f"Usage: tabhub {' '.join(words)}" in shown.out
    assert shown.err == ""


@pytest.mark.parametrize("words", [[], ["tool"], ["plugin"], ["mcp"], ["relay"], ["relay", "token"]], ids=str)
def test_the_help_of_a_group_imports_no_heavy_modules(env: dict[str, str], words: list[str]) -> None:
    code = f"import sys; from tabhub.cli import main; main([*{words}, '--help']); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True)
    assert not HEAVY & set(done.stderr.split())


def test_version(tabhub: Run) -> None:
    assert tabhub("--version").stdout == f"tabhub {__version__}\n"
    assert tabhub("-V").returncode == 0


def test_no_command_shows_the_help_and_is_wrong_usage(tabhub: Run) -> None:
    done = tabhub()
    assert done.returncode == 2
    assert "Commands:" in done.stdout
    assert tabhub("help").returncode == 0
    assert "Usage: tabhub tool call" in tabhub("help", "tool", "call").stdout


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["strat"], "did you mean 'tabhub start'?"),
        (["tool", "cal"], "did you mean 'tabhub tool call'?"),
        (["setup", "claud-code"], "did you mean 'tabhub setup claude-code'?"),
        (["zzz"], "the commands are start, stop"),
        (["--zzz"], "unknown option '--zzz'"),
        (["--hepl"], "did you mean 'tabhub --help'?"),
        (["sessions", "ned", "3f9c"], "did you mean 'end'?"),
        (["mcp", "import", "cusor"], "did you mean 'cursor'?"),
        (["start", "--bakground"], "did you mean '--background'?"),
        (["start", "--port", "eighty"], "'eighty' is not a port"),
        (["start", "--port", "70000"], "'70000' is not a port"),
        (["start", "--stdio", "--background"], "exclude each other"),
        (["start", "--as", "cursor"], "belongs to --stdio"),
        (["tool", "call"], "required: NAME"),
        (["tool", "call", "x", "--tab-id", "y"], "--tab-id: 'y' is not a whole number"),
        (["tool", "call", "x", "--timeout", "-1"], "'-1' is not a number of seconds"),
        (["tool", "call", "x", "--timeout", "nan"], "'nan' is not a number of seconds"),
        (["tool", "call", "x", "--timeout", "inf"], "'inf' is not a number of seconds"),
        (["stop", "--timeout", "soon"], "'soon' is not a number of seconds"),
        (["relay", "token", "revoke"], "No token was given."),
        (["audit", "--since", "yesterday"], "invalid time 'yesterday'. Use 30m"),
        (["audit", "--success", "--failed"], "not allowed with"),
        (["audit", "--limit", "0"], "'0' is not a whole number above 0"),
        (["logs", "-n", "-5"], "-n"),
        (["config", "set", "port"], "No value for 'port'"),
        (["config", "set", "prt", "1"], "Did you mean 'port'?"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_wrong_usage_exits_with_2_and_suggests_a_correction(tabhub: Run, words: list[str], expected: str) -> None:
    done = tabhub(*words)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert expected in done.stderr


@pytest.mark.parametrize(
    "words",
    [["tool", "call", b"br\xffx", "{}"], ["audit", "--tool", b"br\xffx"], ["tool", "list", "--plugin", b"br\xffx"]],
)
def test_arguments_that_are_not_utf8_are_a_usage_error(
    hub: FakeHub, env: dict[str, str], words: list[str | bytes]
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tabhub", *words], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "'br\\udcffx' is not UTF-8 text." in done.stderr
    assert "Traceback" not in done.stderr


def test_closed_pipe_gives_no_traceback(hub: FakeHub, env: dict[str, str]) -> None:
    tools = [{"name": f"tool_{n}", "description": "x" * 100, "plugin": "p"} for n in range(3000)]
    hub.answer("GET /tools", tools)
    done = subprocess.run(
        f"{sys.executable} -m tabhub tool list | head -1",
        shell=True,
        capture_output=True,
        text=True,
        env=env,
        check=True,
    )
    assert done.stdout == "p (3000 tools)\n"
    assert done.stderr == ""


def test_a_broken_secret_file_is_named(home: Path, tabhub: Run) -> None:
    (home / "extension" / "auth.json").write_text("{")
    done = tabhub("status")
    assert done.returncode == 1
    assert "auth.json is not valid JSON" in done.stderr
    assert "tabhub doctor" in done.stderr


def test_unusable_home_means_no_running_hub(tabhub: Run) -> None:
    done = tabhub("status", TABHUB_HOME="/dev/null/home")
    assert (done.returncode, done.stderr.splitlines()[0]) == (2, "error: The hub is not running on 127.0.0.1:9515.")


def on_a_terminal(words: list[str], env: dict[str, str], columns: int = 0) -> str:
    """What the command shows a person at a terminal."""
    ours, theirs = pty.openpty()
    if columns:
        termios.tcsetwinsize(theirs, (24, columns))
    child = subprocess.Popen(
        [sys.executable, "-m", "tabhub", *words],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**env, "TERM": "xterm"},
    )
    os.close(theirs)
    shown = b""
    try:
        while part := os.read(ours, 65536):
            shown += part
    except OSError:
        pass  # how Linux reports that the other end has closed
    finally:
        os.close(ours)
    child.wait(30)
    return shown.decode().replace("\r\n", "\n")


def test_colour_only_on_terminals_that_allow_it(hub: FakeHub, env: dict[str, str], tabhub: Run) -> None:
    assert "\x1b[31merror:\x1b[0m" in on_a_terminal(["strat"], env)
    assert "\x1b" not in on_a_terminal(["strat"], {**env, "NO_COLOR": "1"})
    assert "\x1b" not in tabhub("strat").stderr


def test_a_narrow_terminal_still_shows_the_names_of_tools(hub: FakeHub, env: dict[str, str]) -> None:
    hub.answer("GET /tools", [{"name": "browser_open_tab", "description": "Opens a tab. " * 9, "plugin": "browser"}])
    assert "  browser_open_tab\n    Opens a tab. Opens a tab. Opens…\n" in on_a_terminal(["tool", "list"], env, 36)
    assert "  browser_open_tab  Opens a tab." in on_a_terminal(["tool", "list"], env, 80)
    call = {"tool": "browser_get_connection_status", "client": "c", "tokenName": "c", "success": True, "durationMs": 12}
    hub.answer("GET /audit", [{"timestamp": "2026-01-31T14:00:05+00:00", **call}])
    narrow = on_a_terminal(["audit"], env, 36)
    assert ":05  done       c:\n    browser_get_connection_status,\n    12 ms\n" in narrow
    assert ":05  done       c: browser_get_connection_status, 12 ms\n" in on_a_terminal(["audit"], env, 80)


def test_page_text_cannot_control_the_terminal(hub: FakeHub, env: dict[str, str], tabhub: Run) -> None:
    evil = "a\x1b]0;owned\x07b\u202ec"
    hub.answer("POST /tools/t/call", {"content": [{"type": "text", "text": evil}]})
    shown = on_a_terminal(["tool", "call", "t"], env)
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert "\u202e" not in shown
    assert tabhub("tool", "call", "t").stdout == f"{evil}\n"  # a script gets the exact bytes of the tool
