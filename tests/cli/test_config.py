"""`tabhub config` and `tabhub audit`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.cli.fakehub import SECRET, FakeHub

ENTRIES: list[dict[str, Any]] = [
    {
        "timestamp": "2999-01-01T00:00:00.000Z",
        "tool": "slack_send",
        "plugin": "slack",
        "success": False,
        "durationMs": 12,
        "session": "cli",
        "error": {"code": -32009, "message": "too late\nsecond line"},
    },
    {
        "timestamp": "2026-01-01T00:00:00.000Z",
        "tool": "browser_open_tab",
        "plugin": "browser",
        "success": True,
        "durationMs": 1.25,
    },
]


@pytest.mark.req("S002-clients-05")
def test_show_masks_the_secret_unless_asked(home: Path, tabhub: Run) -> None:
    (home / "config.json").write_text('{"port": 9600, "zzz": 1}')
    done = tabhub("config", "show")
    assert "port = 9600  (changed)" in done.stdout
    assert "secret = 5555…5555" in done.stdout
    assert "'zzz' is not a setting" in done.stderr
    shown = json.loads(tabhub("config", "show", "--json").stdout)
    assert shown["port"] == 9600
    assert shown["secret"] == "5555…5555"
    assert shown["zzz"] == 1
    assert json.loads(tabhub("config", "show", "--json", "--show-secret").stdout)["secret"] == SECRET


def test_set_reset_and_path(home: Path, tabhub: Run) -> None:
    assert tabhub("config", "path").stdout == f"{home}/config.json\n"
    assert tabhub("config", "set", "limits.call_timeout", "60").returncode == 0
    assert tabhub("config", "set", "port=9601").stdout == "port = 9601\n"
    assert json.loads((home / "config.json").read_text()) == {"limits": {"call_timeout": 60}, "port": 9601}
    assert tabhub("config", "reset", "port").stdout == "port is back to its default.\n"
    assert "config.json.bak" in tabhub("config", "reset").stdout
    assert json.loads((home / "config.json").read_text()) == {}


def test_permission_for_an_unknown_tool_warns(home: Path, tabhub: Run) -> None:
    for key in ("permissions.browser.tools.", "permissions.clients.claude.browser.tools."):
        done = tabhub("config", "set", f"{key}browser_execute_scirpt", "off")
        assert done.returncode == 0
        assert "There is no built-in tool 'browser_execute_scirpt'" in done.stderr
        assert "Did you mean 'browser_execute_script'?" in done.stderr
        assert tabhub("config", "set", f"{key}browser_execute_script", "off").stderr == ""


@pytest.mark.parametrize(
    "words",
    [["port", "0"], ["port", "x"], ["limits.nope", "1"], ["auditArguments", "maybe"], ["tools", "core,netwrk"]],
)
def test_invalid_setting_is_rejected_and_not_written(home: Path, tabhub: Run, words: list[str]) -> None:
    done = tabhub("config", "set", *words)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert not (home / "config.json").exists()


def test_running_hub_reloads_and_its_answer_is_shown(hub: FakeHub, tabhub: Run) -> None:
    hub.answer("POST /reload", {"ok": True})
    assert "has taken it over" in tabhub("config", "set", "auditArguments", "true").stdout
    assert "next start" in tabhub("config", "set", "port", "9600").stdout
    hub.answer("POST /reload", {"ok": True, "needsRestart": ["limits"]})
    assert "next start (changed since this one: limits)" in tabhub("config", "set", "limits.call_timeout", "45").stdout
    hub.answer("POST /reload", {}, 429, Retry_After="9")
    assert "in 9 s" in tabhub("config", "reset").stderr
    hub.answer("POST /reload", {"ok": False, "error": "it is broken"})
    assert "it is broken" in tabhub("config", "reset").stderr


def test_rotating_the_secret_reloads_the_hub_with_the_old_one(home: Path, hub: FakeHub, tabhub: Run) -> None:
    hub.answer("POST /reload", {"ok": True})
    done = tabhub("config", "rotate-secret")
    new = json.loads((home / "extension" / "auth.json").read_text())["secret"]
    assert new != SECRET
    assert new not in done.stdout
    assert hub.asked[-1].headers["authorization"] == f"Bearer {SECRET}"
    shown = tabhub("config", "rotate-secret", "--show-secret").stdout
    assert json.loads((home / "extension" / "auth.json").read_text())["secret"] in shown


def test_audit_asks_the_hub_with_the_filters(hub: FakeHub, tabhub: Run) -> None:
    hub.answer("GET /audit", ENTRIES)
    done = tabhub("audit", "--plugin", "slack", "--tool", "slack_send", "--failed", "--limit", "7")
    assert done.returncode == 0
    assert hub.asked[-1].path == "/audit?limit=7&plugin=slack&tool=slack_send&success=false"
    rows = done.stdout.splitlines()
    assert "failed      12 ms  slack_send  [cli]  too late" in rows[0]
    assert "ok         1.2 ms  browser_open_tab" in rows[1]
    assert rows[-1] == "2 calls, 1 failed"
    assert json.loads(tabhub("audit", "--json").stdout) == ENTRIES
    assert json.loads(tabhub("audit", "--json", "--since", "1h").stdout) == ENTRIES[:1]
    assert json.loads(tabhub("audit", "--json", "--since", "2020-01-01").stdout) == ENTRIES


@pytest.mark.req("S002-audit-05")
def test_audit_without_hub_points_to_the_file_and_reads_it(home: Path, tabhub: Run) -> None:
    assert "tabhub audit --file" in tabhub("audit", TABHUB_PORT="1").stderr
    assert tabhub("audit", "--file").stdout == "No calls.\n"
    lines = [json.dumps(entry) for entry in reversed(ENTRIES)]
    (home / "audit.log").write_text("\n".join([*lines, '{"torn": ']))
    done = tabhub("audit", "--file", "--json")
    assert json.loads(done.stdout) == ENTRIES
    assert "1 line " in done.stderr
    assert json.loads(tabhub("audit", "--file", "--json", "--success").stdout) == ENTRIES[1:]
    assert tabhub("audit", "--file", "--tool", "x").stdout == "No calls that fit.\n"


def test_audit_in_an_unexpected_form_is_an_error(hub: FakeHub, tabhub: Run) -> None:
    hub.answer("GET /audit", {"a": 1})
    done = tabhub("audit")
    assert done.returncode == 1
    assert "expected form" in done.stderr


def test_audit_distinguishes_page_tool_changes_from_calls(home: Path, tabhub: Run) -> None:
    when = "2026-02-21T10:30:00.000Z"
    event: dict[str, Any] = {"timestamp": when, "tool": "page.tools", "event": True, "success": True, "tabId": 7}
    event.update(origin="https://shop.example", added=["find", "buy"], removed=["old"])
    call: dict[str, Any] = {"timestamp": when, "tool": "shop_find", "success": True, "durationMs": 2}
    call.update(session="a1b2", via="gateway")
    (home / "audit.log").write_text("".join(json.dumps(each) + "\n" for each in (event, call)))
    shown = tabhub("audit", "--file").stdout
    assert "https://shop.example (tab 7) offers find, buy; no longer offers old" in shown
    assert "shop_find  [gateway a1b2]\n" in shown
    assert "1 call, 0 failed" in shown
    assert "? ms" not in shown
