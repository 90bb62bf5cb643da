"""`tabhub site`: rules are set, removed and listed; sensitive sites are suggested."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tabhub.cli import main


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TABHUB_HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "config.json"


def test_rules_are_set_listed_and_removed(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["site", "list"]) == 0
    assert "No site rules." in capsys.readouterr().out
    assert main(["site", "block", "*.Bank.example"]) == 0
    assert main(["site", "read", "*.bank.example", "--agent", "ci"]) == 0
    assert main(["site", "act", "https://wiki.example"]) == 0
    assert json.loads(config.read_text())["sites"] == {
        "*.bank.example": {"*": "block", "ci": "read"},
        "https://wiki.example": "act",
    }
    capsys.readouterr()
    assert main(["site", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(maxsplit=2) for line in lines] == [
        ["https://wiki.example", "act", "every agent"],
        ["*.bank.example", "read", "ci"],
        ["*.bank.example", "block", "every agent"],
    ]
    assert main(["site", "remove", "*.bank.example"]) == 0
    assert main(["site", "remove", "https://wiki.example"]) == 0
    assert json.loads(config.read_text()) == {"sites": {"*.bank.example": {"ci": "read"}}}
    assert main(["site", "remove", "wiki.example"]) == 2
    assert "There is no rule for wiki.example" in capsys.readouterr().err
    capsys.readouterr()
    assert main(["site", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"pattern": "*.bank.example", "agent": "ci", "level": "read"}]


def test_an_invalid_pattern_changes_nothing(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["site", "block", "https://bank.example/login"]) == 2
    shown = capsys.readouterr().err
    assert "it has a path" in shown
    assert "*.bank.example" in shown
    assert not config.exists()


def test_a_category_of_sensitive_sites_is_suggested_and_blocked(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["site", "act", "mail.google.com"]) == 0
    assert main(["site", "suggest"]) == 0
    shown = capsys.readouterr().out
    assert "banking  Banking and payments" in shown
    assert "mail.google.com" in shown
    assert main(["site", "suggest", "--block", "mail"]) == 0
    sites = json.loads(config.read_text())["sites"]
    assert sites["mail.google.com"] == "act"  # the person's own rule stays
    assert sites["outlook.live.com"] == "block"
    assert main(["site", "suggest", "--block", "mail"]) == 0
    assert "have a rule already" in capsys.readouterr().out
