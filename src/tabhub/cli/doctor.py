"""`tabhub doctor`: check every part between agent and tab, and name the broken one.

Owns what each check looks at and what a person can do about it, in order: machine, home, hub, browser, tabs. A check
never changes anything.
"""

from __future__ import annotations

import os
import platform
import shutil
import stat
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Literal

from tabhub import __version__
from tabhub.cli.command import JSON, Command
from tabhub.cli.hub.client import HOST, Hub, decode, fetch, find_hub, is_json, request, response_error
from tabhub.cli.hub.port import holder, taken
from tabhub.cli.hub.settings import home_and_config
from tabhub.cli.status import SKIPPED, attached_tabs, browsers, describe_browser, own_browser
from tabhub.cli.terminal import count, paint, print_json, safe
from tabhub.client_errors import CliError, HubDownError
from tabhub.errors import SetupError, TabhubError
from tabhub.limits import DEFAULTS
from tabhub.links.launch.extension_files import extension_version, packaged_extension
from tabhub.net.http_client import Response
from tabhub.platform.files import make_private_folder
from tabhub.store.home import Home

Level = Literal["ok", "wait", "warn", "fail"]
_START = "Start it with: tabhub start --background"
_ROTATE = "Create a new one: tabhub config rotate-secret"
_CLOCK_SLACK = 5.0
_LITTLE_ROOM = 50_000_000
_NO_ROOM = 1_000_000
_STYLES = {"ok": "green", "wait": "cyan", "warn": "yellow", "fail": "red"}
_RESTART = "Restart the hub: tabhub stop && tabhub start --background"
_RELOAD = "Reload the extension on chrome://extensions"
_LONGEST_SILENCE = 40
_POLL = 0.25


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
        checks = [asdict(finding) for finding in findings]
        print_json({"ok": broken is None, "broken": broken.name if broken else None, "checks": checks})
    elif broken is not None:
        print(f"\n{paint('Broken:', 'red')} {broken.name}. {safe(broken.message)}")
    elif any(finding.level == "warn" for finding in findings):
        print("\nNothing is broken; see the warnings above.")
    else:
        print("\nEverything works, from this machine to the tabs.")
    return 1 if broken else 0


def _show(finding: Finding) -> None:
    label = paint(finding.level.ljust(4), _STYLES[finding.level])
    print(f"{label}  {finding.name.ljust(9)}  {safe(finding.message)}", flush=True)
    if finding.remedy and finding.level != "ok":
        print(f"{' ' * 17}{paint('->', 'cyan')} {safe(finding.remedy)}", flush=True)


def examine() -> Iterator[Finding]:
    """Run the checks. After a failed one, those that depend on it are skipped."""
    yield Finding("python", "ok", f"Python {platform.python_version()}, tabhub {__version__}")
    yield from _run("home", _home)
    yield from _run("config", _config)
    yield from _run("program", _browser_program, "warn")
    try:
        hub = find_hub()
    except CliError as error:
        yield Finding("key", "fail", error.message, _ROTATE)
        return
    yield _key(hub)
    yield from _run("files", lambda: _extension_files(hub))
    yield from _hub(hub)


def _run(name: str, check: Callable[[], Iterator[Finding]], level: Level = "fail") -> Iterator[Finding]:
    """The findings of a check; an error that it raises is a finding too."""
    try:
        yield from check()
    except TabhubError as error:
        yield Finding(name, level, error.message, error.hint)


def _home() -> Iterator[Finding]:
    root = Home.find().root
    existing = next(folder for folder in (root, *root.parents) if folder.exists())
    if existing == root:
        make_private_folder(root)  # only checks a folder that exists
        mode = stat.S_IMODE(root.stat().st_mode)
        if mode & 0o077:
            yield Finding("home", "warn", f"Others may read {root} (mode {mode:04o}).", f"Run: chmod 700 {root}")
        else:
            yield Finding("home", "ok", str(root))
    elif existing.is_dir() and os.access(existing, os.W_OK | os.X_OK):
        yield Finding("home", "ok", f"{root} will be created when the hub starts")
    else:
        message = f"{root} cannot be created: {existing} is {'not writable' if existing.is_dir() else 'not a folder'}."
        yield Finding("home", "fail", message, "Set TABHUB_HOME to a folder you may write to.")
        return
    free = shutil.disk_usage(existing).free
    if free < _LITTLE_ROOM:
        message = f"Only {free / 1e6:.1f} MB are free on the disk of {existing}."
        remedy = "Free some space: the audit log, results and the hub's browser need it."
        yield Finding("disk", "fail" if free < _NO_ROOM else "warn", message, remedy)


def _config() -> Iterator[Finding]:
    home, config = home_and_config()
    if config.problems:
        yield Finding("config", "warn", " ".join(config.problems), f"Correct it in {home.config}")
    else:
        yield Finding("config", "ok", f"{home.config}" if home.config.exists() else "defaults (no config file)")


def _browser_program() -> Iterator[Finding]:
    from tabhub.links.launch.installed_browsers import find_browsers

    yield Finding("program", "ok", "installed: " + ", ".join(f"{b.name} ({b.path})" for b in find_browsers()))


def _key(hub: Hub) -> Finding:
    """The extension's key."""
    path = Path(hub.home, "extension", "auth.json")
    if not path.exists():
        return Finding("key", "ok", "will be created when the hub starts")
    if hub.extension_key is None or len(hub.extension_key) != 64:
        return Finding("key", "fail", f"{path} contains no valid key.", _ROTATE)
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        remedy = f"Run: chmod 600 {path}, then: tabhub config rotate-secret"
        return Finding("key", "fail", f"Others can read {path} (mode {mode:04o}).", remedy)
    return Finding("key", "ok", f"{path} (only you can read it)")


def _extension_files(hub: Hub) -> Iterator[Finding]:
    folder = Path(hub.home, "extension")
    if not (folder / "manifest.json").exists():
        remedy = "The hub installs it there when it starts."
        yield Finding("files", "warn", f"The extension is not in {folder} yet.", remedy)
        return
    version, packaged = extension_version(folder), extension_version(packaged_extension())
    if version != packaged:
        message = f"{folder} has version {version} of the extension; this Tabhub has {packaged}."
        yield Finding("files", "warn", message, _RESTART)
    else:
        yield Finding("files", "ok", f"extension {version} in {folder}")


def _hub(hub: Hub) -> Iterator[Finding]:
    if not taken(hub.port):
        port = _settings_port(hub)
        if port != hub.port and taken(port):
            message = f"{holder(port)} uses port {port}, on which the hub would start."
            yield Finding("port", "fail", message, _another_port(port))
        else:
            yield Finding("port", "ok", f"{port} is free")
        yield Finding("hub", "fail", f"The hub is not running on {HOST}:{port}.", _START)
        return
    program = holder(hub.port)
    sent = time.time()
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
        yield Finding("port", "fail", f"{program} uses port {hub.port}. {error.message}", _another_port(hub.port))
        return
    yield Finding("port", "ok", f"{hub.port} is used by {program}")
    if refused is not None:
        yield Finding("hub", "fail", refused.message, refused.hint)
        return
    if not isinstance(facts, dict) or "version" not in facts:
        remedy = f"It may be of an older version. {_RESTART}. Or of another home: set TABHUB_HOME, or use another port."
        yield Finding("hub", "fail", f"The server on {hub.address} does not accept our key.", remedy)
        return
    if problems := facts.get("problems"):
        yield Finding("hub", "warn", " ".join(problems), "See: tabhub logs")
    elif facts["version"] != __version__:
        message = f"The running hub is version {facts['version']}, this command is {__version__}."
        yield Finding("hub", "warn", message, _RESTART)
    else:
        yield Finding("hub", "ok", f"answers on http://{hub.address}")
    for notice in facts.get("notices") or []:
        yield Finding("notice", "warn", notice)
    if facts.get("skipPermissions"):
        remedy = "tabhub config set skipPermissions false, and start without TABHUB_DANGEROUSLY_SKIP_PERMISSIONS"
        yield Finding("permissions", "warn", SKIPPED, remedy)
    if notices := facts.get("pageNotices"):
        remedy = "Close such a page, or keep its site out with the setting pages.allowedOrigins."
        yield Finding("pages", "warn", " ".join(notices), remedy)
    yield _clock(answer, sent)
    yield _bridge(hub)
    yield from _run("browser", lambda: _browsers(hub, facts), "warn")


def _another_port(port: int) -> str:
    return f"End that process, or use another port: tabhub config set port {port + 1 if port < 65535 else 9515}"


def _settings_port(hub: Hub) -> int:
    """The port on which a hub that is not running would start."""
    try:
        return home_and_config()[1].port
    except SetupError:
        return hub.port  # the check of the settings has reported it


def _clock(answer: Response, sent: float) -> Finding:
    """Whether the hub's clock agrees with ours: the audit log depends on it."""
    try:
        off = parsedate_to_datetime(answer.headers["date"]).timestamp() - sent
    except (KeyError, ValueError):
        off = 0.0
    if abs(off) > _CLOCK_SLACK:
        return Finding("clock", "warn", f"The hub's clock is off by {off:.0f} s.", "Correct the clock of this machine.")
    return Finding("clock", "ok", time.strftime("%Y-%m-%d %H:%M:%S %z"))


def _bridge(hub: Hub) -> Finding:
    """The socket that the stdio servers of MCP clients use."""
    from tabhub.cli.stdio import socket as bridge
    from tabhub.platform.socket_path import TCP, tcp_record

    if not isinstance(hub.record.get("socket"), str):
        message = "The running hub names no socket, so MCP clients on stdio cannot reach it."
        return Finding("socket", "warn", message, _RESTART)
    path = bridge.socket_path(hub)
    shown = Path(tcp_record(hub.home) if path == TCP else path)
    try:
        mode = stat.S_IMODE(shown.stat().st_mode)
        if mode & 0o077:
            message = f"Others may use {shown} (mode {mode:04o})."
            return Finding("socket", "fail", message, f"Run: chmod 600 {shown}")
        status = bridge.status(hub)
    except OSError as error:
        if (other := bridge.socket_mismatch(hub)) is not None:
            return Finding("socket", "fail", *other)
        return Finding("socket", "fail", f"{shown} does not answer: {error.strerror or error}.", _RESTART)
    except CliError as error:
        return Finding("socket", "fail", error.message, error.hint)
    return Finding("socket", "ok", f"{shown} answers, {count(status.get('activeSessions', 0), 'open session')}")


def _browsers(hub: Hub, facts: dict[str, Any]) -> Iterator[Finding]:
    if _is_starting(facts):
        longest = _start_time()
        message = f"The hub's own browser, {own_browser(facts).get('name')}, is starting. Waiting up to {longest:g} s."
        yield Finding("browser", "wait", message)
        facts = _await_browser(hub, facts, longest)
        if _is_starting(facts):
            message = f"The hub's own browser, {own_browser(facts).get('name')}, has not connected after {longest:g} s."
            remedy = (
                "On a busy machine, run `tabhub doctor` again. Otherwise see `tabhub logs` and logs/browser.log in the "
                "hub's home; then: tabhub stop && tabhub start --launch"
            )
            yield Finding("browser", "fail", message, remedy)
            return
    known = browsers(facts)
    connected = [browser for browser in known if browser.get("connected")]
    if not connected:
        last = f" Last: {describe_browser(known[0], own_browser(facts).get('error')).rstrip('.')}." if known else ""
        remedy = (
            "Is the browser open, and the extension loaded and switched on? `tabhub extension open` shows how; "
            "or let the hub start a browser: tabhub stop, then tabhub start --launch"
        )
        yield Finding("browser", "fail", f"No browser is connected.{last}", remedy)
    packaged = extension_version(packaged_extension()) if connected else None
    for browser in connected:
        silence = browser.get("socket", {}).get("silentSeconds") or 0
        version = browser.get("extensionVersion")
        if silence > _LONGEST_SILENCE:
            yield Finding("browser", "warn", f"{describe_browser(browser)}, silent for {silence:.0f} s", _RELOAD)
        elif version not in (None, packaged):
            message = f"The browser runs extension {version}; this Tabhub has {packaged}."
            yield Finding("browser", "warn", message, _RELOAD)
        else:
            yield Finding("browser", "ok", describe_browser(browser))
        tabs = browser.get("tabs")
        if browser.get("extension", {}).get("sentTabs") is False:
            yield Finding("tabs", "fail", "The extension has not reported its tabs.", _RELOAD)
        elif tabs == 0:
            yield Finding("tabs", "warn", "The browser has no tab open.", "Open one, or let an agent do it.")
        else:
            yield Finding("tabs", "ok", "unknown number" if tabs is None else count(tabs, "tab"))
        attached = attached_tabs(browser)
        state = f"attached to {count(attached, 'tab')}" if attached else "idle (attaches when needed)"
        yield Finding("debugger", "ok", state)


def _is_starting(facts: dict[str, Any]) -> bool:
    """Whether the only browser to be expected is the hub's own, which has not connected yet."""
    connected = any(browser.get("connected") for browser in browsers(facts))
    return not connected and own_browser(facts).get("starting") is True


def _start_time() -> float:
    """How long the hub's own browser may take to start."""
    try:
        return home_and_config()[1].limits.browser_start
    except SetupError:
        return DEFAULTS.browser_start  # the check of the settings has reported it


def _await_browser(hub: Hub, facts: dict[str, Any], longest: float) -> dict[str, Any]:
    """The hub's health once its own browser no longer starts, or after the longest time."""
    end = time.monotonic() + longest
    while _is_starting(facts) and time.monotonic() < end:
        time.sleep(_POLL)
        found = fetch("/health", hub=hub, timeout=5.0)
        facts = found if isinstance(found, dict) else facts
    return facts


COMMAND = Command(
    doctor,
    JSON,
    details="The checks run from this machine over the hub and the extension to the tabs. The first that fails is\n"
    "the broken part. The exit code is 1 if a check fails.",
    examples=(("tabhub doctor --json | jq .broken", "for a script"),),
)
