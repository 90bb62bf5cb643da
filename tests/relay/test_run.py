"""A relay node as users run it: its own process, TLS, MCP over HTTP, and shutdown."""

from __future__ import annotations

import asyncio
import json
import signal
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tabhub.cli import main
from tabhub.errors import SetupError
from tabhub.relay.run import RelayOptions, check_transport, make_bus
from tests.harness.agent import Agent
from tests.harness.hub import Address
from tests.harness.ports import free_port
from tests.harness.waiting import eventually, until
from tests.relay.engines.httpworld import META, browser, sdk
from tests.relay.independent import IndependentAgent, IndependentExtension
from tests.relay.process import certificate, issue_token, relay_process
from tests.relay.world import token


async def test_a_process_serves_and_notifies_its_clients_at_shutdown(
    tmp_path: Path, key: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    access = issue_token(capsys, key, "--ttl", "15m")
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


@pytest.mark.req("F24")
async def test_sigterm_lets_running_calls_finish_and_a_second_one_does_not_wait(
    tmp_path: Path, key: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    access = issue_token(capsys, key)
    for impatient in (False, True):
        async with relay_process(tmp_path, "--key-file", str(key)) as (url, process):
            async with IndependentExtension(url, access) as browser, IndependentAgent(url, access) as agent:
                await agent.ready()
                browser.handle = lambda method, params: None
                call = await agent.begin("slow")
                await until(lambda browser=browser: bool(browser.requests))  # type: ignore[misc]
                process.send_signal(signal.SIGTERM)
                async with httpx2.AsyncClient(timeout=30) as http:
                    ready = url.replace("ws", "http", 1) + "/readyz"
                    await eventually(lambda http=http, ready=ready: _status(http, ready, 503))  # type: ignore[misc]
                    with pytest.raises(InvalidStatus) as refused:
                        await connect(f"{url}/mcp")
                    assert refused.value.response.status_code == 503
                if impatient:
                    process.send_signal(signal.SIGTERM)
                    assert (await call)["error"]["data"]["outcome"] == "unknown"
                else:
                    await browser.send({"id": browser.requests[0]["id"], "result": {"finished": True}})
                    assert (await call)["result"] == {"finished": True}
                assert await agent.closed() == (1012, "reconnect")
            await process.communicate()
            assert process.returncode == 0


async def _status(http: httpx2.AsyncClient, url: str, wanted: int) -> bool:
    return (await http.get(url)).status_code == wanted


async def test_sighup_reloads_keys_certificate_limits_and_revoked_tokens(
    tmp_path: Path, key: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cert, private = certificate(tmp_path)
    old_cert = cert.read_bytes()
    words = ("--key-file", str(key), "--tls-cert", str(cert), "--tls-key", str(private))
    first, second = issue_token(capsys, key), issue_token(capsys, key)
    async with relay_process(tmp_path, *words) as (url, process):
        port = int(url.rpartition(":")[2])

        async def served() -> bytes:
            return await asyncio.to_thread(lambda: ssl.get_server_certificate(("127.0.0.1", port)).encode())

        def anyone() -> ssl.SSLContext:
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            return context

        assert await served() == old_cert
        async with connect(f"{url}/mcp", ssl=anyone()) as one, connect(f"{url}/mcp", ssl=anyone()) as two:
            for ws, access in ((one, first), (two, second)):
                await ws.send(json.dumps(handshake(access)))
                assert json.loads(await ws.recv())["result"]["user_id"] == "ann"
            certificate(tmp_path)
            _write({tmp_path / "config.json": '{"limits": {"relay_user_clients": 2}}'})
            assert main(["relay", "token", "revoke", first, "--key-file", str(key)]) == 0
            process.send_signal(signal.SIGHUP)
            await eventually(lambda: _differs(served, old_cert))
            await _events_until(process, "reloaded", 1)
            with pytest.raises(ConnectionClosed) as closed:
                await one.recv()
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.reason == "the token was revoked"
            async with connect(f"{url}/mcp", ssl=anyone()) as third, connect(f"{url}/mcp", ssl=anyone()) as fourth:
                await third.send(json.dumps(handshake(second)))
                assert json.loads(await third.recv())["result"]["user_id"] == "ann"
                await fourth.send(json.dumps(handshake(second)))
                assert "too many connections" in json.loads(await fourth.recv())["error"]["message"]
            _write({private: "half a file", tmp_path / "config.json": "{", key: "short"})
            process.send_signal(signal.SIGHUP)
            events = await _events_until(process, "reloaded", 1)
            for broken in ("invalid certificate", "invalid limits", "invalid key file"):
                assert any(event.startswith(broken) for event in events)
            async with connect(f"{url}/mcp", ssl=anyone()) as last:  # everything stays as it was
                await last.send(json.dumps(handshake(second)))
                assert json.loads(await last.recv())["result"]["user_id"] == "ann"
        process.send_signal(signal.SIGINT)
        await process.communicate()
        assert process.returncode == 0


async def _events_until(process: asyncio.subprocess.Process, event: str, count: int) -> list[str]:
    """The events in the log up to this one, which has to occur so many times."""
    assert process.stderr is not None
    events: list[str] = []
    async with asyncio.timeout(30):
        while events.count(event) < count:
            events.append(json.loads(await process.stderr.readline())["event"])
    return events


def _write(texts: dict[Path, str]) -> None:
    for path, text in texts.items():
        path.write_text(text)


async def _differs(read: Callable[[], Awaitable[bytes]], before: bytes) -> bool:
    return await read() != before


def handshake(access: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": "mcp_handshake", "params": {"accessToken": access}}


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
    access = issue_token(capsys, key)
    async with relay_process(tmp_path, *words) as (url, _):
        assert url.startswith("wss://")
        trusting = ssl.create_default_context(cafile=str(cert))
        async with connect(f"{url}/mcp", ssl=trusting) as ws:
            shake = {"jsonrpc": "2.0", "id": 1, "method": "mcp_handshake", "params": {"accessToken": access}}
            await ws.send(json.dumps(shake))
            assert json.loads(await ws.recv())["result"]["user_id"] == "ann"


async def test_a_process_names_its_token_issuers_and_serves_valid_tokens(tmp_path: Path, key: Path) -> None:
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
        *("--auth-server", "https://login.example.com"),
        *("--auth-server", "https://second.example.com/realm/"),
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
            await stream.rest()  # it ends cleanly
        _, errors = await asyncio.wait_for(process.communicate(), 30)
        assert process.returncode == 0
        assert not [line for line in errors.splitlines() if json.loads(line)["level"] == "error"], errors


async def test_behind_a_proxy_only_the_admin_port_has_status(tmp_path: Path, key: Path) -> None:
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


def test_without_a_url_the_bus_is_that_of_a_single_node() -> None:
    assert make_bus(None, "n").node == "n"
