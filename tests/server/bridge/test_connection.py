"""The bridge socket: invalid lines, silent clients, slow readers and other users."""

from __future__ import annotations

import asyncio
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from tabhub.server.bridge import connection as bridge_connection
from tests.harness.bridge_client import connected, initialized, registered
from tests.harness.hub import RunningHub, running_hub
from tests.harness.probe import Probe
from tests.harness.waiting import until


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


@pytest.mark.req("B1", "B2", "B5", "B6")
@pytest.mark.parametrize(
    "line",
    [
        b"{broken",
        b"GET / HTTP/1.1",
        b"[" * 100_000,
        b'{"type":"PING","type":"PING"}',
        b'{"type":"PING","id":1.5}',
        b'{"type":"PING","id":NaN}',
        b'{"type":"REQUEST"}',
        b'{"id":"x"}',
        b"null",
        b"\xff\xfe",
        b"\xef\xbb\xbf{}",
        '{"type":"PING"}'.encode("utf-16"),
        b'{"type":"PING","id":"\\ud800"}',
        b'{"type":"PING","id":' + b"9" * 5000 + b"}",
        b'{"type":"PING",' + b",".join(b'"%d":0' % n for n in range(100_000)) + b"}",
    ],
    ids=lambda line: line[:20].decode("ascii", "replace"),
)
async def test_an_invalid_line_is_refused_and_the_connection_stays_usable(hub: RunningHub, line: bytes) -> None:
    async with registered(hub) as client:
        client.raw(b"\n \r\n" + line.replace(b"\n", b"") + b"\n")
        reply = await client.receive()
        assert (reply["type"], reply["id"]) == ("ERROR", "x" if line == b'{"id":"x"}' else None)
        assert reply["error"]["code"] in (-32700, -32600)
        client.send("PING")
        assert (await client.receive())["type"] == "PONG"


async def test_a_line_that_is_too_long_is_dropped_and_the_connection_stays_usable(tmp_path: Path) -> None:
    async with running_hub(tmp_path, limits={"bridge_line": 1000}) as hub, registered(hub) as client:
        head = b'{"type":"REQUEST","id":"%b:7",' % client.session.encode()
        for line in (head + b"x" * 2000, head + b"x" * 3_000_000, b"y" * 1001):
            client.raw(line + b"\n")
            reply = await client.receive()
            assert (reply["type"], reply["error"]["code"]) == ("ERROR", -32600)
            assert "1000 bytes" in reply["error"]["message"]
            assert reply["id"] == (f"{client.session}:7" if line.startswith(head) else None)
            assert (await client.request("ping"))["success"] is True


@pytest.mark.req("F18")
async def test_bytes_may_come_one_at_a_time(hub: RunningHub) -> None:
    async with connected(hub) as client:
        for byte in b'{"type":"PING","id":"slow"}\n':
            client.raw(bytes([byte]))
            await client.writer.drain()
            await asyncio.sleep(0)
        assert (await client.receive())["id"] == "slow"


async def test_a_call_is_in_the_audit_log_before_its_answer_is_written(hub: RunningHub) -> None:
    Probe(hub)
    audited: list[str] = []
    hub.hub.batch.before_write(lambda: audited.append(hub.home.audit.read_text()))
    async with initialized(hub) as client:
        await client.request("tools/call", call("probe_echo", value="x"))
        assert '"tool":"probe_echo"' in audited[-1]


async def test_silence_ends_a_connection_without_a_session_only(tmp_path: Path) -> None:
    async with running_hub(tmp_path, limits={"header_timeout": 2}) as hub, registered(hub) as quiet:
        async with connected(hub) as silent:
            assert await silent.closed() == b""
        async with connected(hub) as half:
            half.raw(b'{"type":"PI')
            assert await half.closed() == b""
        assert (await quiet.request("ping"))["success"] is True


@pytest.mark.req("F4")
async def test_a_client_that_stops_reading_is_disconnected_without_affecting_others(tmp_path: Path) -> None:
    async with running_hub(tmp_path, limits={"send_queue": 100_000}) as hub, initialized(hub) as other:
        probe = Probe(hub)
        async with connected(hub, limit=1024) as slow:
            await slow.register()
            await slow.initialize()
            session = hub.hub.sessions.require(slow.session, "bridge")
            slow.ask("tools/call", {**call("probe_flood"), "_meta": {"progressToken": 1}})
            await probe.begun()
            await until(lambda: session.busy == 0)
            assert (await other.call("probe_echo", {"value": "x"}))["structuredContent"] == {"value": "x"}
            await until(lambda: len(hub.hub.engine.calls) == 0)


# the socket itself


@pytest.mark.req("S004-architecture-08")
async def test_the_environment_moves_the_socket_and_only_the_same_user_may_connect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "elsewhere" / "d.sock"
    monkeypatch.setenv("TABHUB_SOCKET", str(path))
    async with running_hub(tmp_path) as hub:
        assert hub.hub.bridge.path == str(path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        async with registered(hub) as client:
            assert (await client.request("ping"))["success"] is True
        monkeypatch.setattr(bridge_connection, "peer_uid", lambda _sock: os.geteuid() + 1)
        async with connected(hub) as stranger:
            stranger.send("STATUS", id="1")
            reply = await stranger.receive()
            assert (reply["type"], reply["error"]["code"]) == ("ERROR", -32003)
            assert await stranger.closed() == b""


async def test_a_removed_socket_is_created_again(hub: RunningHub) -> None:
    async with initialized(hub) as before:
        os.unlink(hub.hub.bridge.path)  # noqa: PTH108
        await hub.hub.bridge.restore_socket()
        async with registered(hub) as after:
            assert (await after.request("ping"))["success"] is True
        assert (await before.request("ping"))["success"] is True


async def test_without_unix_sockets_a_token_opens_a_loopback_port(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TABHUB_SOCKET", "tcp")
    async with running_hub(tmp_path) as hub:
        record = hub.home.root / "run" / "bridge.json"
        assert stat.S_IMODE(record.stat().st_mode) == 0o600
        facts = json.loads(record.read_text())

        async def first(*lines: dict[str, Any]) -> list[dict[str, Any]]:
            reader, writer = await asyncio.open_connection("127.0.0.1", facts["port"])
            for line in lines:
                writer.write(json.dumps(line).encode() + b"\n")
            received: list[dict[str, Any]] = []
            async with asyncio.timeout(30):
                while not received or (len(received) < len(lines) and received[-1]["type"] != "ERROR"):
                    received.append(json.loads(await reader.readline()))
                if received[-1]["type"] == "ERROR":
                    assert await reader.read() == b""  # and no second attempt
            writer.transport.abort()
            return received

        token = facts["token"]
        for wrong in ({}, {"token": "x"}, {"token": token[:-1]}, {"token": token + "0"}):
            for kind in ("REGISTER", "STATUS"):
                (reply,) = await first({"type": kind, "id": "1", **wrong}, {"type": "PING"})
                assert reply["error"]["code"] == -32002
        (reply,) = await first({"type": "PING"})
        assert reply["error"]["code"] == -32002
        reply, pong = await first({"type": "REGISTER", "token": token, "agentToken": hub.token}, {"type": "PING"})
        assert (reply["type"], pong["type"]) == ("REGISTER_OK", "PONG")
        assert (await first({"type": "STATUS", "id": "1", "token": token}))[0]["type"] == "STATUS_OK"
        assert token not in hub.home.hub_log.read_text() if hub.home.hub_log.exists() else True
    assert not record.exists()
