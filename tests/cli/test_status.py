"""`tabhub status`, `stop`, `logs` and `extension`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.cli.conftest import Run, announce
from tests.cli.fakehub import FakeHub

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


def test_status_shows_the_managed_browser_before_it_connects(hub: FakeHub, tabhub: Run) -> None:
    own = {"name": "Chromium (no window)", "running": False, "pid": None}
    hub.answer("GET /health", {**HEALTH, "legs": {"browsers": [], "managedBrowser": own}})
    assert "the hub's own, Chromium (no window), is starting" in tabhub("status").stdout
    hub.answer("GET /health", {**HEALTH, "legs": {"browsers": [], "managedBrowser": {**own, "error": "no such file"}}})
    assert "Chromium (no window), did not start: no such file" in tabhub("status").stdout


def test_status_shows_how_the_managed_browser_exited_and_what_to_do(hub: FakeHub, tabhub: Run) -> None:
    lost = {"browserId": "b1", "connected": False, "reason": "closed", "browserName": "Chromium", "managed": True}
    own = {"name": "Chromium", "running": False, "pid": None, "error": "Chromium ended. To have it back: do this."}
    hub.answer("GET /health", {**HEALTH, "legs": {"browsers": [lost], "managedBrowser": own}})
    said = "Chromium (started by the hub): Chromium ended. To have it back: do this."
    assert said in tabhub("status").stdout
    assert said in tabhub("doctor").stdout


def test_status_without_a_hub_exits_with_2(home: Path, tabhub: Run) -> None:
    done = tabhub("status", TABHUB_PORT="1")
    assert done.returncode == 2
    assert "The hub is not running on 127.0.0.1:1." in done.stderr
    shown = tabhub("status", "--json", TABHUB_PORT="1")
    assert shown.returncode == 2
    assert json.loads(shown.stdout)["status"] == "down"


def test_status_of_a_hub_with_another_secret(hub: FakeHub, tabhub: Run) -> None:
    hub.answer("GET /health", {"status": "ok"})
    done = tabhub("status")
    assert done.returncode == 1
    assert "does not know our secret" in done.stderr


def test_record_of_a_dead_process_is_ignored(home: Path, tabhub: Run) -> None:
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    child.wait()
    announce(home, 1, pid=child.pid)
    assert "not running on 127.0.0.1:9515" in tabhub("status", TABHUB_PORT="").stderr
    assert tabhub("stop").returncode == 2


def test_stop_ends_the_hub_and_waits_for_it(home: Path, hub: FakeHub, tabhub: Run) -> None:
    child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    announce(home, hub.port, pid=child.pid)
    done = tabhub("stop")
    assert (done.returncode, done.stdout) == (0, "The hub has stopped.\n")
    child.communicate()
    assert child.returncode == -signal.SIGTERM
    assert not (home / "hub.json").exists()


def test_stop_never_signals_another_process(home: Path, tabhub: Run) -> None:
    child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    announce(home, 1, pid=child.pid)
    done = tabhub("stop")
    assert done.returncode == 2
    assert "is not a hub; nothing was stopped" in done.stderr
    assert child.poll() is None
    child.communicate()


def test_stop_kills_a_hub_that_hangs_only_when_forced(home: Path, hub: FakeHub, tabhub: Run) -> None:
    code = "import signal, sys; signal.signal(15, signal.SIG_IGN); print('up', flush=True); sys.stdin.read()"
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    announce(home, hub.port, pid=child.pid)
    done = tabhub("stop", "--timeout", "0.1")
    assert done.returncode == 1
    assert "tabhub stop --force" in done.stderr
    assert tabhub("stop", "--timeout", "0.1", "--force").returncode == 0
    child.communicate()
    assert child.returncode == -signal.SIGKILL


def test_logs_show_the_end_of_the_file(home: Path, tabhub: Run) -> None:
    assert "There is no log yet" in tabhub("logs").stderr
    (home / "logs").mkdir()
    rows = [f"line {n} {'x' * 100}" for n in range(5000)]
    (home / "logs" / "hub.log").write_text("\n".join(rows) + "\n")
    assert tabhub("logs").stdout.splitlines() == rows[-50:]
    assert tabhub("logs", "-n", "2000").stdout.splitlines() == rows[-2000:]
    assert tabhub("logs", "-n", "0").stdout == ""


def test_logs_follow_through_a_rotation(home: Path, env: dict[str, str]) -> None:
    (home / "logs").mkdir()
    path = home / "logs" / "hub.log"
    path.write_text("one\n")
    child = subprocess.Popen(
        [sys.executable, "-m", "tabhub", "logs", "-f"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "one\n"
    with path.open("a") as file:
        file.write("two\n")
    assert child.stdout.readline() == "two\n"
    path.rename(home / "logs" / "hub.log.1")
    path.write_text("three\n")
    assert child.stdout.readline() == "three\n"
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=10)
    assert (child.returncode, said) == (130, "")


def test_extension_path_and_how_to_load_it(home: Path, tabhub: Run) -> None:
    done = tabhub("extension", "path")
    assert done.returncode == 2
    assert "tabhub start" in done.stderr
    (home / "extension" / "manifest.json").write_text("{}")
    assert tabhub("extension", "path").stdout == f"{home}/extension\n"
    shown = tabhub("extension", "open").stdout
    assert f"{home}/extension" in shown
    assert "Load unpacked" in shown
