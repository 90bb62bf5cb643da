"""The straight road: requests in one piece with a known head, over real sockets."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from tabhub.http.protocol import ArrivingHttp
from tabhub.store.audit import digest
from tabhub.store.secret import rotate
from tests.harness.agent import ACCEPT, message, stateless
from tests.harness.fake_extension import FakeExtension
from tests.harness.hub import Address, RunningHub, running_hub
from tests.harness.probe import Probe
from tests.harness.process import hub_process
from tests.harness.raw import Answer, Wire, exchange, request, wire
from tests.harness.waiting import until

Make = Callable[[Address, str, dict[str, Any]], bytes]


def mcp_stateless(hub: Address, tool: str, arguments: dict[str, Any], **meta: Any) -> bytes:
    body, headers = stateless("tools/call", {"name": tool, "arguments": arguments}, **meta)
    return _post(hub, "/mcp", body, headers)


def rest(hub: Address, tool: str, arguments: dict[str, Any]) -> bytes:
    return _post(hub, f"/tools/{tool}/call", {"arguments": arguments}, {"Content-Type": "application/json"})


def _post(hub: Address, path: str, body: Any, headers: dict[str, str]) -> bytes:
    data = json.dumps(body).encode()
    head = {"Host": f"127.0.0.1:{hub.port}", **hub.bearer, **headers, "Content-Length": str(len(data))}
    return request("POST", path, head.items(), data)


def value(answer: Answer) -> Any:
    assert answer.status == 200, answer
    body = json.loads(answer.body)
    return body.get("result", body)["structuredContent"]


async def ask(line: Wire, data: bytes) -> Answer:
    await line.send(data)
    return await line.answer()


class Road:
    """Notes the requests that go straight."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.straight = 0
        go = ArrivingHttp._go_straight

        def noted(protocol: ArrivingHttp, *what: Any) -> None:
            self.straight += 1
            go(protocol, *what)

        monkeypatch.setattr(ArrivingHttp, "_go_straight", noted)


@pytest.fixture
def road(monkeypatch: pytest.MonkeyPatch) -> Road:
    return Road(monkeypatch)


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[RunningHub]:
    async with running_hub(tmp_path) as running:
        yield running


async def _session(hub: Address, line: Wire) -> dict[str, str]:
    """The headers of an initialized session."""
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
    answer = await ask(line, _post(hub, "/mcp", message("initialize", hello), ACCEPT))
    return {**ACCEPT, "Mcp-Session-Id": answer.headers["mcp-session-id"], "MCP-Protocol-Version": "2025-11-25"}


@pytest.mark.parametrize("make", [mcp_stateless, rest])
async def test_a_head_that_was_let_in_goes_straight_on_every_connection(
    hub: RunningHub, road: Road, make: Make
) -> None:
    Probe(hub)
    for number in range(3):
        async with wire(hub.port) as line:
            for text in ("a", "b" * (number + 1) * 100):
                answer = await ask(line, make(hub, "probe_echo", {"value": text}))
                assert value(answer) == {"value": text}
                assert answer.headers["content-type"] == "application/json"
    assert road.straight == 5


async def test_calls_of_a_session_go_straight_and_carry_its_id(hub: RunningHub, road: Road) -> None:
    Probe(hub)
    async with wire(hub.port) as line:
        headers = await _session(hub, line)
        for text in ("a", "b"):
            call = message("tools/call", {"name": "probe_echo", "arguments": {"value": text}})
            answer = await ask(line, _post(hub, "/mcp", call, headers))
            assert value(answer) == {"value": text}
            assert answer.headers["mcp-session-id"] == headers["Mcp-Session-Id"]
        assert road.straight == 1
        batch = await ask(line, _post(hub, "/mcp", [message("ping")], headers))
        assert (batch.status, json.loads(batch.body)["error"]["code"]) == (400, -32600)
        told = await ask(line, _post(hub, "/mcp", {"jsonrpc": "2.0", "method": "notifications/initialized"}, headers))
        assert (told.status, told.body) == (202, b"")
        assert road.straight == 3


@pytest.mark.parametrize("make", [mcp_stateless, rest])
async def test_errors_read_the_same_on_both_roads(hub: RunningHub, road: Road, make: Make) -> None:
    Probe(hub)
    broken = make(hub, "probe_echo", {"value": "x"}).replace(b'"x"', b'"x')
    bad = [
        broken[:-1] + b"  ",
        make(hub, "probe_echo", {"value": 1}),
        make(hub, "probe_echo", {"value": "x", "y": [[]]}),
    ]
    seen = []
    for _ in range(2):
        async with wire(hub.port) as line:
            seen.append([await ask(line, data) for data in bad])
    assert road.straight == 5
    first, second = seen
    assert [a.status for a in first[:2]] == ([400, 200] if make is mcp_stateless else [400, 422])
    assert [(a.status, a.body) for a in first] == [(a.status, a.body) for a in second]


async def test_a_rotated_secret_closes_the_straight_road_at_once(hub: RunningHub, road: Road) -> None:
    Probe(hub)
    async with wire(hub.port) as line:
        for _ in range(2):
            assert (await ask(line, rest(hub, "probe_echo", {"value": "x"}))).status == 200
        rotate(hub.home)
        hub.hub.check_secret()
        refused = await ask(line, rest(hub, "probe_echo", {"value": "x"}))
        assert (refused.status, road.straight) == (401, 1)


async def test_a_body_over_the_limit_is_refused_though_its_head_is_known(tmp_path: Path, road: Road) -> None:
    async with running_hub(tmp_path, limits={"max_body": 1024}) as hub:
        Probe(hub)
        async with wire(hub.port) as line:
            for _ in range(2):
                assert (await ask(line, rest(hub, "probe_echo", {"value": "x"}))).status == 200
            large = await ask(line, rest(hub, "probe_echo", {"value": "x" * 1024}))
            assert (large.status, road.straight) == (413, 1)


async def test_a_known_head_in_many_pieces_or_with_others_behind_it_takes_the_ordinary_road(
    hub: RunningHub, road: Road
) -> None:
    Probe(hub)
    data = rest(hub, "probe_echo", {"value": "x"})
    async with wire(hub.port) as line:
        await ask(line, data)
        await line.trickle(data)
        assert value(await line.answer()) == {"value": "x"}
        await line.send(data * 3)
        assert [value(await line.answer()) for _ in range(3)] == [{"value": "x"}] * 3
        assert road.straight == 0
        assert value(await ask(line, data)) == {"value": "x"}
        assert road.straight == 1


async def test_a_known_head_goes_straight_when_its_body_comes_in_a_packet_of_its_own(
    hub: RunningHub, road: Road
) -> None:
    Probe(hub)
    data = rest(hub, "probe_echo", {"value": "x"})
    end = data.index(b"\r\n\r\n") + 4
    async with wire(hub.port) as line:
        await ask(line, data)
        for pieces, straight in ((2, 1), (3, 1)):
            await line.send(data[:end])
            await exchange(hub.port, data[:4] + b"\r\n\r\n")  # the hub has read the first piece by now
            cut = len(data) if pieces == 2 else end + 5
            await line.send(data[end:cut])
            await exchange(hub.port, data[:4] + b"\r\n\r\n")
            await line.send(data[cut:])
            assert value(await line.answer()) == {"value": "x"}
            assert road.straight == straight


async def test_a_known_head_whose_body_never_comes_is_a_clean_timeout(tmp_path: Path) -> None:
    async with running_hub(tmp_path, limits={"header_timeout": 0.2}) as hub:
        Probe(hub)
        data = rest(hub, "probe_echo", {"value": "x"})
        async with wire(hub.port) as line:
            await ask(line, data)
            await line.send(data[: data.index(b"\r\n\r\n") + 4])
            received = await line.closed()
            assert received.startswith(b"HTTP/1.1 408 ")


async def test_a_client_that_expects_a_sign_before_its_body_gets_it_each_time(hub: RunningHub, road: Road) -> None:
    Probe(hub)
    data = rest(hub, "probe_echo", {"value": "x"}).replace(b"Host:", b"Expect: 100-continue\r\nHost:")
    end = data.index(b"\r\n\r\n") + 4
    async with wire(hub.port) as line:
        for _ in range(2):
            await line.send(data[:end])
            assert (await line.head())[0] == 100
            assert value(await ask(line, data[end:])) == {"value": "x"}
    assert road.straight == 0


async def test_a_request_behind_one_that_went_straight_waits_for_its_turn(hub: RunningHub, road: Road) -> None:
    probe = Probe(hub)
    async with wire(hub.port) as line:
        probe.release.set()
        await ask(line, rest(hub, "probe_wait", {"n": 0}))
        await probe.begun()
        probe.release.clear()
        await line.send(rest(hub, "probe_wait", {"n": 1}))
        assert await probe.begun() == {"n": 1}
        assert road.straight == 1
        await line.send(rest(hub, "probe_echo", {"value": "x"}))
        probe.release.set()
        assert value(await line.answer()) == {"n": 1}
        assert value(await line.answer()) == {"value": "x"}


@pytest.mark.parametrize("make", [mcp_stateless, rest])
async def test_a_client_that_leaves_on_the_straight_road_cancels_its_call(
    hub: RunningHub, road: Road, make: Make
) -> None:
    probe = Probe(hub)
    probe.release.set()
    assert (await exchange(hub.port, make(hub, "probe_wait", {"n": 0}))).status == 200
    await probe.begun()
    probe.release.clear()
    async with wire(hub.port) as line:
        await line.send(make(hub, "probe_wait", {"n": 1}))
        await probe.begun()
    assert await probe.cancelled() == {"n": 1}
    await until(lambda: not len(hub.hub.engine.calls))
    assert road.straight == 1


async def test_progress_on_the_straight_road_is_a_stream(hub: RunningHub, road: Road) -> None:
    Probe(hub)
    async with wire(hub.port) as line:
        for _ in range(2):
            answer = await ask(line, mcp_stateless(hub, "probe_report", {}, progressToken="p"))
            assert answer.headers["content-type"] == "text/event-stream"
            assert answer.body.count(b"notifications/progress") == 3
            assert b'"resultType":"complete"' in answer.body
        assert value(await ask(line, mcp_stateless(hub, "probe_echo", {"value": "x"}))) == {"value": "x"}
    assert road.straight == 1


async def test_a_large_answer_comes_whole_on_the_straight_road(tmp_path: Path, road: Road) -> None:
    async with running_hub(tmp_path, limits={"result_tokens": 1_000_000}) as hub:
        Probe(hub)
        text = "x" * 200_000
        async with wire(hub.port) as line:
            for _ in range(2):
                assert value(await ask(line, rest(hub, "probe_echo", {"value": text}))) == {"value": text}


async def test_a_route_that_breaks_is_a_500_and_in_the_log(
    hub: RunningHub, road: Road, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    Probe(hub)
    data = rest(hub, "probe_echo", {"value": "x"})
    async with wire(hub.port) as line:
        await ask(line, data)

        def broken(*_: Any) -> None:
            raise RuntimeError("a fault of ours")

        monkeypatch.setattr(hub.hub.engine.sessions, "get", broken)
        with caplog.at_level(logging.ERROR, logger="uvicorn.error"):
            assert (await ask(line, data)).status == 500
            assert await line.closed() == b""
    assert road.straight == 1
    assert "a fault of ours" in caplog.text


async def test_an_idle_connection_is_closed_in_time_and_a_busy_one_is_not(
    hub: RunningHub, road: Road, monkeypatch: pytest.MonkeyPatch
) -> None:
    probe = Probe(hub)
    probe.release.set()
    protocols: list[ArrivingHttp] = []
    made = ArrivingHttp.connection_made

    def noted(protocol: ArrivingHttp, transport: asyncio.Transport) -> None:
        protocols.append(protocol)
        made(protocol, transport)

    monkeypatch.setattr(ArrivingHttp, "connection_made", noted)
    async with wire(hub.port) as line:
        await ask(line, rest(hub, "probe_wait", {}))
        await probe.begun()
        probe.release.clear()
        await line.send(rest(hub, "probe_wait", {}))
        await probe.begun()
        [protocol] = protocols
        timer = protocol.timeout_keep_alive_task
        assert timer is not None
        timer.cancel()
        protocol.timeout_keep_alive = 0
        protocol.timeout_keep_alive_handler()  # the timer fires during the call
        probe.release.set()
        assert (await line.answer()).status == 200
        assert await line.closed() == b""
    assert road.straight == 1


async def test_after_a_kill_every_call_answered_on_the_straight_road_is_in_the_audit_log(tmp_path: Path) -> None:
    home = tmp_path / "home"
    answered: list[dict[str, Any]] = []

    async def work(hub: Address, name: str, done: asyncio.Event) -> None:
        async with wire(hub.port) as line:
            for number in range(10_000):
                arguments = {"tabId": 7, "code": f"return '{name}-{number}'"}
                try:
                    answer = await ask(line, rest(hub, "browser_execute_script", arguments))
                except (OSError, asyncio.IncompleteReadError):
                    return  # the hub was killed
                assert answer.status == 200
                answered.append(arguments)
                if len(answered) >= 500:
                    done.set()

    async with hub_process(home) as hub, FakeExtension(hub):
        done = asyncio.Event()
        tasks = [asyncio.create_task(work(hub, str(n), done)) for n in range(20)]
        async with asyncio.timeout(30):
            await done.wait()
        os.kill(hub.process.pid, signal.SIGKILL)
        await asyncio.gather(*tasks)
    lines = (home / "audit.log").read_bytes().splitlines()
    audited = {json.loads(line)["argsDigest"] for line in lines if line.endswith(b"}")}
    assert [arguments for arguments in answered if digest(arguments) not in audited] == []
