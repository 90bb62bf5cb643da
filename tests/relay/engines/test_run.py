"""MCP over HTTP at a relay in its own process, used by the official client."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path

import httpx2
import pytest

from tabhub.cli import main
from tests.harness.agent import Agent
from tests.harness.hub import Address
from tests.harness.ports import free_port
from tests.relay.engines.httpworld import META, browser, sdk
from tests.relay.test_run import key, relay_process  # noqa: F401 - a fixture of theirs
from tests.relay.world import token

_SERVERS = ("--auth-server", "https://login.example.com", "--auth-server", "https://second.example.com/realm/")


async def test_a_process_names_its_token_issuers_and_serves_valid_tokens(tmp_path: Path, key: Path) -> None:  # noqa: F811
    audit = tmp_path / "audit.log"
    words = (
        "--key-file",
        str(key),
        "--public-url",
        "https://relay.example.com/",
        "--audit-file",
        str(audit),
        "--admin-port",
        str(admin_port := free_port()),
        *_SERVERS,
    )
    async with relay_process(tmp_path, *words) as (ws, process), httpx2.AsyncClient(verify=False, timeout=30) as http:
        url = ws.replace("ws", "http", 1)
        found = (await http.get(f"{url}{META}/mcp")).json()
        assert found["resource"] == "https://relay.example.com/mcp"
        assert found["authorization_servers"] == ["https://login.example.com", "https://second.example.com/realm"]
        refused = await http.post(f"{url}/mcp", json={})
        assert refused.status_code == 401
        assert f"https://relay.example.com{META}/mcp" in refused.headers["www-authenticate"]
        async with browser(ws), sdk(url, token()) as client:
            assert not (await client.call_tool("browser_list_tabs", {})).is_error
        admin = f"http://127.0.0.1:{admin_port}"
        status = (await http.get(f"{admin}/status")).json()
        assert status["engines"] == 1
        assert b"tabhub_relay_engines 1.0" in (await http.get(f"{admin}/metrics")).content
        assert json.loads(audit.read_text().splitlines()[0])["tool"] == "browser_list_tabs"
        assert audit.stat().st_mode & 0o077 == 0
        async with (
            Agent(Address(port=int(url.rpartition(":")[2]), token=token())) as agent,
            agent.listening() as stream,
        ):
            process.send_signal(signal.SIGTERM)
            await stream.rest()  # it ends in order
        _, errors = await asyncio.wait_for(process.communicate(), 30)
        assert process.returncode == 0
        assert not [line for line in errors.splitlines() if json.loads(line)["level"] == "error"], errors


async def test_behind_a_proxy_only_the_admin_port_has_status(tmp_path: Path, key: Path) -> None:  # noqa: F811
    port = free_port()
    async with (
        relay_process(tmp_path, "--key-file", str(key), "--behind-proxy", "--admin-port", str(port)) as (ws, _),
        httpx2.AsyncClient(verify=False, timeout=30) as http,
    ):
        url = ws.replace("ws", "http", 1)
        for path in ("/status", "/metrics"):
            assert (await http.get(f"{url}{path}")).status_code == 404
            assert (await http.get(f"http://127.0.0.1:{port}{path}")).status_code == 200
            rebound = await http.get(f"http://127.0.0.1:{port}{path}", headers={"Host": f"evil.example:{port}"})
            assert rebound.status_code == 403
        assert (await http.get(f"{url}/healthz", headers={"Host": "relay.example.com"})).status_code == 200


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
    key: Path,  # noqa: F811
    capsys: pytest.CaptureFixture[str],
    option: str,
    value: str,
) -> None:
    assert main(["relay", "start", "--port", "0", "--key-file", str(key), option, value]) != 0
    assert option in capsys.readouterr().err
