"""`tabhub doctor`: check every part of the path from agent to tab, and name the broken one.

Owns what each check looks at and what a person can do about it, in order: machine, home, hub, browser, tabs. A check
never changes anything.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tabhub import __version__
from tabhub.cli.command import JSON, Command
from tabhub.cli.hub.client import HOST, Hub, decode, find_hub, is_json, request, response_error
from tabhub.cli.hub.port import holder, taken
from tabhub.cli.status import SKIPPED, attached_tabs, browser_words, browsers, own_end
from tabhub.cli.terminal import count, paint, print_json, safe
from tabhub.client_errors import CliError, HubDownError
from tabhub.errors import SetupError, TabhubError
from tabhub.net.http_client import Response

if TYPE_CHECKING:
    from argparse import Namespace

Level = Literal["ok", "warn", "fail"]
_START = "Start it with: tabhub start --background"
_CLOCK_SLACK = 5.0
_LITTLE_ROOM = 50_000_000
_NO_ROOM = 1_000_000
_OLDEST_PYTHON = (3, 11)
_STYLES = {"ok": "green", "warn": "yellow", "fail": "red"}
_RESTART = "Restart the hub: tabhub stop && tabhub start --background"
_RELOAD = "Reload the extension on chrome://extensions"


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found, and what to do about it."""

    name: str
    level: Level
    message: str
    remedy: str | None = None


def doctor(args: Namespace) -> int:
    findings: list[Finding] = []
    for finding in examine():
        findings.append(finding)
        if not args.json:
            _show(finding)
    broken = next((finding for finding in findings if finding.level == "fail"), None)
    if args.json:
        report = {
            "ok": broken is None,
            "broken": broken.name if broken else None,
            "checks": [asdict(finding) for finding in findings],
        }
        print_json(report)
        return 1 if broken else 0
    print()
    if broken is not None:
        print(f"{paint('Broken:', 'red')} {broken.name}. {safe(broken.message)}")
    elif any(finding.level == "warn" for finding in findings):
        print("Nothing is broken; see the warnings above.")
    else:
        print("Everything works, from here to the tabs.")
    return 1 if broken else 0


def _show(finding: Finding) -> None:
    label = paint(finding.level.ljust(4), _STYLES[finding.level])
    print(f"{label}  {finding.name.ljust(9)}  {safe(finding.message)}")
    if finding.remedy and finding.level != "ok":
        print(f"{' ' * 17}{paint('->', 'cyan')} {safe(finding.remedy)}", flush=True)


def examine() -> Iterator[Finding]:
    """Run the checks. After a failed one, those that depend on it are skipped."""
    yield _python()
    yield from _home()
    yield _config()
    yield _browser_program()
    try:
        hub = find_hub()
    except CliError as error:
        yield Finding("secret", "fail", error.message, "Make a new one: tabhub config rotate-secret")
        return
    yield _secret(hub)
    yield _extension_files(hub)
    yield from _hub(hub)


def _python() -> Finding:
    found = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] < _OLDEST_PYTHON:
        return Finding("python", "fail", f"Python {found} is too old.", "Install Python 3.11 or later.")
    return Finding("python", "ok", f"Python {found}, tabhub {__version__}")


def _home() -> Iterator[Finding]:
    from tabhub.store.home import Home

    try:
        root = Home.find().root
    except SetupError as error:
        yield Finding("home", "fail", error.message, error.hint)
        return
    above = next(folder for folder in (root, *root.parents) if folder.exists())
    if above != root:
        if above.is_dir() and os.access(above, os.W_OK | os.X_OK):
            yield Finding("home", "ok", f"{root} will be created when the hub starts")
            yield from _room(above)
        else:
            message = f"{root} cannot be made: {above} is {'not writable' if above.is_dir() else 'not a folder'}."
            yield Finding("home", "fail", message, "Set TABHUB_HOME to a folder you may write to.")
        return
    facts = root.stat()
    mode = stat.S_IMODE(facts.st_mode)
    if not root.is_dir():
        yield Finding("home", "fail", f"{root} is not a folder.", "Move it away, or set TABHUB_HOME to a folder.")
    elif facts.st_uid != os.geteuid():
        yield Finding("home", "fail", f"{root} belongs to another user.", "Run as that user, or set TABHUB_HOME.")
    elif not os.access(root, os.W_OK | os.X_OK):
        yield Finding("home", "fail", f"{root} is not writable.", f"Run: chmod 700 {root}, or set TABHUB_HOME.")
    elif mode & 0o022:
        yield Finding("home", "fail", f"Others may write to {root} (mode {mode:04o}).", f"Run: chmod 700 {root}")
    elif mode & 0o077:
        yield Finding("home", "warn", f"Others may look into {root} (mode {mode:04o}).", f"Run: chmod 700 {root}")
    else:
        yield Finding("home", "ok", str(root))
        yield from _room(root)


def _room(folder: Path) -> Iterator[Finding]:
    """A finding only if the disk is nearly full."""
    free = shutil.disk_usage(folder).free
    if free < _LITTLE_ROOM:
        message = f"The disk that {folder} is on has only {free / 1e6:.1f} MB left."
        remedy = "Make room: the log of calls, results and the hub's browser need it."
        yield Finding("disk", "fail" if free < _NO_ROOM else "warn", message, remedy)


def _config() -> Finding:
    from tabhub.store.config_file import load
    from tabhub.store.home import Home

    try:
        home = Home.find()
        config = load(home, os.environ)
    except SetupError as error:
        return Finding("config", "fail", error.message, error.hint)
    if config.problems:
        return Finding("config", "warn", " ".join(config.problems), f"Correct it in {home.config}")
    return Finding("config", "ok", f"{home.config}" if home.config.exists() else "defaults (no config file)")


def _browser_program() -> Finding:
    from tabhub.links.launch.installed_browsers import find_browsers

    try:
        found = find_browsers()
    except TabhubError as error:
        return Finding("program", "warn", error.message, error.hint)
    return Finding("program", "ok", "installed: " + ", ".join(f"{b.name} ({b.path})" for b in found))


def _secret(hub: Hub) -> Finding:
    path = Path(hub.home, "extension", "auth.json")
    if not path.exists():
        return Finding("secret", "ok", "will be created when the hub starts")
    if hub.secret is None or len(hub.secret) != 64:
        return Finding("secret", "fail", f"{path} holds no valid secret.", "Make one: tabhub config rotate-secret")
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        remedy = f"Run: chmod 600 {path}, then: tabhub config rotate-secret"
        return Finding("secret", "fail", f"Others can read {path} (mode {mode:04o}).", remedy)
    return Finding("secret", "ok", f"{path} (only you can read it)")


def _extension_files(hub: Hub) -> Finding:
    from tabhub.links.launch.extension_files import extension_version, packaged_extension

    folder = Path(hub.home, "extension")
    if not (folder / "manifest.json").exists():
        return Finding(
            "files", "warn", f"The extension is not in {folder} yet.", "The hub installs it there when it starts."
        )
    try:
        version, shipped = extension_version(folder), extension_version(packaged_extension())
    except SetupError as error:
        return Finding("files", "fail", error.message, error.hint)
    if version != shipped:
        return Finding("files", "warn", f"The extension in {folder} is {version}, shipped is {shipped}.", _RESTART)
    return Finding("files", "ok", f"extension {version} in {folder}")


def _hub(hub: Hub) -> Iterator[Finding]:
    """The hub, and through it the browser and its tabs."""
    if not taken(hub.port):
        port = _settings_port(hub)
        if port != hub.port and taken(port):
            message = f"{holder(port)} holds port {port}, on which the hub is to start."
            yield Finding("port", "fail", message, _another_port(port))
        else:
            yield Finding("port", "ok", f"{port} is free")
        yield Finding("hub", "fail", f"The hub is not running on {HOST}:{port}.", _START)
        return
    who = holder(hub.port)
    asked = time.time()
    try:
        answer = request(hub, "GET", "/health", timeout=5.0)
        refused = response_error(hub, answer) if answer.status != 200 else None
        if refused is not None and not is_json(answer):
            raise refused
        facts = decode(answer)
    except HubDownError as error:
        yield Finding("hub", "fail", error.message, _START)
        return
    except CliError as error:
        yield Finding("port", "fail", f"{who} holds port {hub.port}. {error.message}", _another_port(hub.port))
        return
    yield Finding("port", "ok", f"{hub.port} is held by {who}")
    if refused is not None:
        yield Finding("hub", "fail", refused.message, refused.hint)
        return
    if not isinstance(facts, dict) or "version" not in facts:
        remedy = "It is the hub of another home, or no hub: set TABHUB_HOME, or use another port."
        yield Finding("hub", "fail", f"What answers on {hub.address} does not know our secret.", remedy)
        return
    yield _state(hub, facts)
    if facts.get("skipPermissions") is True:
        remedy = "tabhub config set skipPermissions false, and start without TABHUB_DANGEROUSLY_SKIP_PERMISSIONS"
        yield Finding("permissions", "warn", f"{SKIPPED[0].upper()}{SKIPPED[1:]}.", remedy)
    yield _clock(answer, asked)
    yield _bridge(hub)
    yield from _browsers(facts)


def _another_port(port: int) -> str:
    return f"End that process, or use another port: tabhub config set port {port + 1 if port < 65535 else 9515}"


def _settings_port(hub: Hub) -> int:
    """The port on which a hub that is not running would start."""
    from tabhub.store.config_file import load
    from tabhub.store.home import Home

    try:
        return load(Home.find(), os.environ).port
    except SetupError:
        return hub.port  # the settings are broken, which has been said


def _state(hub: Hub, facts: dict[str, Any]) -> Finding:
    problems = facts.get("problems")
    if isinstance(problems, list) and problems:
        return Finding("hub", "warn", " ".join(map(str, problems)), "Look at: tabhub logs")
    if facts["version"] != __version__:
        message = f"The running hub is version {facts['version']}, this command is {__version__}."
        return Finding("hub", "warn", message, "Restart it: tabhub stop && tabhub start --background")
    return Finding("hub", "ok", f"answers on http://{hub.address}")


def _clock(answer: Response, asked: float) -> Finding:
    """Whether the hub's clock agrees with ours: the audit log depends on it."""
    try:
        off = parsedate_to_datetime(answer.headers["date"]).timestamp() - asked
    except (KeyError, ValueError):
        return Finding("clock", "ok", time.strftime("%Y-%m-%d %H:%M:%S %z"))
    if abs(off) > _CLOCK_SLACK:
        return Finding("clock", "warn", f"The hub's clock is off by {off:.0f} s.", "Correct the clock of this machine.")
    return Finding("clock", "ok", time.strftime("%Y-%m-%d %H:%M:%S %z"))


def _bridge(hub: Hub) -> Finding:
    """The socket the stdio servers of MCP clients use."""
    from tabhub.cli.stdio import socket as bridge
    from tabhub.platform.socket_path import TCP, tcp_record

    if not isinstance(hub.record.get("socket"), str):
        message = "The running hub names no socket, so clients with a stdio server cannot reach it."
        return Finding("socket", "warn", message, _RESTART)
    path = bridge.socket_path(hub)
    shown = Path(tcp_record(hub.home) if path == TCP else path)
    try:
        facts = shown.stat()
        if facts.st_mode & 0o077:
            message = f"Others may use {shown} (mode {stat.S_IMODE(facts.st_mode):04o})."
            return Finding("socket", "fail", message, f"Run: chmod 600 {shown}")
        status = bridge.status(hub)
    except OSError as error:
        if (other := bridge.socket_mismatch(hub)) is not None:
            return Finding("socket", "fail", *other)
        return Finding("socket", "fail", f"{shown} does not answer: {error.strerror or error}.", _RESTART)
    except CliError as error:
        return Finding("socket", "fail", error.message, error.hint)
    return Finding("socket", "ok", f"{shown} answers, {count(status.get('activeSessions', 0), 'session')} open")


def _browsers(facts: dict[str, Any]) -> Iterator[Finding]:
    known = browsers(facts)
    connected = [browser for browser in known if browser.get("connected")]
    if not connected:
        lost = f" Last: {browser_words(known[0], own_end(facts)).rstrip('.')}." if known else ""
        remedy = (
            "Is the browser open, and the extension loaded and switched on? `tabhub extension open` shows how; "
            "or let the hub start a browser: tabhub stop, then tabhub start --launch"
        )
        yield Finding("browser", "fail", f"No browser is connected.{lost}", remedy)
        return
    for browser in connected:
        yield _link(browser)
        tabs = browser.get("tabs")
        said = browser.get("extension")
        if isinstance(said, dict) and said.get("sentTabs") is False:
            yield Finding("tabs", "fail", "The extension has not reported its tabs.", _RELOAD)
        elif isinstance(tabs, int) and tabs == 0:
            yield Finding("tabs", "warn", "The browser has no tab open.", "Open one, or let an agent do it.")
        else:
            yield Finding("tabs", "ok", count(tabs, "tab") if isinstance(tabs, int) else "unknown number")
        attached = attached_tabs(browser)
        used = f"attached to {count(len(attached), 'tab')}" if attached else "idle (attaches when needed)"
        yield Finding("debugger", "ok", used)


def _link(browser: dict[str, Any]) -> Finding:
    socket = browser.get("socket")
    silent = socket.get("silentSeconds") if isinstance(socket, dict) else None
    if isinstance(silent, int | float) and silent > 40:
        return Finding("browser", "warn", f"{browser_words(browser)}, silent for {silent:.0f} s", _RELOAD)
    version = browser.get("extensionVersion")
    if isinstance(version, str):
        from tabhub.links.launch.extension_files import extension_version, packaged_extension

        try:
            shipped = extension_version(packaged_extension())
        except SetupError as error:
            return Finding("browser", "warn", error.message, error.hint)
        if version != shipped:
            return Finding("browser", "warn", f"It runs extension {version}, shipped is {shipped}.", _RELOAD)
    return Finding("browser", "ok", browser_words(browser))


COMMAND = Command(
    "Diagnose the setup from agent to browser tab and suggest fixes",
    doctor,
    JSON,
    details="The checks go from this machine over the hub and the extension to the tabs; the first that fails is\n"
    "the broken part. The exit code is 1 when something fails.",
    examples=(("tabhub doctor", ""), ("tabhub doctor --json | jq .broken", "for a script")),
)
