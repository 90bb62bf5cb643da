"""A hub with a browser for a while: the one that runs, or one started for the purpose and ended afterwards.

Owns everything it starts, and removes all of it at the end.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from tabhub.cli.hub.background import defer_signals, health, start_in_background, wait_for_exit
from tabhub.cli.hub.client import Hub, find_hub
from tabhub.client_errors import CliError

_CONNECT = 40.0
_END = 15.0
_GONE = 3.0
_SILENT = 10.0
"""Seconds to wait for a browser that is not running, with and without an error: the hub may restart it."""
_POLL = 0.05
_PLACE = ("TABHUB_HOME", "TABHUB_PORT", "PORT", "TABHUB_SOCKET")
"""Environment variables that locate a hub."""


@dataclass(frozen=True, slots=True)
class Borrowed:
    """A hub to use, with a sentence that describes it."""

    hub: Hub
    description: str
    temporary: bool
    """Whether it was started here, and nothing of it will remain."""


@contextlib.contextmanager
def borrow_hub(*, headless: bool) -> Iterator[Borrowed]:
    """The running hub if it has a browser; otherwise a new one with its own home, port and browser."""
    hub = find_hub()
    facts = health(hub)
    if facts is not None and (_ready(facts) or _leg(facts, "managedBrowser").get("running")):
        _wait_for_browser(hub)
        description = f"Using the hub on http://{hub.address} and the browser that is connected to it."
        yield Borrowed(hub, description, temporary=False)
        return
    print("Starting a hub and a browser for the tour ...", flush=True)
    with _own_place(_browser_setting()):
        started: Hub | None = None
        try:
            with defer_signals(signal.SIGINT, signal.SIGTERM) as interrupted:
                started = _start(headless=headless)
            if interrupted:
                raise KeyboardInterrupt
            name = _wait_for_browser(started)
            yield Borrowed(started, f"A temporary hub on http://{started.address}, with {name}.", temporary=True)
        finally:
            if started is not None and started.pid is not None:
                _end(started.pid)


def _end_by_exception(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def _start(*, headless: bool) -> Hub:
    try:
        hub, _ = start_in_background(["--launch", "--port", "0", *(["--headless"] if headless else [])])
    except CliError as error:
        # Its own hint names a log that is removed with the rest.
        raise CliError(
            error.message,
            "If there is no Chrome, Chromium, Edge or Brave, install one, or name its program in TABHUB_BROWSER. "
            "`tabhub doctor` checks this machine.",
            detail=error.detail,
        ) from None
    return hub


def _end(pid: int) -> None:
    """Stop the hub that was started here; its browser stops with it."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):  # it has ended by itself
            os.kill(pid, number)
        if wait_for_exit(pid, _END):
            return


def _wait_for_browser(hub: Hub) -> str:
    """Wait until the hub's browser has connected; returns its name."""
    now = time.monotonic()
    until, alive_at = now + _CONNECT, now
    why = f"it did not connect within {_CONNECT:g} s"
    while now < until:
        facts = health(hub)
        if facts is None:
            raise CliError("The hub exited before its browser was ready.", "`tabhub doctor` checks this machine.")
        managed = _leg(facts, "managedBrowser")
        if _ready(facts):
            return str(managed.get("name", "a browser of its own"))
        now = time.monotonic()
        if managed.get("running"):
            alive_at = now
        elif now - alive_at > (_GONE if "error" in managed else _SILENT):
            why = str(managed.get("error", "it has ended, or never began."))
            break
        time.sleep(_POLL)
    raise CliError(
        f"The hub's browser cannot be used: {why}",
        "`tabhub doctor` checks this machine; TABHUB_BROWSER names another browser to start.",
    )


def _ready(facts: dict[str, Any]) -> bool:
    """Whether a browser is connected and has reported its tabs."""
    browsers = _leg(facts, "browsers")
    for browser in browsers if isinstance(browsers, list) else []:
        extension = browser.get("extension")
        if browser.get("connected") and isinstance(extension, dict) and extension.get("sentTabs"):
            return True
    return False


def _leg(facts: dict[str, Any], name: str) -> Any:
    legs = facts.get("legs")
    return (legs.get(name) or {}) if isinstance(legs, dict) else {}


def _browser_setting() -> dict[str, str]:
    """The browser from the person's settings, which applies to the tour too."""
    from tabhub.store.config_file import load
    from tabhub.store.home import Home

    browser = load(Home.find(), os.environ).browser
    return {"TABHUB_BROWSER": browser} if browser else {}


@contextlib.contextmanager
def _own_place(extra: dict[str, str]) -> Iterator[None]:
    """A temporary home for a hub; it is removed at the end, also on SIGTERM."""
    home = tempfile.mkdtemp(prefix="tabhub-demo-")
    before = dict(os.environ)
    ending = signal.signal(signal.SIGTERM, _end_by_exception)
    for name in _PLACE:
        os.environ.pop(name, None)
    os.environ.update({"TABHUB_HOME": home, **extra})
    try:
        yield
    finally:
        for name in (*_PLACE, *extra):
            os.environ.pop(name, None)
        os.environ.update(before)
        _remove(Path(home))
        signal.signal(signal.SIGTERM, ending)


def _remove(folder: Path) -> None:
    """Remove the folder; a browser that is exiting may still write to it."""
    for _ in range(20):
        with contextlib.suppress(OSError):
            shutil.rmtree(folder)
            return
        time.sleep(_POLL)
    shutil.rmtree(folder, ignore_errors=True)
