"""The servers that are compared: how each is started, with a browser of its own, and why one may be left out.

Tabhub runs as a person starts it, without a setting changed. The others get their profile, the browser's binary and the
viewport that Tabhub's pages have, so that all pictures have the same size.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from bench.peers.bare import Bare
from bench.peers.connections import Answer, Http, Session, Stdio
from bench.peers.dialects import BARE, CHROME_DEVTOOLS, PLAYWRIGHT, TABHUB, Dialect
from bench.processes import ROOT, Child, answers
from bench.servers import AGENT, agent_token
from bench.start import tabhub
from tabhub.links.launch.installed_browsers import find_browsers

MODULES = ROOT / "bench" / "peers" / "node_modules"
_PLAYWRIGHT = MODULES / "@playwright" / "mcp" / "cli.js"
_DEVTOOLS = MODULES / "chrome-devtools-mcp" / "build" / "src" / "bin" / "chrome-devtools-mcp.js"
_LEAN = ("--timeout-settle", "0", "--snapshot-mode", "none", "--codegen", "none")
_BARE = ("--headless=new", "--no-first-run", "--disable-background-networking", "--mute-audio")
ALONE = "browser alone"
NOT_PUBLISHED = "OpenTabs is left out: the npm registry has no package of it."


class Caller(Protocol):
    """Whatever calls can be made of."""

    def call(self, tool: str, arguments: dict[str, Any]) -> Answer: ...

    def close(self) -> None: ...


@dataclass(slots=True)
class Subject:
    """One running server, with a session."""

    name: str
    session: Caller
    dialect: Dialect
    processes: tuple[int, ...]
    """The server's process; the browser is below it."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A server that is started over stdio."""

    name: str
    dialect: Dialect
    command: Callable[[Path, str], list[str]]
    """From the folder of its data and the viewport, `1280x720`."""


def browser() -> str:
    """The binary that all of them run."""
    return str(find_browsers(os.environ)[0].path)


def _node() -> str:
    own = Path(sys.executable).with_name("node")
    return str(own) if own.exists() else (shutil.which("node") or "node")


def _playwright(options: Sequence[str] = ()) -> Callable[[Path, str], list[str]]:
    def command(home: Path, viewport: str) -> list[str]:
        browser_options = [
            "--headless",
            "--executable-path",
            browser(),
            "--viewport-size",
            viewport,
            *_sandbox("--no-sandbox"),
        ]
        data = ["--user-data-dir", str(home / "profile"), "--output-dir", str(home / "output")]
        return [_node(), str(_PLAYWRIGHT), *browser_options, *data, *options]

    return command


def _devtools(home: Path, viewport: str) -> list[str]:
    sandbox = _sandbox("--chromeArg=--no-sandbox")
    browser_options = ["--headless", "--executablePath", browser(), "--viewport", viewport, *sandbox]
    return [_node(), str(_DEVTOOLS), *browser_options, "--userDataDir", str(home / "profile"), "--no-usage-statistics"]


def _sandbox(switch: str) -> tuple[str, ...]:
    """The browser's sandbox does not work for root."""
    return (switch,) if os.geteuid() == 0 else ()


PEERS = (
    Kind("Playwright lean", PLAYWRIGHT, _playwright(_LEAN)),
    Kind("Playwright", PLAYWRIGHT, _playwright()),
    Kind("Chrome DevTools", CHROME_DEVTOOLS, _devtools),
)


def available() -> tuple[list[Kind], list[str]]:
    """The peers that can be run, and why others cannot."""
    found, reasons = [], [NOT_PUBLISHED]
    for kind in PEERS:
        script = _DEVTOOLS if kind.dialect is CHROME_DEVTOOLS else _PLAYWRIGHT
        if not script.exists():
            reasons.append(f"{kind.name} is left out: it is not installed (scripts/setup bench).")
            continue
        tried = subprocess.run([_node(), str(script), "--version"], capture_output=True, text=True, check=False)
        if tried.returncode:
            reasons.append(f"{kind.name} is left out: {tried.stderr.strip().splitlines()[-1:]}")
            continue
        found.append(kind)
    return found, reasons


def _environment(home: Path, **more: str) -> dict[str, str]:
    return {**os.environ, **more, "HOME": str(home)}


def start_peer(kind: Kind, where: Path, viewport: str) -> Subject:
    """Start a peer in its folder, which it may have used before."""
    home = where / kind.name.replace(" ", "-").lower()
    home.mkdir(exist_ok=True)
    log = where / f"{home.name}.log"
    stdio = Stdio(kind.command(home, viewport), env=_environment(home), folder=home, log=log)
    return Subject(kind.name, Session(stdio), kind.dialect, (stdio.process.pid,))


def spawn_hub(where: Path, port: int, *, launch: bool) -> Child:
    """Start a hub, with its browser or without any."""
    options = ["--launch", "--headless"] if launch else ["--no-launch"]
    command = [*tabhub(), "start", "--port", str(port), *options]
    # As installed, with compiled modules.
    env = {"TABHUB_HOME": str(where / "tabhub"), "PYTHONDONTWRITEBYTECODE": ""}
    return Child(command, log=where / "tabhub.log", env=env)


def hub_ready(port: int) -> bool:
    return answers(port, "/health")


def connect_http(hub: Child, where: Path, port: int) -> Subject:
    token = agent_token(where / "tabhub")
    return Subject("Tabhub", Session(Http(port, token)), TABHUB, (hub.process.pid,))


def connect_stdio(hub: Child, where: Path) -> Subject:
    env = _environment(where, TABHUB_HOME=str(where / "tabhub"))
    command = [*tabhub(), "start", "--stdio", "--as", AGENT]
    stdio = Stdio(command, env=env, folder=where, log=where / "bridge.log")
    return Subject("Tabhub stdio", Session(stdio), TABHUB, (hub.process.pid, stdio.process.pid))


def start_bare(where: Path, width: int, height: int) -> Subject:
    """The browser alone."""
    profile = where / "bare"
    profile.mkdir(exist_ok=True)
    switches = (*_BARE, *_sandbox("--no-sandbox"))
    bare = Bare(browser(), profile=profile, log=where / "bare.log", switches=switches)
    bare.set_viewport(width, height)
    return Subject(ALONE, bare, BARE, (bare.process.pid,))
