"""`tabhub config`: settings shown, changed and reset, and the extension's key rotated."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.cli.fake_http_hub import EXTENSION_KEY, PERSON_KEY, FakeHub


def test_show_prints_settings_and_no_keys(home: Path, tabhub: Run) -> None:
    (home / "config.json").write_text('{"port": 9600, "zzz": 1}')
    done = tabhub("config", "show")
    assert "port = 9600  (changed)" in done.stdout
    assert "'zzz' is not a setting" in done.stderr
    shown = json.loads(tabhub("config", "show", "--json").stdout)
    assert shown["port"] == 9600
    assert "secret" not in shown
    assert shown["zzz"] == 1


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
    assert "has reloaded its settings" in tabhub("config", "set", "auditArguments", "true").stdout
    hub.answer("POST /reload", {"ok": True, "needsRestart": ["port", "limits"]})
    assert "Restart the hub to change port, limits" in tabhub("config", "set", "limits.call_timeout", "45").stdout
    hub.answer("POST /reload", {}, 429, Retry_After="9")
    assert "in 9 s" in tabhub("config", "reset").stderr
    hub.answer("POST /reload", {"error": {"message": "it is broken"}}, 422)
    assert "it is broken" in tabhub("config", "reset").stderr


def test_rotating_the_key_of_the_extension_reloads_the_hub(home: Path, hub: FakeHub, tabhub: Run) -> None:
    hub.answer("POST /reload", {"ok": True})
    done = tabhub("config", "rotate-secret")
    new = json.loads((home / "extension" / "auth.json").read_text())["secret"]
    assert new != EXTENSION_KEY
    assert new not in done.stdout
    assert hub.requests[-1].headers["authorization"] == f"Bearer {PERSON_KEY}"
