"""`tabhub relay token`: issue, inspect and revoke."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

import jwt as pyjwt
import pytest

from tabhub.cli import main
from tabhub.relay.revocations import Revocations
from tests.harness.process import environment
from tests.relay.process import issue_token


def test_tokens_can_be_inspected(key: Path, capsys: pytest.CaptureFixture[str]) -> None:
    access = issue_token(capsys, key, "--ttl", "1h", "--url", "wss://relay.example")
    assert main(["relay", "token", "inspect", access, "--key-file", str(key)]) == 0
    out = capsys.readouterr().out
    assert "user      ann" in out
    assert "relay     wss://relay.example" in out
    assert "verdict   valid" in out
    key.write_text("x" * 64)
    assert main(["relay", "token", "inspect", access, "--key-file", str(key), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["verdict"].startswith("refused")
    assert main(["relay", "token", "inspect", "nonsense"]) == 1
    assert "not a JWT" in capsys.readouterr().err


def test_a_revoked_token_is_not_reported_as_valid(
    key: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    access = issue_token(capsys, key)
    monkeypatch.setenv("TABHUB_RELAY_KEY", key.read_text())
    assert main(["relay", "token", "inspect", access]) == 0
    assert "verdict   valid" in capsys.readouterr().out
    assert main(["relay", "token", "revoke", access, "--key-file", str(key)]) == 0
    assert main(["relay", "token", "inspect", access, "--key-file", str(key)]) == 1
    assert "verdict   refused: it was revoked" in capsys.readouterr().out
    list_of_revoked = ["--revoked-file", str(key.with_name("relay.key.revoked"))]
    assert main(["relay", "token", "inspect", access, *list_of_revoked, "--json"]) == 1


@pytest.mark.parametrize("expiry", [None, 10**12, "soon", True])
def test_a_revocation_lasts_while_it_is_unknown_when_the_token_expires(key: Path, expiry: Any) -> None:
    claims = {"sub": "ann", "jti": "stolen", "exp": expiry}
    named = ["--id", "stolen"] if expiry is None else [pyjwt.encode(claims, key.read_text(), algorithm="HS256")]
    assert main(["relay", "token", "revoke", *named, "--key-file", str(key)]) == 0
    known = Revocations(key.with_name("relay.key.revoked"))
    known.reload(time.time())
    assert known.entries(time.time() + 500 * 366 * 86_400) == ["stolen 999999999999"]


@pytest.mark.parametrize("ttl", ["0", "-1", "1y", "400d", "soon"])
def test_an_invalid_lifetime_is_refused(key: Path, ttl: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["relay", "token", "issue", "--user", "ann", "--key-file", str(key), f"--ttl={ttl}"]) == 2


async def test_the_token_can_be_read_from_standard_input(
    tmp_path: Path, key: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    access = issue_token(capsys, key)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tabhub", "relay", "token", "revoke", "-", "--key-file", str(key)),
        env=environment(tmp_path),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await process.communicate(access.encode())
    assert process.returncode == 0
    assert b"Revoked" in out
    assert len(key.with_name("relay.key.revoked").read_text().splitlines()) == 1


def test_all_tokens_of_a_user_can_be_revoked(key: Path, capsys: pytest.CaptureFixture[str]) -> None:
    access = issue_token(capsys, key)
    assert main(["relay", "token", "revoke", "--user", "ann", "--key-file", str(key)]) == 0
    assert "all tokens of ann issued until now" in capsys.readouterr().out
    assert "ann" not in key.with_name("relay.key.revoked").read_text()
    assert main(["relay", "token", "inspect", access, "--key-file", str(key)]) == 1
    assert "refused: it was revoked" in capsys.readouterr().out
    assert main(["relay", "token", "revoke", "--user", "ann", "--id", "x", "--key-file", str(key)]) == 2


def test_a_full_list_is_reported_and_not_added_to(
    tmp_path: Path, key: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TABHUB_HOME", str(tmp_path / "home"))
    assert main(["config", "set", "limits.relay_revoked", "2"]) == 0
    for ident in ("one", "two"):
        assert main(["relay", "token", "revoke", "--id", ident, "--key-file", str(key)]) == 0
    assert main(["relay", "token", "revoke", "--id", "three", "--key-file", str(key)]) == 1
    assert "is full: it has 2 entries" in capsys.readouterr().err
    assert "three" not in key.with_name("relay.key.revoked").read_text()


@pytest.mark.parametrize("role", ["browser", "agent"])
def test_a_token_for_one_kind_of_client_says_so(key: Path, role: str, capsys: pytest.CaptureFixture[str]) -> None:
    access = issue_token(capsys, key, "--role", role)
    assert main(["relay", "token", "inspect", access, "--key-file", str(key)]) == 0
    assert f"role      {role}" in capsys.readouterr().out
