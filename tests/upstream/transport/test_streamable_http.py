"""Servers over HTTP that hang, exit, or send invalid, endless or oversized answers; each is a process (F14)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.harness.agent import Agent
from tests.harness.hub import RunningHub, running_hub
from tests.harness.ports import free_port
from tests.harness.waiting import until
from tests.upstream.servers import python_http, ready, state, text

SHORT_BACKOFF = {
    "upstream_backoff": 0.05,
    "upstream_backoff_max": 0.2,
    "upstream_connect": 30,
    "upstream_answer": 1_000_000,
}
FAULTS = {
    "garbage": "not a JSON-RPC message",
    "no_http": "not valid HTTP",
    "half": "in the middle of the response",
    "silent": "without a response",
    "huge": "larger than 1000000 bytes",
    "huge_event": "1000000",
    "fails": "status 500",
    "page": "it answered with text/html",
    "other_id": "a message for another request",
    "lost_stream": "in the middle of the response",
    "junk_event": "not a JSON-RPC message",
    "accepted": "202 Accepted",
    "long_head": "head is larger than 65536 bytes",
    "compressed": "compressed, which was not requested",
}
UNKNOWN = ("half", "silent", "lost_stream", "no_http", "long_head")
WITHOUT_END = ("endless", "hangs", "drips")


async def added(hub: RunningHub, **servers: str) -> None:
    facts = await hub.hub.upstream.add({name: {"url": url} for name, url in servers.items()})
    assert {each["state"] for each in facts} == {"ready"}, facts


async def call(agent: Agent, name: str, tool: str) -> dict[str, Any]:
    result: dict[str, Any]
    if tool != "endless":
        result = (await agent.call(f"mcp__{name}__{tool}"))["result"]
        return result
    async with agent.streamed("tools/call", {"name": f"mcp__{name}__{tool}", "arguments": {}}) as events:
        received = [each.message for each in await events.rest() if each.message]
    assert len(received) < 100, "endless messages are passed on up to a bound"
    result = received[-1]["result"]
    return result


@pytest.mark.req("F14")
async def test_a_fault_ends_only_its_own_call(tmp_path: Path) -> None:
    bad, good = free_port(), free_port()
    async with (
        python_http("broken_http", bad) as bad_url,
        python_http("broken_http", good) as good_url,
        running_hub(tmp_path, limits=SHORT_BACKOFF) as hub,
        Agent(hub) as agent,
    ):
        await added(hub, bad=bad_url, good=good_url)
        running = {tool: asyncio.create_task(call(agent, "bad", tool)) for tool in (*FAULTS, *WITHOUT_END)}
        for number in range(1, 21):
            assert text(await call(agent, "good", "fine")) == f"fine {number}"
        for tool, reason in FAULTS.items():
            answer = await running[tool]
            assert answer["isError"] is True, (tool, answer)
            assert reason in text(answer), (tool, text(answer))
            if tool in UNKNOWN:
                assert "outcome: unknown" in text(answer), (tool, text(answer))
        for tool in WITHOUT_END:
            assert not running[tool].done(), tool
            running[tool].cancel()
        # Nothing was sent twice, and the server can still be called.
        await ready(hub, "bad")
        assert text(await call(agent, "bad", "fine")) == "fine 1"
        assert text(await call(agent, "bad", "streams")) == "streams 1"
        assert text(await call(agent, "bad", "trickles")) == "trickles 1"


@pytest.mark.req("F14")
async def test_an_endless_answer_is_a_timeout_with_unknown_outcome(tmp_path: Path) -> None:
    async with (
        python_http("broken_http", free_port()) as url,
        running_hub(tmp_path, limits=SHORT_BACKOFF | {"call_timeout": 1.0}) as hub,
        Agent(hub) as agent,
    ):
        await added(hub, bad=url)
        for answer in await asyncio.gather(*(call(agent, "bad", tool) for tool in WITHOUT_END)):
            assert answer["isError"] is True
            assert "gave no answer within 1.0 s" in text(answer)
            assert "outcome: unknown" in text(answer)
        # A server cannot continue a stream after its call has ended; one connection sent each cancellation.
        await until(lambda: _open_to(url) <= len(WITHOUT_END))


@pytest.mark.req("F14")
async def test_a_call_does_not_wait_for_another_call_to_the_same_server(tmp_path: Path) -> None:
    async with (
        python_http("broken_http", free_port()) as url,
        running_hub(tmp_path) as hub,
        Agent(hub) as agent,
    ):
        await added(hub, bad=url)
        hanging = asyncio.create_task(call(agent, "bad", "hangs"))
        connection = hub.hub.upstream.pool.get("bad")
        assert connection is not None
        await until(lambda: len(connection.calls) == 1)
        assert text(await call(agent, "bad", "fine")) == "fine 1"
        assert not hanging.done()
        hanging.cancel()


async def test_a_broken_event_stream_is_resumed(tmp_path: Path) -> None:
    async with (
        python_http("broken_http", free_port()) as url,
        running_hub(tmp_path) as hub,
        Agent(hub) as agent,
    ):
        await added(hub, bad=url)
        assert text(await call(agent, "bad", "later")) == "came back"


@pytest.mark.req("F14")
async def test_a_server_that_exits_during_an_answer_is_connected_again(tmp_path: Path) -> None:
    port = free_port()
    async with running_hub(tmp_path, limits=SHORT_BACKOFF) as hub, Agent(hub) as agent:
        async with python_http("broken_http", port) as url:
            await added(hub, bad=url)
            answer = await call(agent, "bad", "dies")
            assert "outcome: unknown" in text(answer)
            await until(lambda: state(hub, "bad") == "waiting")
            offline = await call(agent, "bad", "fine")
            assert "outcome: not_sent" in text(offline)
        async with python_http("broken_http", port):
            await ready(hub, "bad")
            assert text(await call(agent, "bad", "fine")) == "fine 1"


async def test_connections_are_reused_and_closed_when_the_server_is_removed(tmp_path: Path) -> None:
    async with (
        python_http("broken_http", free_port()) as url,
        running_hub(tmp_path) as hub,
        Agent(hub) as agent,
    ):
        await added(hub, bad=url)
        for number in range(1, 31):
            assert text(await call(agent, "bad", "fine")) == f"fine {number}"
            assert text(await call(agent, "bad", "streams")) == f"streams {number}"
        assert _open_to(url) <= 3
        await hub.hub.upstream.remove("bad")
        await until(lambda: _open_to(url) == 0)


def _open_to(url: str) -> int:
    """How many connections from this machine to the port are established."""
    port = f":{int(url.split(':')[2].split('/')[0]):04X}"
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    return sum(line.split()[2].endswith(port) and line.split()[3] == "01" for line in lines)
