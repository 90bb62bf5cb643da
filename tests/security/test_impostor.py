"""A program on the hub's port must prove that it knows the key of its extension before it receives a key."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tabhub.cli.hub.client import Hub, decode, find_hub, request
from tabhub.client_errors import CliError
from tabhub.trust.tokens import challenge_proof
from tests.cli.fake_http_hub import FakeHub, running
from tests.harness.hub import RunningHub
from tests.harness.raw import exchange
from tests.harness.raw import request as written

KEY, EXTENSION_KEY = "5e" * 32, "6f" * 32
CHALLENGE = "0123456789abcdef" * 4


@pytest.fixture
def impostor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    """A program on the port that this home's hub had when it last ran."""
    with running() as impostor:
        monkeypatch.setenv("TABHUB_HOME", str(tmp_path))
        monkeypatch.delenv("TABHUB_PORT", raising=False)
        monkeypatch.delenv("TABHUB_TOKEN", raising=False)
        (tmp_path / "extension").mkdir()
        (tmp_path / "run").mkdir()
        (tmp_path / "run" / "person.key").write_text(KEY)
        auth = {"secret": EXTENSION_KEY, "scope": "extension", "port": impostor.port}
        (tmp_path / "extension" / "auth.json").write_text(json.dumps(auth))
        yield impostor


def received_by(impostor: FakeHub) -> str:
    return str([(request.method, request.path, request.headers, request.body) for request in impostor.requests])


@pytest.mark.parametrize(
    "answer",
    [
        {"status": "ok"},
        {"proof": None},
        {"proof": "00" * 32},
        {"proof": "é"},
        {"proof": challenge_proof(b"other", 1, CHALLENGE)},
    ],
)
def test_cli_sends_the_persons_key_only_to_a_hub_that_proved_it(impostor: FakeHub, answer: dict[str, str]) -> None:
    impostor.answer("GET /health", answer)
    for method, path in (("GET", "/health"), ("POST", "/tools/x/call"), ("POST", "/reload")):
        with pytest.raises(CliError, match="does not know the key of its extension"):
            request(find_hub(), method, path, body=b"{}" if method == "POST" else None)
    assert KEY not in received_by(impostor)
    assert EXTENSION_KEY not in received_by(impostor)
    assert {request.path.partition("?")[0] for request in impostor.requests} == {"/health"}


def test_record_of_a_dead_hub_or_another_port_is_not_trusted(
    impostor: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    impostor.answer("GET /health", {"status": "ok"})
    for record in ({"pid": 2**22 + 1, "port": impostor.port}, {"pid": os.getpid(), "port": impostor.port + 1}):
        (tmp_path / "hub.json").write_text(json.dumps(record))
        monkeypatch.setenv("TABHUB_PORT", str(impostor.port))
        with pytest.raises(CliError, match="does not know the key of its extension"):
            request(find_hub(), "GET", "/audit")
    assert KEY not in received_by(impostor)
    assert EXTENSION_KEY not in received_by(impostor)


async def test_hub_proof_is_bound_to_its_port_and_reveals_nothing_else(hub: RunningHub) -> None:
    host = ("Host", f"127.0.0.1:{hub.port}")
    answer = await exchange(hub.port, written("GET", f"/health?challenge={CHALLENGE}", [host]))
    shown = challenge_proof(hub.extension_key.encode(), hub.port, CHALLENGE)
    assert json.loads(answer.body) == {"status": "ok", "proof": shown}
    assert shown != challenge_proof(hub.extension_key.encode(), hub.port + 1, CHALLENGE)
    assert shown != challenge_proof(KEY.encode(), hub.port, CHALLENGE)
    for bad in ("", "0" * 31, "0" * 129, "A" * 32, "0" * 32 + "%0a", "é" * 32, "0" * 32 + "&x=1"):
        refused = await exchange(hub.port, written("GET", f"/health?challenge={bad}", [host]))
        assert refused.status == 400, bad
        assert b"proof" not in refused.body
    page = [host, ("Origin", "https://evil.example")]
    assert (await exchange(hub.port, written("GET", f"/health?challenge={CHALLENGE}", page))).status == 403


async def test_cli_finds_a_hub_without_a_record_by_its_proof(hub: RunningHub) -> None:
    found = Hub(str(hub.home.root), hub.port, hub.extension_key, None, {})
    assert not found.proved
    answer = await asyncio.to_thread(request, found, "GET", "/health")
    assert "version" in decode(answer)
    assert found.proved
