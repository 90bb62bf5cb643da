"""A hub with a browser for the demo: the running one, or a temporary one that is stopped afterwards.

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
from typing import Any

from tabhub.cli.hub.background import defer_signals, health, start_in_background, wait_for_exit
from tabhub.cli.hub.client import Hub, find_hub
from tabhub.cli.hub.settings import home_and_config
from tabhub.cli.status import browsers, own_browser
from tabhub.client_errors import CliError

_CONNECT_SECONDS = 40.0
_END_SECONDS = 15.0
_FAILED_SECONDS = 3.0
_STOPPED_SECONDS = 10.0
"""How long to wait for a browser that is not running, with and without an error: the hub may restart it."""
_POLL = 0.05
_LOCATION = ("TABHUB_HOME", "TABHUB_PORT", "PORT", "TABHUB_SOCKET")
"""Environment variables that locate a hub."""


@contextlib.contextmanager
def borrow_hub(*, headless: bool) -> Iterator[tuple[Hub, bool]]:
    """The running hub if it has a browser; otherwise a temporary one with its own home, port and browser, and True."""
    hub = find_hub()
    facts = health(hub)
    if facts is not None and (_ready(facts) or own_browser(facts).get("running")):
        _wait_for_browser(hub)
        print(f"Using the hub on http://{hub.address} and its connected browser.")
        yield hub, False
        return
    print("Starting a hub and a browser for the tour ...", flush=True)
    browser = home_and_config()[1].browser  # the person's setting applies to the tour too
    with _temporary_home({"TABHUB_BROWSER": browser} if browser else {}):
        started: Hub | None = None
        try:
            with defer_signals(signal.SIGINT, signal.SIGTERM) as interrupted:
                started = _start(headless=headless)
            if interrupted:
                raise KeyboardInterrupt
            name = _wait_for_browser(started)
            print(f"A temporary hub on http://{started.address}, with {name}.")
            yield started, True
        finally:
            if started is not None and started.pid is not None:
                _end(started.pid)


def _start(*, headless: bool) -> Hub:
    try:
        return start_in_background(["--launch", "--port", "0", *(["--headless"] if headless else [])])[0]
    except CliError as error:
        # Its own hint names a log that is removed with the rest.
        raise CliError(
            error.message,
            "If there is no Chrome, Chromium, Edge or Brave, install one, or set TABHUB_BROWSER to its program. "
            "`tabhub doctor` checks this machine.",
            detail=error.detail,
        ) from None


def _end(pid: int) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):  # it has already ended
            os.kill(pid, number)
        if wait_for_exit(pid, _END_SECONDS):
            return


def _wait_for_browser(hub: Hub) -> str:
    """Wait until the hub's browser has connected; returns its name."""
    now = time.monotonic()
    until, alive_at = now + _CONNECT_SECONDS, now
    why = f"it did not connect within {_CONNECT_SECONDS:g} s"
    while now < until:
        facts = health(hub)
        if facts is None:
            raise CliError("The hub exited before its browser was ready.", "`tabhub doctor` checks this machine.")
        own = own_browser(facts)
        if _ready(facts):
            return str(own.get("name", "a browser of its own"))
        now = time.monotonic()
        if own.get("running"):
            alive_at = now
        elif now - alive_at > (_FAILED_SECONDS if "error" in own else _STOPPED_SECONDS):
            why = str(own.get("error", "it is not running."))
            break
        time.sleep(_POLL)
    raise CliError(
        f"The hub's browser cannot be used: {why}",
        "`tabhub doctor` checks this machine. Set TABHUB_BROWSER to start another browser.",
    )


def _ready(facts: dict[str, Any]) -> bool:
    """Whether a browser is connected and has reported its tabs."""
    return any(browser["connected"] and browser.get("extension", {}).get("sentTabs") for browser in browsers(facts))


@contextlib.contextmanager
def _temporary_home(extra: dict[str, str]) -> Iterator[None]:
    """A temporary home for a hub; it is removed at the end, also on SIGTERM."""
    home = tempfile.mkdtemp(prefix="tabhub-demo-")
    before = dict(os.environ)
    handler = signal.signal(signal.SIGTERM, signal.default_int_handler)
    for name in _LOCATION:
        os.environ.pop(name, None)
    os.environ.update({"TABHUB_HOME": home, **extra})
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
        _remove(home)
        signal.signal(signal.SIGTERM, handler)


def _remove(folder: str) -> None:
    """Remove the folder; a browser that is exiting may still write to it."""
    for _ in range(20):
        with contextlib.suppress(OSError):
            return shutil.rmtree(folder)
        time.sleep(_POLL)
    shutil.rmtree(folder, ignore_errors=True)
