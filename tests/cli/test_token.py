"""`tabhub token`: create, list and revoke."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tabhub.cli import main
from tabhub.store.home import Home
from tabhub.store.tokens import TokenStore


def test_token_is_created_listed_and_revoked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TABHUB_HOME", str(tmp_path / "home"))
    assert main(["token", "list"]) == 0
    assert "No tokens." in capsys.readouterr().out
    assert main(["token", "create", "ci", "--json"]) == 0
    token = json.loads(capsys.readouterr().out)["token"]
    store = TokenStore(Home(tmp_path / "home"))
    assert store.agent_of(token.encode()) == "ci"
    assert main(["token", "create", "laptop"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("thb_")
    assert "shown only once" in shown
    assert main(["token", "list", "--json"]) == 0
    listed = capsys.readouterr().out
    assert [each["name"] for each in json.loads(listed)] == ["ci", "laptop"]
    assert "thb_" not in listed
    assert main(["token", "revoke", "ci"]) == 0
    assert store.agent_of(token.encode()) is None
    assert main(["token", "revoke", "ci"]) == 1
    assert "There is no token named 'ci'" in capsys.readouterr().err


def test_token_for_metrics_is_listed_as_such_and_is_no_agents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TABHUB_HOME", str(tmp_path / "home"))
    assert main(["token", "create", "prometheus", "--metrics"]) == 0
    shown = capsys.readouterr().out
    assert "opens /metrics and nothing else" in shown
    assert TokenStore(Home(tmp_path / "home")).agent_of(shown.split()[0].encode()) is None
    assert main(["token", "list"]) == 0
    assert "opens /metrics only" in capsys.readouterr().out
