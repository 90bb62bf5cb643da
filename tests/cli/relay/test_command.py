"""`tabhub relay start` and `status`: invalid options, and the status of a running node."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from tabhub.cli import main
from tests.harness.ports import free_port
from tests.harness.process import tabhub
from tests.relay.independent import IndependentAgent
from tests.relay.process import certificate, issue_token, relay_process


async def test_status_and_revocation_from_the_command_line(
    tmp_path: Path, key: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    access = issue_token(capsys, key)
    port = str(free_port())
    words = ("--key-file", str(key), "--admin-port", port, "--bus", "nats://127.0.0.1:9")
    async with relay_process(tmp_path, *words) as (url, _):
        clients_port = url.rpartition(":")[2]
        assert await asyncio.to_thread(main, ["relay", "status", "--port", clients_port]) == 1
        assert "relay start --admin-port" in capsys.readouterr().err
        async with IndependentAgent(url, access) as agent:
            await agent.handshake()
            assert await asyncio.to_thread(main, ["relay", "status", "--port", port, "--json"]) == 0
            assert json.loads(capsys.readouterr().out)["agents"] == 1
            assert await asyncio.to_thread(main, ["relay", "status", "--port", port]) == 0
            shown = capsys.readouterr().out
            assert "1 agent, 1 user" in shown
            assert "ready; degraded: the bus is unavailable" in shown
            assert main(["relay", "token", "revoke", access, "--key-file", str(key)]) == 0
            assert access not in capsys.readouterr().out
            assert await agent.closed() == (4001, "the token was revoked")
    assert await asyncio.to_thread(main, ["relay", "status", "--port", port]) == 2
    assert "No relay answers" in capsys.readouterr().err


async def test_status_of_a_node_with_a_certificate(
    tmp_path: Path, key: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cert, private = certificate(tmp_path)
    port = str(free_port())
    words = ("--key-file", str(key), "--tls-cert", str(cert), "--tls-key", str(private), "--admin-port", port)
    async with relay_process(tmp_path, *words) as (url, _):
        assert url.startswith("wss://")
        assert await asyncio.to_thread(main, ["relay", "status", "--port", port]) == 0
        assert ": ready" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "needs a key"),
        (["--key-file", "/nonexistent/key"], "Key file not found: /nonexistent/key."),
        (["--key-file", "KEY", "--host", "0.0.0.0"], "needs TLS"),
        (["--key-file", "KEY", "--bus", "redis://x"], "nats://"),
        (["--key-file", "KEY", "--tls-cert", "KEY", "--tls-key", "KEY"], "certificate"),
    ],
)
async def test_an_impossible_start_reports_the_reason(
    tmp_path: Path, key: Path, words: list[str], message: str
) -> None:
    chosen = [str(key) if word == "KEY" else word for word in words]
    process = await tabhub(tmp_path, "relay", "start", "--port", "0", *chosen)
    _, errors = await process.communicate()
    assert process.returncode == 1
    assert message in errors.decode()
    assert "Traceback" not in errors.decode()


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--auth-server", "login.example.com"),
        ("--public-url", "http://relay.example.com"),
        ("--public-url", "https://[relay.example.com"),
        ("--auth-server", "https://login.example.com:99999"),
    ],
)
def test_an_invalid_url_is_reported_at_start(
    key: Path,
    capsys: pytest.CaptureFixture[str],
    option: str,
    value: str,
) -> None:
    assert main(["relay", "start", "--port", "0", "--key-file", str(key), option, value]) != 0
    assert option in capsys.readouterr().err
