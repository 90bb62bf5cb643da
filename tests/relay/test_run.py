"""A relay node as users run it: its own process, options, TLS, tokens from the command line, and shutdown."""

from __future__ import annotations

import asyncio
import datetime
import json
import re
import signal
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from websockets.asyncio.client import connect

from tabhub.cli import main
from tabhub.errors import SetupError
from tabhub.relay.run import RelayOptions, check_transport, make_bus
from tests.harness.ports import free_port
from tests.harness.process import environment, tabhub
from tests.relay.independent import IndependentAgent, IndependentExtension

_URL = re.compile(rb"is running on (wss?://127\.0\.0\.1:\d+)")


@pytest.fixture
def key(tmp_path: Path) -> Path:
    file = tmp_path / "relay.key"
    file.write_text("0123456789abcdef" * 4)
    return file


@asynccontextmanager
async def relay_process(home: Path, *words: str) -> AsyncIterator[tuple[str, asyncio.subprocess.Process]]:
    process = await tabhub(home, "relay", "start", "--port", "0", *words)
    try:
        assert process.stdout is not None
        async with asyncio.timeout(30):
            first = await process.stdout.readline()
        found = _URL.search(first)
        assert found is not None, first
        yield found[1].decode(), process
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


def issued(capsys: pytest.CaptureFixture[str], key: Path, *words: str) -> str:
    assert main(["relay", "token", "issue", "--user", "ann", "--key-file", str(key), *words]) == 0
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    return out.strip()


async def test_a_process_serves_and_notifies_its_clients_at_shutdown(
    tmp_path: Path, key: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    access = issued(capsys, key, "--ttl", "15m")
    async with relay_process(tmp_path, "--key-file", str(key)) as (url, process):
        async with IndependentExtension(url, access) as browser, IndependentAgent(url, access) as agent:
            await agent.ready()
            assert await agent.result("getTabs") == {"method": "getTabs", "params": {}}
            assert browser.user_id == "ann"
            process.send_signal(signal.SIGTERM)
            assert (await agent.notified("disconnected"))["reason"] == "The relay restarts: reconnect"
            assert await agent.closed() == (1012, "reconnect")
        _, errors = await process.communicate()
        assert process.returncode == 0
        events = [json.loads(line)["event"] for line in errors.splitlines()]
        assert {"agent_authenticated", "browser_authenticated", "browser_disconnected"} <= set(events)
        assert access.encode() not in errors


async def test_status_and_revocation_from_the_command_line(
    tmp_path: Path, key: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    access = issued(capsys, key)
    port = str(free_port())
    async with relay_process(tmp_path, "--key-file", str(key), "--admin-port", port) as (url, _):
        clients_port = url.rpartition(":")[2]
        assert await asyncio.to_thread(main, ["relay", "status", "--port", clients_port]) == 1
        assert "relay start --admin-port" in capsys.readouterr().err
        async with IndependentAgent(url, access) as agent:
            await agent.handshake()
            assert await asyncio.to_thread(main, ["relay", "status", "--port", port, "--json"]) == 0
            assert json.loads(capsys.readouterr().out)["agents"] == 1
            assert await asyncio.to_thread(main, ["relay", "status", "--port", port]) == 0
            assert "1 agent, 1 user" in capsys.readouterr().out
            assert main(["relay", "token", "revoke", access, "--key-file", str(key)]) == 0
            assert access not in capsys.readouterr().out
            assert await agent.closed() == (4001, "the token was revoked")
    assert await asyncio.to_thread(main, ["relay", "status", "--port", port]) == 2
    assert "No relay answers" in capsys.readouterr().err


@pytest.mark.req("S003-security-01")
async def test_tls_uses_a_certificate_and_unencrypted_connections_only_this_machine(
    tmp_path: Path, key: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for refused in (RelayOptions(port=0, host="0.0.0.0"), RelayOptions(port=0, host="192.168.1.9")):
        with pytest.raises(SetupError, match="TLS"):
            check_transport(refused)
    with pytest.raises(SetupError, match="or neither"):
        check_transport(RelayOptions(port=0, tls_cert=key))
    for allowed in ("127.0.0.1", "::1", "localhost"):
        check_transport(RelayOptions(port=0, host=allowed))
    check_transport(RelayOptions(port=0, host="0.0.0.0", behind_proxy=True))
    cert, private = certificate(tmp_path)
    words = ("--key-file", str(key), "--tls-cert", str(cert), "--tls-key", str(private))
    access = issued(capsys, key)
    async with relay_process(tmp_path, *words) as (url, _):
        assert url.startswith("wss://")
        trusting = ssl.create_default_context(cafile=str(cert))
        async with connect(f"{url}/mcp", ssl=trusting) as ws:
            shake = {"jsonrpc": "2.0", "id": 1, "method": "mcp_handshake", "params": {"accessToken": access}}
            await ws.send(json.dumps(shake))
            assert json.loads(await ws.recv())["result"]["user_id"] == "ann"


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate of our own for 127.0.0.1."""
    private = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "relay")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(private.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(private, hashes.SHA256())
    )
    cert, key = folder / "cert.pem", folder / "key.pem"
    cert.write_bytes(made.public_bytes(Encoding.PEM))
    key.write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return cert, key


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "needs a key"),
        (["--key-file", "/nonexistent/key"], "Key file not found: /nonexistent/key."),
        (["--key-file", "KEY", "--host", "0.0.0.0"], "needs TLS"),
        (["--key-file", "KEY", "--bus", "redis://x"], "nats://"),
        (["--key-file", "KEY", "--tls-cert", "KEY", "--tls-key", "KEY"], "certificate"),
    ],
)
async def test_an_impossible_start_reports_the_reason(tmp_path: Path, key: Path, words: list[str], said: str) -> None:
    chosen = [str(key) if word == "KEY" else word for word in words]
    process = await tabhub(tmp_path, "relay", "start", "--port", "0", *chosen)
    _, errors = await process.communicate()
    assert process.returncode == 1
    assert said in errors.decode()
    assert "Traceback" not in errors.decode()


def test_tokens_can_be_inspected(key: Path, capsys: pytest.CaptureFixture[str]) -> None:
    access = issued(capsys, key, "--ttl", "1h", "--url", "wss://relay.example")
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
    access = issued(capsys, key)
    monkeypatch.setenv("TABHUB_RELAY_KEY", key.read_text())
    assert main(["relay", "token", "inspect", access]) == 0
    assert "verdict   valid" in capsys.readouterr().out
    assert main(["relay", "token", "revoke", access, "--key-file", str(key)]) == 0
    assert main(["relay", "token", "inspect", access, "--key-file", str(key)]) == 1
    assert "verdict   refused: it was revoked" in capsys.readouterr().out
    list_of_revoked = ["--revoked-file", str(key.with_name("relay.key.revoked"))]
    assert main(["relay", "token", "inspect", access, *list_of_revoked, "--json"]) == 1


@pytest.mark.parametrize("ttl", ["0", "-1", "1y", "400d", "soon"])
def test_an_invalid_lifetime_is_refused(key: Path, ttl: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["relay", "token", "issue", "--user", "ann", "--key-file", str(key), f"--ttl={ttl}"]) == 2


async def test_the_token_can_be_read_from_standard_input(
    tmp_path: Path, key: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    access = issued(capsys, key)
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


def test_without_a_url_the_bus_is_that_of_a_single_node() -> None:
    assert make_bus(None, "n").node == "n"
