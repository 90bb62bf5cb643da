"""HTTP/1.1 over real sockets: order, bounds, streams, disconnects and keep-alive."""

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

from tabhub.http import protocol
from tabhub.http.websocket import WebSocket
from tabhub.http.write_batch import WriteBatch
from tabhub.limits import DEFAULTS
from tabhub.store.audit import digest
from tabhub.store.tokens import revoke
from tests.harness.agent import ACCEPT, message, stateless
from tests.harness.fake_extension import FakeExtension
from tests.harness.hub import AGENT, Address, RunningHub, running_hub
from tests.harness.probe import Probe
from tests.harness.process import hub_process
from tests.harness.raw import Answer, Wire, exchange, request, wire
from tests.harness.waiting import until
from tests.security.test_http import Admitting, Ends

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
async def test_calls_on_one_connection_are_answered_one_after_the_other(hub: RunningHub, make: Make) -> None:
    Probe(hub)
    for number in range(3):
        async with wire(hub.port) as line:
            for text in ("a", "b" * (number + 1) * 100):
                answer = await ask(line, make(hub, "probe_echo", {"value": text}))
                assert value(answer) == {"value": text}
                assert answer.headers["content-type"] == "application/json"


async def test_responses_of_a_session_carry_its_id(hub: RunningHub) -> None:
    Probe(hub)
    async with wire(hub.port) as line:
        headers = await _session(hub, line)
        for text in ("a", "b"):
            call = message("tools/call", {"name": "probe_echo", "arguments": {"value": text}})
            answer = await ask(line, _post(hub, "/mcp", call, headers))
            assert value(answer) == {"value": text}
            assert answer.headers["mcp-session-id"] == headers["Mcp-Session-Id"]
        batch = await ask(line, _post(hub, "/mcp", [message("ping")], headers))
        assert (batch.status, json.loads(batch.body)["error"]["code"]) == (400, -32600)
        answer = await ask(line, _post(hub, "/mcp", {"jsonrpc": "2.0", "method": "notifications/initialized"}, headers))
        assert (answer.status, answer.body) == (202, b"")


@pytest.mark.parametrize("make", [mcp_stateless, rest])
async def test_an_error_leaves_the_connection_usable(hub: RunningHub, make: Make) -> None:
    Probe(hub)
    broken = make(hub, "probe_echo", {"value": "x"}).replace(b'"x"', b'"x')
    async with wire(hub.port) as line:
        assert (await ask(line, broken[:-1] + b"  ")).status == 400
        assert (await ask(line, make(hub, "probe_echo", {"value": 1}))).status == (
            200 if make is mcp_stateless else 422
        )
        assert value(await ask(line, make(hub, "probe_echo", {"value": "x"}))) == {"value": "x"}


async def test_a_revoked_token_counts_on_open_connections_at_once(hub: RunningHub) -> None:
    Probe(hub)
    async with wire(hub.port) as line:
        assert (await ask(line, rest(hub, "probe_echo", {"value": "x"}))).status == 200
        revoke(hub.home, AGENT)
        assert (await ask(line, rest(hub, "probe_echo", {"value": "x"}))).status == 401


async def test_a_body_over_the_limit_is_refused(tmp_path: Path) -> None:
    async with running_hub(tmp_path, limits={"max_body": 1024}) as hub:
        Probe(hub)
        async with wire(hub.port) as line:
            assert (await ask(line, rest(hub, "probe_echo", {"value": "x"}))).status == 200
            assert (await ask(line, rest(hub, "probe_echo", {"value": "x" * 1024}))).status == 413


async def test_a_body_without_a_length_is_refused_when_it_exceeds_the_limit(tmp_path: Path) -> None:
    async with running_hub(tmp_path, limits={"max_body": 1024}) as hub:
        head = {"Host": f"127.0.0.1:{hub.port}", **hub.bearer, "Transfer-Encoding": "chunked"}
        chunk = b"200\r\n" + b"x" * 0x200 + b"\r\n"
        async with wire(hub.port) as line:
            await line.send(request("POST", "/tools/probe_echo/call", head.items(), chunk * 5))
            assert (await line.answer()).status == 413


async def test_a_body_that_was_too_large_does_not_count_against_the_next_request(tmp_path: Path) -> None:
    async with running_hub(tmp_path, limits={"max_body": 1024}) as hub:
        Probe(hub)
        head = {"Host": f"127.0.0.1:{hub.port}", **hub.bearer, "Transfer-Encoding": "chunked"}
        large = b"800\r\n" + b"x" * 0x800 + b"\r\n0\r\n\r\n"
        async with wire(hub.port) as line:
            await line.send(request("POST", "/tools/probe_echo/call", head.items(), large))
            assert (await line.answer()).status == 413
            assert (await ask(line, rest(hub, "probe_echo", {"value": "x"}))).status == 200


async def test_headers_that_arrive_at_once_and_are_too_large_are_refused(tmp_path: Path) -> None:
    async with running_hub(tmp_path, limits={"max_head": 2048}) as hub:
        head = {"Host": f"127.0.0.1:{hub.port}", **hub.bearer}
        answer = await exchange(hub.port, request("GET", "/health", [*head.items(), ("X-Filler", "x" * 4096)]))
        assert answer.status == 431
        large_body = {**head, "Content-Length": "4096"}
        async with wire(hub.port) as line:
            await line.send(request("POST", "/tools/probe_echo/call", large_body.items(), b"x" * 4096))
            assert (await line.answer()).status == 400


async def test_a_refused_request_is_answered_before_its_body_has_arrived(hub: RunningHub) -> None:
    head = {"Host": f"127.0.0.1:{hub.port}", "Content-Length": "1000000"}
    async with wire(hub.port) as line:
        await line.send(request("POST", "/mcp", head.items(), b"{"))
        answer = await line.answer()
        assert (answer.status, answer.headers["connection"]) == (401, "close")


async def test_requests_in_many_pieces_or_all_at_once_are_answered_in_order(hub: RunningHub) -> None:
    Probe(hub)
    data = rest(hub, "probe_echo", {"value": "x"})
    async with wire(hub.port) as line:
        await line.trickle(data)
        assert value(await line.answer()) == {"value": "x"}
        await line.send(data * 3)
        assert [value(await line.answer()) for _ in range(3)] == [{"value": "x"}] * 3
        assert value(await ask(line, data)) == {"value": "x"}


async def test_a_body_that_never_arrives_is_a_timeout(tmp_path: Path) -> None:
    async with running_hub(tmp_path, limits={"header_timeout": 2}) as hub:
        Probe(hub)
        data = rest(hub, "probe_echo", {"value": "x"})
        async with wire(hub.port) as line:
            await ask(line, data)
            await line.send(data[: data.index(b"\r\n\r\n") + 4])
            assert (await line.closed()).startswith(b"HTTP/1.1 408 ")


async def test_a_client_that_expects_100_continue_gets_it_each_time(hub: RunningHub) -> None:
    Probe(hub)
    data = rest(hub, "probe_echo", {"value": "x"}).replace(b"Host:", b"Expect: 100-continue\r\nHost:")
    end = data.index(b"\r\n\r\n") + 4
    async with wire(hub.port) as line:
        for _ in range(2):
            await line.send(data[:end])
            assert (await line.head())[0] == 100
            assert value(await ask(line, data[end:])) == {"value": "x"}


async def test_a_request_behind_a_slow_one_waits_for_its_turn(hub: RunningHub) -> None:
    probe = Probe(hub)
    async with wire(hub.port) as line:
        await line.send(rest(hub, "probe_wait", {"n": 1}))
        assert await probe.begun() == {"n": 1}
        await line.send(rest(hub, "probe_echo", {"value": "x"}))
        probe.release.set()
        assert value(await line.answer()) == {"n": 1}
        assert value(await line.answer()) == {"value": "x"}


async def test_a_request_that_arrived_in_pieces_waits_longer_than_the_header_timeout(tmp_path: Path) -> None:
    async with running_hub(tmp_path, limits={"header_timeout": 2}) as hub:
        probe = Probe(hub)
        data = rest(hub, "probe_echo", {"value": "x"})
        async with wire(hub.port) as line, wire(hub.port) as other:
            await line.send(rest(hub, "probe_wait", {"n": 1}))
            await probe.begun()
            await line.send(data[:-5])
            assert (await ask(other, data)).status == 200  # by then the first piece has arrived
            await line.send(data[-5:])
            await other.send(data[:-5])
            assert (await other.closed()).startswith(b"HTTP/1.1 408 ")
            probe.release.set()
            assert value(await line.answer()) == {"n": 1}
            assert value(await line.answer()) == {"value": "x"}


@pytest.mark.parametrize("make", [mcp_stateless, rest])
async def test_a_client_that_disconnects_cancels_its_call(hub: RunningHub, make: Make) -> None:
    probe = Probe(hub)
    async with wire(hub.port) as line:
        await line.send(make(hub, "probe_wait", {"n": 1}))
        await probe.begun()
    assert await probe.cancelled() == {"n": 1}
    await until(lambda: not len(hub.hub.engine.calls))


async def test_progress_is_streamed_and_the_connection_stays_usable(hub: RunningHub) -> None:
    Probe(hub)
    async with wire(hub.port) as line:
        for _ in range(2):
            answer = await ask(line, mcp_stateless(hub, "probe_report", {}, progressToken="p"))
            assert answer.headers["content-type"] == "text/event-stream"
            assert answer.body.count(b"notifications/progress") == 3
            assert b'"resultType":"complete"' in answer.body
        assert value(await ask(line, mcp_stateless(hub, "probe_echo", {"value": "x"}))) == {"value": "x"}


async def test_http_1_0_gets_a_stream_up_to_the_end_of_the_connection(hub: RunningHub) -> None:
    Probe(hub)
    data = mcp_stateless(hub, "probe_report", {}, progressToken="p").replace(b"HTTP/1.1", b"HTTP/1.0")
    async with wire(hub.port) as line:
        await line.send(data)
        received = await line.closed()
    assert b"transfer-encoding" not in received
    assert received.count(b"notifications/progress") == 3


@pytest.mark.parametrize("becomes", ["closed", "a WebSocket"])
async def test_nothing_waits_for_requests_on_a_connection_that_no_longer_brings_any(
    hub: RunningHub, becomes: str
) -> None:
    def answering() -> int:
        return sum("HttpProtocol._serve" in repr(task) for task in asyncio.all_tasks())

    before = answering()
    async with wire(hub.port) as line:
        assert (await ask(line, rest(hub, "browser_list_tabs", {}))).headers["content-type"] == "application/json"
        assert answering() == before + 1
        if becomes == "a WebSocket":
            fields = {
                "Host": f"127.0.0.1:{hub.port}",
                "Connection": "Upgrade",
                "Upgrade": "websocket",
                "Sec-WebSocket-Version": "13",
                "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
                "Sec-WebSocket-Protocol": f"tabhub, {hub.extension_key}, after-a-request",
            }
            await line.send(request("GET", "/ws", fields.items()))
            assert (await line.head())[0] == 101
            await until(lambda: answering() == before)
    await until(lambda: answering() == before)


async def test_a_connection_that_is_cancelled_while_it_waits_for_a_request_ends_quietly() -> None:
    transport, connections = Ends(), set[protocol.HttpProtocol | WebSocket]()
    connection = protocol.HttpProtocol(Admitting(), DEFAULTS, WriteBatch(), connections)
    connection.connection_made(transport)
    connection.data_received(request("GET", "/", [("Host", "a")]))
    for _ in range(3):
        await asyncio.sleep(0)
    task = connection.cancel()
    assert task is not None
    await asyncio.gather(task, return_exceptions=True)
    connection.connection_lost(None)
    assert task.cancelled()
    assert connections == set()


async def test_head_is_answered_without_a_body(hub: RunningHub) -> None:
    head = {"Host": f"127.0.0.1:{hub.port}", **hub.bearer}
    async with wire(hub.port) as line:
        await line.send(request("HEAD", "/health", head.items()))
        status, headers = await line.head()
        assert (status, headers["content-type"]) == (405, "application/json")
        assert (await ask(line, request("GET", "/health", head.items()))).status == 200


async def test_a_large_answer_arrives_whole(tmp_path: Path) -> None:
    async with running_hub(tmp_path, limits={"result_tokens": 1_000_000}) as hub:
        Probe(hub)
        text = "x" * 200_000
        async with wire(hub.port) as line:
            for _ in range(2):
                assert value(await ask(line, rest(hub, "probe_echo", {"value": text}))) == {"value": text}


async def test_a_route_that_fails_is_a_500_and_in_the_log(
    hub: RunningHub, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    Probe(hub)
    data = rest(hub, "probe_echo", {"value": "x"})

    def broken(*_: Any) -> None:
        raise RuntimeError("a fault of ours")

    async with wire(hub.port) as line:
        with monkeypatch.context() as patched, caplog.at_level(logging.ERROR, logger="tabhub.http"):
            patched.setattr(hub.hub.engine.sessions, "get", broken)
            assert (await ask(line, data)).status == 500
        assert (await ask(line, data)).status == 200
    assert "a fault of ours" in caplog.text


async def test_an_idle_connection_is_closed_in_time_and_a_busy_one_is_not(
    hub: RunningHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "_KEEP_ALIVE", 0.05)
    probe = Probe(hub)
    async with wire(hub.port) as line:
        await line.send(rest(hub, "probe_wait", {}))
        await probe.begun()
        async with wire(hub.port) as idle:
            assert (await ask(idle, rest(hub, "probe_echo", {"value": "x"}))).status == 200
            assert await idle.closed() == b""  # by then the busy one would have been closed too
        probe.release.set()
        assert (await line.answer()).status == 200
        assert await line.closed() == b""


async def test_after_a_kill_every_answered_call_is_in_the_audit_log(tmp_path: Path) -> None:
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
