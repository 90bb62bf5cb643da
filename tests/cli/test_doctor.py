"""`tabhub doctor`: each check, and that the first failing one is reported as broken."""

from __future__ import annotations

import json
import shutil
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tabhub.cli.doctor import examine
from tests.cli.conftest import Run
from tests.cli.fake_http_hub import FakeHub
from tests.cli.test_status import CHROMIUM, HEALTH


def report(tabhub: Run, **env: str) -> tuple[int, dict[str, Any]]:
    done = tabhub("doctor", "--json", **env)
    assert done.stderr == ""
    found = json.loads(done.stdout)
    return done.returncode, {**found, "checks": {check["name"]: check for check in found["checks"]}}


def test_doctor_finds_nothing_wrong(hub: FakeHub, tabhub: Run) -> None:
    hub.answer("GET /health", HEALTH)
    code, found = report(tabhub)
    assert (code, found["ok"], found["broken"]) == (0, True, None)
    names = {"python", "home", "config", "program", "key", "files", "port", "hub", "clock", "browser", "tabs"}
    assert names <= set(found["checks"])
    shown = tabhub("doctor").stdout
    assert "ok    browser    Chromium 156: 3 tabs" in shown


def test_doctor_reports_a_stopped_hub(home: Path, tabhub: Run) -> None:
    done = tabhub("doctor", TABHUB_PORT="1")
    assert done.returncode == 1
    assert "fail  hub        The hub is not running on 127.0.0.1:1." in done.stdout
    assert "-> Start it with: tabhub start --background" in done.stdout
    assert "Broken: hub." in done.stdout


@pytest.mark.parametrize(
    ("browsers", "broken", "expected"),
    [
        ([], "browser", "No browser is connected."),
        ([{"connected": False, "browserName": "Edge", "reason": "closed"}], "browser", "Last: Edge: connection lost"),
        ([{**CHROMIUM, "extension": {"sentTabs": False}}], "tabs", "has not reported its tabs"),
    ],
)
def test_doctor_reports_the_broken_part_behind_the_hub(
    hub: FakeHub, tabhub: Run, browsers: list[dict[str, Any]], broken: str, expected: str
) -> None:
    hub.answer("GET /health", {**HEALTH, "legs": {"browsers": browsers}})
    code, found = report(tabhub)
    assert (code, found["broken"]) == (1, broken)
    assert expected in found["checks"][broken]["message"]
    assert found["checks"][broken]["remedy"]


OWN = {"name": "Chromium", "running": True, "pid": 7, "starting": True}


def test_doctor_waits_for_the_hubs_own_browser_while_it_starts(hub: FakeHub, tabhub: Run) -> None:
    starting = {**HEALTH, "legs": {"browsers": [], "managedBrowser": OWN}}
    answers = [{**HEALTH, "legs": {"browsers": [CHROMIUM], "managedBrowser": OWN}}, starting, starting]
    hub.on("GET /health", lambda _asked, reply: reply.json(answers[-1] if len(answers) == 1 else answers.pop()))
    done = tabhub("doctor")
    assert "wait  browser    The hub's own browser, Chromium, is starting. Waiting up to 30 s." in done.stdout
    assert "ok    browser    Chromium 156: 3 tabs" in done.stdout
    assert "Broken" not in done.stdout
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        (OWN, "The hub's own browser, Chromium, has not connected after 0 s."),
        ({**OWN, "starting": False}, "No browser is connected."),
    ],
)
def test_doctor_does_not_wait_longer_than_a_browser_may_take(
    home: Path, hub: FakeHub, tabhub: Run, own: dict[str, Any], expected: str
) -> None:
    (home / "config.json").write_text(json.dumps({"limits": {"browser_start": 0}}))
    hub.answer("GET /health", {**HEALTH, "legs": {"browsers": [], "managedBrowser": own}})
    code, found = report(tabhub)
    assert (code, found["broken"]) == (1, "browser")
    assert found["checks"]["browser"]["message"] == expected
    assert "tabhub start --launch" in found["checks"]["browser"]["remedy"]


@pytest.mark.parametrize(
    ("browser", "expected"),
    [
        ({**CHROMIUM, "socket": {"silentSeconds": 99}}, "silent for 99 s"),
        ({**CHROMIUM, "extensionVersion": "0.0.1"}, "runs extension 0.0.1"),
    ],
)
def test_browser_connection_problem_is_a_warning(
    hub: FakeHub, tabhub: Run, browser: dict[str, Any], expected: str
) -> None:
    hub.answer("GET /health", {**HEALTH, "legs": {"browsers": [browser]}})
    code, found = report(tabhub)
    assert code == 0
    assert found["checks"]["browser"]["level"] == "warn"
    assert expected in found["checks"]["browser"]["message"]


@pytest.mark.req("F20")
def test_doctor_names_another_process_on_the_port(hub: FakeHub, tabhub: Run) -> None:
    hub.on("GET /health", lambda _asked, reply: reply.raw(b"220 mail ready\r\n"))
    code, found = report(tabhub)
    assert (code, found["broken"]) == (1, "port")
    assert "(pid " in found["checks"]["port"]["message"]
    assert "another port" in found["checks"]["port"]["remedy"]


def test_web_server_on_the_port_is_not_reported_as_a_hub(hub: FakeHub, tabhub: Run) -> None:
    hub.on("GET /health", lambda _asked, reply: reply.send(404, b"<h1>Not Found</h1>", "text/html"))
    code, found = report(tabhub)
    assert (code, found["broken"]) == (1, "port")
    assert "is not a Tabhub hub" in found["checks"]["port"]["message"]
    done = tabhub("status")
    assert done.returncode == 1
    assert "is not a Tabhub hub: it answered with status 404" in done.stderr


def test_doctor_reports_a_home_that_cannot_be_created(tmp_path: Path, tabhub: Run) -> None:
    (tmp_path / "file").write_text("")
    found = json.loads(tabhub("doctor", "--json", TABHUB_HOME=str(tmp_path / "file" / "home")).stdout)
    assert found["broken"] == "home"
    assert found["checks"][1]["message"].endswith(f"{tmp_path / 'file'} is not a folder.")


def test_port_of_a_hub_that_never_ran_comes_from_the_settings(home: Path, tabhub: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        (home / "config.json").write_text(json.dumps({"port": port}))
        _, found = report(tabhub)
        assert found["broken"] == "port"
        assert f"uses port {port}, on which the hub would start" in found["checks"]["port"]["message"]
    assert report(tabhub)[1]["checks"]["port"]["message"] == f"{port} is free"


def test_doctor_reports_a_nearly_full_disk(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    monkeypatch.setenv("TABHUB_HOME", str(home))

    def levels(free: int) -> list[str]:
        monkeypatch.setattr(shutil, "disk_usage", lambda _folder: SimpleNamespace(free=free))
        return [f"{found.level}: {found.message}" for found in examine() if found.name == "disk"]

    assert levels(10**9) == []
    assert levels(20_000_000) == [f"warn: Only 20.0 MB are free on the disk of {home}."]
    assert levels(0) == [f"fail: Only 0.0 MB are free on the disk of {home}."]


def test_doctor_detects_a_hub_of_another_home(hub: FakeHub, tabhub: Run) -> None:
    hub.answer("GET /health", {"error": {"message": "no"}}, 401)
    _, found = report(tabhub)
    assert found["broken"] == "hub"
    assert "does not accept the key" in found["checks"]["hub"]["message"]
    hub.answer("GET /health", {"status": "ok"})
    assert "does not accept our key" in report(tabhub)[1]["checks"]["hub"]["message"]


def test_doctor_reports_readable_and_broken_files(home: Path, hub: FakeHub, tabhub: Run) -> None:
    hub.answer("GET /health", HEALTH)
    auth = home / "extension" / "auth.json"
    auth.chmod(0o644)
    home.chmod(0o777)
    (home / "config.json").write_text('{"port": "x"}')
    _, found = report(tabhub)
    assert found["checks"]["home"]["remedy"] == f"Run: chmod 700 {home}"
    assert "rotate-secret" in found["checks"]["key"]["remedy"]
    assert found["checks"]["config"]["level"] == "fail"
    auth.write_text("{")
    assert report(tabhub)[1]["checks"]["key"]["level"] == "fail"


@pytest.mark.req("B27")
def test_pages_with_too_many_tools_are_named(home: Path, hub: FakeHub, tabhub: Run) -> None:
    notice = "news.example offers 20,098 tools; Tabhub lists 100 of them."
    hub.answer("GET /health", {**HEALTH, "pageNotices": [notice]})
    _, found = report(tabhub)
    assert (found["checks"]["pages"]["level"], found["checks"]["pages"]["message"]) == ("warn", notice)


def test_hub_problems_and_unknown_settings_are_warnings(home: Path, hub: FakeHub, tabhub: Run) -> None:
    hub.answer("GET /health", {**HEALTH, "problems": ["The audit log cannot be written: disk full"]})
    (home / "config.json").write_text('{"prt": 1}')
    code, found = report(tabhub)
    assert code == 0
    assert "disk full" in found["checks"]["hub"]["message"]
    assert "Did you mean 'port'?" in found["checks"]["config"]["message"]
