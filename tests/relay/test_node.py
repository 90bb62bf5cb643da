"""Several nodes on one bus: an agent on any node reaches its user's browser on any other, and a lost node is
detected."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any, NamedTuple

import pytest

from tabhub.relay.bus.interface import Presence
from tabhub.relay.bus.nats import NatsBus
from tabhub.wire import nodes
from tests.harness.waiting import becomes, until
from tests.relay.independent import IndependentAgent, IndependentExtension
from tests.relay.memory_bus import MemoryBus, MemoryNetwork
from tests.relay.natsd import nats_server
from tests.relay.playbook import Play, codes
from tests.relay.world import RunningRelay, running_relay, token


class Two(NamedTuple):
    """Two nodes and their buses."""

    here: RunningRelay
    there: RunningRelay
    bus: MemoryBus
    far_bus: MemoryBus


@pytest.fixture
async def two() -> AsyncIterator[Two]:
    network = MemoryNetwork()
    bus, far_bus = MemoryBus("here", network), MemoryBus("there", network)
    async with AsyncExitStack() as stack:
        here = await stack.enter_async_context(running_relay(bus=bus, relay_user_rate=60))
        there = await stack.enter_async_context(running_relay(bus=far_bus, relay_user_rate=60))
        yield Two(here, there, bus, far_bus)


async def test_an_agent_on_one_node_uses_a_browser_on_another(two: Two) -> None:
    async with (
        IndependentExtension(two.there.url, token("ann")) as browser,
        IndependentAgent(two.here.url, token("ann")) as agent,
        IndependentAgent(two.there.url, token("ann")) as near,
    ):
        await agent.handshake()
        assert [b["id"] for b in await agent.browsers()] == [browser.extension_id]
        joined = await agent.join(browser.extension_id)
        assert joined["extension_name"] == "Chrome 141"
        assert (await browser.notified("status"))["peer_count"] == 1
        await near.ready()
        assert await agent.result("createTab", {"n": 1}) == {"method": "createTab", "params": {"n": 1}}
        assert (await agent.ask("createTab", id="7"))["id"] == "7"
        await browser.notify("tab.stateChanged", {"tabId": 3})
        assert await agent.notified("tab.stateChanged") == {"tabId": 3}
        assert await near.notified("tab.stateChanged") == {"tabId": 3}
        assert await agent.result("disconnect") == {"disconnected": True}
        await until(lambda: len(two.there.node.state.tables.connections) == 1)
        await agent.join(browser.extension_id)


async def test_a_disconnected_browser_is_reported_across_nodes(two: Two) -> None:
    async with IndependentAgent(two.here.url, token("ann")) as agent:
        async with IndependentExtension(two.there.url, token("ann")) as browser:
            browser.handle = lambda method, params: None
            await agent.ready()
            call = await agent.begin("click")
            await until(lambda: bool(browser.requests))
        assert (await call)["error"]["data"]["outcome"] == "unknown"
        assert (await agent.notified("disconnected"))["connection_id"] == agent.connection_id
        assert two.here.node.state.tables.by_node == {}


async def test_a_disconnected_agent_is_reported_across_nodes(two: Two) -> None:
    async with IndependentExtension(two.there.url, token("ann")) as browser:
        browser.handle = lambda method, params: None
        async with IndependentAgent(two.here.url, token("ann")) as agent:
            await agent.ready()
            await agent.begin("click")
            await until(lambda: bool(browser.requests))
        assert (await browser.notified("cancel"))["id"] == browser.requests[0]["id"]
        assert (await browser.notified("status"))["peer_count"] == 0


async def test_users_are_isolated_across_nodes(two: Two) -> None:
    async with (
        IndependentExtension(two.there.url, token("ann")) as browser,
        IndependentAgent(two.here.url, token("bob")) as bob,
    ):
        await bob.handshake()
        assert await bob.browsers() == []
        foreign = await bob.error("connect", {"extension_id": browser.extension_id})
        assert foreign == await bob.error("connect", {"extension_id": "ext-nothing"})
        two.bus.send("there", nodes.encode(nodes.Open("conn-x", "bob", browser.extension_id)))
        two.bus.send("there", nodes.encode(nodes.ToBrowser("conn-x", b"{}")))
        two.bus.send("there", b"nonsense")
        await until(lambda: two.there.node.state.tables.counts.node_messages == 3)
        assert browser.requests == []
        assert browser.notifications.empty()


async def test_without_the_bus_local_pairs_continue_others_fail_and_all_recover(two: Two) -> None:
    async with (
        IndependentExtension(two.here.url, token("ann"), "Near") as near,
        IndependentExtension(two.there.url, token("ann"), "Far") as far,
        IndependentAgent(two.here.url, token("ann")) as local,
        IndependentAgent(two.here.url, token("ann")) as remote,
    ):
        far.handle = lambda method, params: None
        await local.handshake()
        await local.join(near.extension_id)
        await remote.handshake()
        await remote.join(far.extension_id)
        call = await remote.begin("click")
        await until(lambda: bool(far.requests))
        two.bus.cut_off(True)
        assert (await call)["error"]["data"]["outcome"] == "unknown"
        assert "bus" in (await remote.notified("disconnected"))["reason"]
        assert await local.result("getTabs") == {"method": "getTabs", "params": {}}
        assert [b["name"] for b in await remote.browsers()] == ["Near"]
        error = await remote.error("connect", {"extension_id": far.extension_id})
        assert error["code"] == -32000
        assert "bus unavailable" in error["message"]
        await until(lambda: not two.there.node.state.tables.by_node)
        two.bus.cut_off(False)
        far.handle = lambda method, params: {"back": True}
        await until(lambda: two.here.node.bus.healthy)
        await remote.join(far.extension_id)
        assert await remote.result("getTabs") == {"back": True}
        assert [r["method"] for r in far.requests] == ["click", "getTabs"]


async def test_connections_with_a_lost_node_end(two: Two) -> None:
    async with (
        IndependentExtension(two.there.url, token("ann")) as browser,
        IndependentAgent(two.here.url, token("ann")) as agent,
    ):
        browser.handle = lambda method, params: None
        await agent.ready()
        call = await agent.begin("click")
        await until(lambda: bool(browser.requests))
        await two.far_bus.close()
        assert (await call)["error"]["data"]["outcome"] == "unknown"
        await agent.notified("disconnected")
        assert await agent.browsers() == []


async def test_a_browser_that_changes_nodes_is_listed_once(two: Two) -> None:
    async with (
        IndependentExtension(two.here.url, token("ann"), instanceId="p") as first,
        IndependentExtension(two.there.url, token("ann"), instanceId="p") as second,
        IndependentAgent(two.here.url, token("ann")) as agent,
    ):
        assert first.extension_id == second.extension_id
        await until(lambda: first.ws.close_code == 4000)
        await agent.ready()
        assert await agent.result("getTabs")
        assert len(second.requests) == 1


async def test_a_browser_that_connects_to_two_nodes_at_once_keeps_one_connection() -> None:
    async with nats_server() as server, AsyncExitStack() as stack:
        made = [NatsBus(server.url, name) for name in ("here", "there")]
        relays = [await stack.enter_async_context(running_relay(bus=bus)) for bus in made]
        agent = await stack.enter_async_context(IndependentAgent(relays[0].url, token("ann")))
        await agent.handshake()
        for number in range(5):
            instance = f"profile-{number}"
            both = [IndependentExtension(relay.url, token("ann"), instanceId=instance) for relay in relays]
            await asyncio.gather(*(stack.enter_async_context(each) for each in both))
            await until(lambda both=both: any(each.ws.close_code == 4000 for each in both))  # type: ignore[misc]
            listed: dict[str, Any] = {"id": both[0].extension_id, "name": "Chrome 141", "connected": True}
            await becomes(agent.browsers, [listed])
            (kept,) = [each for each in both if each.ws.close_code is None]
            await agent.join(kept.extension_id)
            assert await agent.result("getTabs")
            assert len(kept.requests) == 1
            await agent.result("disconnect")
            await kept.ws.close()
            none: list[dict[str, Any]] = []
            await becomes(agent.browsers, none)


async def test_a_notification_for_one_agent_reaches_it_on_another_node_and_no_other(two: Two) -> None:
    async with (
        IndependentExtension(two.here.url, token("ann")) as browser,
        IndependentAgent(two.there.url, token("ann")) as agent,
        IndependentAgent(two.there.url, token("ann")) as other,
    ):
        for each in (agent, other):
            await each.handshake()
            await each.join((await each.listed(1))[0]["id"])
        await browser.send({"method": "own", "params": {}, "connectionId": agent.connection_id})
        await browser.notify("last", {})
        await agent.notified("own")
        await other.notified("last")
        assert "own" not in {message.get("method") for message in other.received}


async def test_limits_and_revocations_apply_on_all_nodes(two: Two) -> None:
    stolen = token("ann", ident="t1")
    async with (
        IndependentAgent(two.here.url, stolen) as agent,
        IndependentAgent(two.there.url, token("ann", ident="t2")) as other,
    ):
        await agent.handshake()
        await other.handshake()
        two.far_bus.report_usage("ann", 10**9)
        await until(lambda: two.here.node.state.tables.users["ann"].bucket._full_at > 0)
        assert (await agent.error("list_extensions"))["code"] == -32004
        two.far_bus.revoke(["t1 99999999999"])
        assert (await agent.closed())[0] == 4001
        async with IndependentAgent(two.here.url, stolen) as back:
            error = await back.error("mcp_handshake", {"accessToken": stolen})
            assert error["message"] == "Authentication failed: Invalid token"
        assert await other.browsers() == []


async def test_nodes_report_accepted_messages_to_each_other(two: Two) -> None:
    async with (
        IndependentAgent(two.here.url, token("ann")) as agent,
        IndependentAgent(two.there.url, token("ann")) as other,
    ):
        await agent.handshake()
        await other.handshake()
        before = two.there.node.state.tables.users["ann"].bucket._full_at
        for _ in range(5):
            await agent.browsers()
        await until(lambda: two.there.node.state.tables.users["ann"].bucket._full_at > before)


def test_a_node_that_does_not_answer_is_waited_for_only_briefly() -> None:
    play = Play(relay_open=5.0)
    play.remote_browsers = [Presence("ann", "ext-far", "Far", "there")]
    agent = play.agent("ann")
    play.take(agent)
    play.say(agent, {"id": 1, "method": "connect", "params": {"extension_id": "ext-far"}})
    play.say(agent, {"id": 2, "method": "connect", "params": {"extension_id": "ext-far"}})
    assert codes(play.take(agent)) == [(2, -32001)]
    (_, opening) = play.to_nodes.pop()
    assert isinstance(opening, nodes.Open)
    play.tick(5.0)
    assert codes(play.take(agent)) == [(1, -32000)]
    assert play.to_nodes.pop() == ("there", nodes.Ended(opening.connection, "Timed out"))
    play.run(play.relay.node_message_received("there", nodes.encode(nodes.Opened(opening.connection, "Far")), 5.0))
    assert play.take(agent) == []
    assert play.to_nodes.pop()[1] == nodes.Ended(opening.connection, "The agent disconnected")
    assert play.relay.tables.connections == {}


def test_a_node_cannot_send_for_a_connection_of_others() -> None:
    play = Play()
    agent, browser, connection = play.pair()
    play.say(agent, {"id": 1, "method": "x"})
    play.take(browser)
    answer = b'{"jsonrpc":"2.0","id":"%b:1","result":{}}' % connection.encode()
    for message in (
        nodes.ToAgent(connection, answer),
        nodes.ToBrowser(connection, b"{}"),
        nodes.Ended(connection, "x"),
    ):
        play.run(play.relay.node_message_received("evil", nodes.encode(message), 0.0))
    assert play.take(agent) == play.take(browser) == []
    assert play.relay.tables.counts.foreign == 3
    assert connection in play.relay.tables.connections
