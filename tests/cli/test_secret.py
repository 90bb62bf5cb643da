"""`tabhub secret`: set, list and remove."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from tabhub.cli import main
from tabhub.store.home import Home
from tabhub.store.named_secrets import SecretStore


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SecretStore:
    monkeypatch.setenv("TABHUB_HOME", str(tmp_path / "home"))
    return SecretStore(Home(tmp_path / "home"), None)


def give(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """What the command reads from its pipe."""
    monkeypatch.setattr("sys.stdin", io.StringIO(text))


def test_a_secret_is_set_listed_and_removed(
    store: SecretStore, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["secret", "list"]) == 0
    assert "No secrets." in capsys.readouterr().out
    give(monkeypatch, "hunter-22\n")
    assert main(["secret", "set", "shop", "--site", "shop.example", "--site", "http://localhost:80"]) == 0
    shown = capsys.readouterr().out
    assert "{{secret:shop}}" in shown
    assert "hunter" not in shown
    found = store.find("shop")
    assert found is not None
    assert store.value(found) == "hunter-22"
    give(monkeypatch, "GEZDGNBVGY3TQOJQ")
    assert main(["secret", "set", "code", "--totp", "--site", "shop.example", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"name": "code", "kind": "totp", "sites": ["https://shop.example"]}
    assert main(["secret", "list"]) == 0
    listed = capsys.readouterr().out
    assert "{{totp:code}}  on https://shop.example" in listed
    assert "hunter" not in listed
    assert "GEZD" not in listed
    assert main(["secret", "remove", "shop"]) == 0
    assert main(["secret", "remove", "shop"]) == 1
    assert [each.name for each in store.listed()] == ["code"]


@pytest.mark.parametrize(
    ("text", "argv", "expected"),
    [
        ("hunter-22", ["shop"], "no site"),
        ("hunter-22", ["shop", "--site", "https://shop.example/login"], "not a site"),
        ("", ["shop", "--site", "shop.example"], "4 to 1000"),
        ("no key 1", ["shop", "--totp", "--site", "shop.example"], "not base32"),
    ],
)
def test_what_cannot_be_used_is_refused(
    store: SecretStore,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    text: str,
    argv: list[str],
    expected: str,
) -> None:
    give(monkeypatch, text)
    assert main(["secret", "set", *argv]) == 1
    assert expected in capsys.readouterr().err
    assert store.listed() == []


def test_a_setting_of_a_plugin_is_not_shown_or_removed(store: SecretStore, capsys: pytest.CaptureFixture[str]) -> None:
    store.set("plugin/notes/token", '"x"', "plugin", (), 1.0)
    assert main(["secret", "list"]) == 0
    assert "plugin" not in capsys.readouterr().out
    assert main(["secret", "remove", "plugin/notes/token"]) == 2
    assert len(store.listed()) == 1
