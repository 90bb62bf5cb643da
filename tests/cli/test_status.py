"""`tabhub status`: what it shows of the hub and its browsers, and its exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.cli.conftest import Run, announce
from tests.cli.fake_http_hub import FakeHub

CHROMIUM: dict[str, Any] = {
    "browserId": "b1",
    "connected": True,
    "browserName": "Chromium",
    "browserVersion": "156",
    "extensionVersion": "0.1.0",
    "tabs": 3,
    "extension": {"saidHello": True, "sentTabs": True},
    "socket": {"silentSeconds": 1.0},
    "debugger": {"attachedTabs": [7]},
}
HEALTH: dict[str, Any] = {
    "status": "ok",
    "version": "0.1.0",
    "uptime": 3700,
    "toolCount": 10,
    "mcpClients": 1,
    "callsInFlight": 0,
    "auditSummary": {"totalInvocations": 5, "failureCount": 2},
    "legs": {"browsers": [CHROMIUM]},
}


def test_status_shows_what_is_connected(hub: FakeHub, tabhub: Run) -> None:
    hub.answer("GET /health", HEALTH)
    done = tabhub("status")
    assert done.returncode == 0
    assert "hub        running" in done.stdout
    assert "Chromium 156: 3 tabs, extension 0.1.0, debugger on 1 tab" in done.stdout
    assert "5 so far, 2 failed" in done.stdout
    assert f"pid {os.getpid()}, version 0.1.0" in done.stdout
    assert "1 h 1 min ago" in done.stdout
    assert json.loads(tabhub("status", "--json").stdout) == HEALTH


def test_status_shows_a_lost_browser_and_a_degraded_hub(hub: FakeHub, tabhub: Run) -> None:
    lost = {"browserId": "b1", "connected": False, "reason": "the socket closed", "browserName": "Edge"}
    hub.answer("GET /health", {**HEALTH, "status": "degraded", "problems": ["disk full"], "legs": {"browsers": [lost]}})
    shown = tabhub("status").stdout
    assert "hub        degraded" in shown
    assert "problem    disk full" in shown
    assert "Edge: connection lost (the socket closed)" in shown


def test_status_shows_what_the_person_should_know(hub: FakeHub, tabhub: Run) -> None:
    notices = {"notices": ["An agent shares a secret."], "pageNotices": ["shop.example offers 20 tools; 4 are listed."]}
    hub.answer("GET /health", {**HEALTH, **notices})
    shown = tabhub("status").stdout
    assert "notice     An agent shares a secret." in shown
    assert "notice     shop.example offers 20 tools; 4 are listed." in shown


def test_status_shows_the_managed_browser_before_it_connects(hub: FakeHub, tabhub: Run) -> None:
    own = {"name": "Chromium (no window)", "running": False, "pid": None, "starting": True}
    hub.answer("GET /health", {**HEALTH, "legs": {"browsers": [], "managedBrowser": own}})
    assert "the hub's own, Chromium (no window), is starting" in tabhub("status").stdout
    hub.answer("GET /health", {**HEALTH, "legs": {"browsers": [], "managedBrowser": {**own, "error": "no such file"}}})
    assert "Chromium (no window), did not start: no such file" in tabhub("status").stdout


def test_status_shows_how_the_managed_browser_exited_and_what_to_do(hub: FakeHub, tabhub: Run) -> None:
    lost = {"browserId": "b1", "connected": False, "reason": "closed", "browserName": "Chromium", "managed": True}
    own = {"name": "Chromium", "running": False, "pid": None, "error": "Chromium ended. To have it back: do this."}
    hub.answer("GET /health", {**HEALTH, "legs": {"browsers": [lost], "managedBrowser": own}})
    output = "Chromium (started by the hub): Chromium ended. To have it back: do this."
    assert output in tabhub("status").stdout
    assert output in tabhub("doctor").stdout


def test_status_without_a_hub_exits_with_2(home: Path, tabhub: Run) -> None:
    done = tabhub("status", TABHUB_PORT="1")
    assert done.returncode == 2
    assert "The hub is not running on 127.0.0.1:1." in done.stderr
    shown = tabhub("status", "--json", TABHUB_PORT="1")
    assert shown.returncode == 2
    assert json.loads(shown.stdout)["status"] == "down"


def test_status_of_a_hub_with_another_key(hub: FakeHub, tabhub: Run) -> None:
    hub.answer("GET /health", {"status": "ok"})
    done = tabhub("status")
    assert done.returncode == 1
    assert "does not accept our key" in done.stderr


def test_record_of_a_dead_process_is_ignored(home: Path, tabhub: Run) -> None:
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    child.wait()
    announce(home, 1, pid=child.pid)
    assert "not running on 127.0.0.1:9515" in tabhub("status", TABHUB_PORT="").stderr
    assert tabhub("stop").returncode == 2
