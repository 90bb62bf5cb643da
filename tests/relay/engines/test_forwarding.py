"""Sessions over HTTP reached through any node: requests are passed on to the node that has the session."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any, NamedTuple

import pytest

from tabhub.relay.engines.session_ids import SessionIds
from tests.harness.waiting import until
from tests.relay.engines.httpworld import HttpRelay, browser, http_relay
from tests.relay.memory_bus import MemoryBus, MemoryNetwork
from tests.relay.world import token


class Two(NamedTuple):
    """Two nodes with MCP over HTTP."""

    here: HttpRelay
    there: HttpRelay
    bus: MemoryBus
    far_bus: MemoryBus


_JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
_LIST = {"jsonrpc": "2.0", "id": 5, "method": "tools/list"}


@pytest.fixture
async def two() -> AsyncIterator[Two]:
    network = MemoryNetwork()
    bus, far_bus = MemoryBus("here", network), MemoryBus("there", network)
    async with AsyncExitStack() as stack:
        here = await stack.enter_async_context(http_relay(bus=bus, stream_keepalive=0.2))
        there = await stack.enter_async_context(http_relay(bus=far_bus, stream_keepalive=0.2))
        yield Two(here, there, bus, far_bus)


async def initialize(relay: HttpRelay, access: str) -> str:
    async with relay.client(access) as http:
        params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
        answer = await http.post("/mcp", json=body, headers=_JSON)
        assert answer.status_code == 200
        return str(answer.headers["Mcp-Session-Id"])


async def ask(relay: HttpRelay, session: str, access: str, message: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    async with relay.client(access) as http:
        answer = await http.post("/mcp", json=message, headers={**_JSON, "Mcp-Session-Id": session})
        return answer.status_code, answer.json() if answer.content else {}


async def test_a_session_continues_through_any_node_also_with_a_renewed_token(two: Two) -> None:
    first = token("ann")
    params = {"name": "browser_list_tabs", "arguments": {}}
    call = {"jsonrpc": "2.0", "id": "x", "method": "tools/call", "params": params}
    async with browser(two.there.ws, token("ann")):
        session = await initialize(two.here, first)
        for relay in (two.here, two.there):
            for access in (first, token("ann", ttl=900)):
                status, answer = await ask(relay, session, access, call)
                assert (status, answer["id"]) == (200, "x")
                assert not answer["result"].get("isError"), answer
    assert [len(each.engines()) for each in two[:2]] == [1, 0]  # all of them were served by the first node
    status, answer = await ask(two.there, session, token("bob"), _LIST)
    assert (status, answer["error"]["code"]) == await _unknown(two, token("bob"))


async def _unknown(two: Two, access: str) -> tuple[int, int]:
    """How a session that never existed is answered."""
    status, answer = await ask(two.there, "0" * 32, access, _LIST)
    return status, answer["error"]["code"]


async def test_a_stream_is_passed_on_and_ends_with_its_client(two: Two) -> None:
    access = token("ann")
    session = await initialize(two.here, access)
    (engine,) = two.here.engines()
    async with two.there.client(access) as http:
        headers = {**_JSON, "Mcp-Session-Id": session}
        async with http.stream("GET", "/mcp", headers=headers) as stream:
            assert stream.status_code == 200
            assert stream.headers["content-type"].startswith("text/event-stream")
            await until(lambda: engine.open == 1)
            lines = stream.aiter_lines()
            async with asyncio.timeout(30):
                seen = [await anext(lines) for _ in range(4)]  # keep-alive comments
            assert any(line.startswith(":") for line in seen)
        await until(lambda: engine.open == 0)
        ended = await http.request("DELETE", "/mcp", headers=headers)
        assert ended.status_code in (200, 204)
        assert (await ask(two.there, session, access, _LIST))[0] == 404


async def test_a_session_of_a_lost_node_is_not_found_and_without_the_bus_it_is_unavailable(two: Two) -> None:
    access = token("ann")
    session = await initialize(two.here, access)
    two.far_bus.cut_off(True)
    assert (await ask(two.there, session, access, _LIST))[0] == 503
    two.far_bus.cut_off(False)
    assert (await ask(two.there, session, access, _LIST))[0] == 200
    await two.bus.close()
    assert (await ask(two.there, session, access, _LIST))[0] == 404


async def test_a_request_that_runs_when_its_node_is_lost_ends_with_an_unknown_outcome(two: Two) -> None:
    access = token("ann")
    params = {"name": "browser_go_back", "arguments": {"tabId": 7}}
    call = {"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": params}
    async with browser(two.here.ws, token("ann")) as far:
        far.silent.add("goBack")
        session = await initialize(two.here, access)
        (engine,) = two.here.engines()
        running = asyncio.create_task(ask(two.there, session, access, call))
        await until(lambda: bool(far.asked("goBack")))
        two.far_bus.cut_off(True)
        status, answer = await running
        assert (status, answer["error"]["data"]["outcome"]) == (502, "unknown")
        await until(lambda: engine.open == 0)


async def test_the_end_of_a_request_does_not_end_one_of_the_same_number_in_the_other_direction(two: Two) -> None:
    first, second = token("ann"), token("bob")
    there, here = await initialize(two.there, first), await initialize(two.here, second)
    async with (
        two.here.client(first) as one,
        two.there.client(second) as other,
        one.stream("GET", "/mcp", headers={**_JSON, "Mcp-Session-Id": there}) as stays,
    ):
        lines = stays.aiter_lines()
        async with other.stream("GET", "/mcp", headers={**_JSON, "Mcp-Session-Id": here}) as ends:
            assert (stays.status_code, ends.status_code) == (200, 200)
        (bobs,) = two.here.engines("bob")
        await until(lambda: bobs.open == 0)
        async with asyncio.timeout(30):
            assert [await anext(lines) for _ in range(6)]
        (anns,) = two.there.engines("ann")
        assert anns.open == 1


def test_session_ids_name_their_node_and_cannot_be_forged() -> None:
    ids, same, other = SessionIds("node-1", b"s"), SessionIds("node-2", b"s"), SessionIds("node-1", b"t")
    made = ids.new()
    assert same.node_of(made) == "node-1"
    assert ids.new() != made
    assert "node" not in made
    assert other.node_of(made) is None
    for wrong in ("", "x", made[:-4], made + "AAAA", "A" + made[1:], "é" * 20, "A" * 5000, "0" * 32):
        assert same.node_of(wrong) is None
