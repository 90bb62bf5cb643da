"""`tabhub permissions`: grants are listed and revoked, and a call is explained."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tabhub.cli import main
from tabhub.store.grants import GrantStore
from tabhub.store.home import Home
from tabhub.trust.grants import Scope
from tests.harness.agent import client
from tests.harness.hub import running_hub
from tests.harness.process import tabhub

WIKI = "https://wiki.example"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("TABHUB_HOME", str(tmp_path / "home"))
    return Home(tmp_path / "home")


def test_grants_are_listed_and_revoked(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["permissions", "list"]) == 0
    assert "No grants." in capsys.readouterr().out
    GrantStore(home, 10).add("ci", (Scope("input", WIKI),), "panel", 0.0)
    assert main(["permissions", "list", "--json"]) == 0
    (grant,) = json.loads(capsys.readouterr().out)
    assert grant["text"] == f"ci may always click and type on {WIKI}"
    assert main(["permissions", "list"]) == 0
    assert f"{grant['id']}  {grant['text']}" in capsys.readouterr().out
    assert main(["permissions", "revoke", grant["id"]]) == 0
    assert "needs approval again" in capsys.readouterr().out
    assert main(["permissions", "revoke", grant["id"]]) == 1
    assert "There is no grant" in capsys.readouterr().err


def test_without_a_hub_built_in_tools_are_explained(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["site", "block", "wiki.example", "--agent", "ci"]) == 0
    capsys.readouterr()
    assert main(["permissions", "explain", "--agent", "ci", "--tool", "browser_snapshot", "--url", WIKI]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"ci may not read pages with browser_snapshot on {WIKI}: ")
    assert shown.endswith("your site rule “wiki.example: block (for ci)” decides.\n")
    assert main(["permissions", "explain", "--tool", "slack_send"]) == 1
    assert "the hub must run" in capsys.readouterr().err


async def test_the_hub_explains_to_the_person_only(tmp_path: Path) -> None:
    async with running_hub(tmp_path, sites={"wiki.example": "block"}) as hub, client(hub) as http:
        question = {"tool": "browser_snapshot", "url": WIKI}
        assert (await http.post("/permissions/explain", json=question, headers=hub.bearer)).status_code == 403
        hub.home.hub_json.write_text(json.dumps({"pid": os.getpid(), "port": hub.port}))
        words = ("permissions", "explain", "--tool", "browser_snapshot", "--url", WIKI)
        process = await tabhub(hub.home.root, *words)
        shown, _ = await process.communicate()
        assert "your site rule “wiki.example: block” decides." in shown.decode()
