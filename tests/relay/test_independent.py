"""The relay with clients written from its specification alone, in both roles, over real sockets."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest
from websockets.asyncio.client import connect

from tests.harness.waiting import until
from tests.relay.independent import IndependentAgent, IndependentExtension
from tests.relay.world import RunningRelay, running_relay, token


@pytest.fixture
async def relay() -> AsyncIterator[RunningRelay]:
    async with running_relay() as running:
        yield running


@pytest.mark.req(
    "S003-overview-01",
    "S003-lifecycle-01",
    "S003-lifecycle-02",
    "S003-mcp-connection-01",
    "S003-mcp-connection-02",
    "S003-extension-connection-04",
    "S003-discovery-01",
    "S003-establish-01",
    "S003-forwarding-01",
    "S003-forwarding-04",
    "S003-forwarding-08",
    "S003-auth-01",
    "S003-compat-01",
)
async def test_an_agent_reaches_its_users_browser(relay: RunningRelay) -> None:
    async with (
        IndependentExtension(relay.url, token("ann")) as browser,
        IndependentAgent(relay.url, token("ann")) as agent,
    ):
        assert browser.user_id == "ann"
        assert browser.extension_id.startswith("ext-")
        hello = await agent.handshake()
        assert hello["authenticated"] is True
        assert hello["user_id"] == "ann"
        assert hello["mcp_client_id"].startswith("mcp-")
        assert await agent.browsers() == [{"id": browser.extension_id, "name": "Chrome 141", "connected": True}]
        joined = await agent.join(browser.extension_id)
        assert joined["extension_id"] == browser.extension_id
        assert joined["extension_name"] == "Chrome 141"
        assert joined["connection_id"].startswith("conn-")
        params = {"url": "https://example.com", "stealth": True}
        assert await agent.result("createTab", params) == {"method": "createTab", "params": params}
        asked = browser.requests[0]
        assert asked == {"jsonrpc": "2.0", "id": asked["id"], "method": "createTab", "params": params}


@pytest.mark.req("S003-extension-connection-02", "S003-ids-02")
async def test_the_relay_requests_the_token_and_the_browser_replies(relay: RunningRelay) -> None:
    async with connect(f"{relay.url}/extension") as ws:
        first = json.loads(await ws.recv())
        assert first == {"jsonrpc": "2.0", "id": "proxy:1", "method": "authenticate", "params": {}}


@pytest.mark.req("S003-notifications-02", "S003-connect-04", "S003-lifecycle-04", "S003-lifecycle-05")
async def test_both_sides_receive_their_status(relay: RunningRelay) -> None:
    async with IndependentExtension(relay.url, token("ann")) as browser:
        async with IndependentAgent(relay.url, token("ann")) as one, IndependentAgent(relay.url, token("ann")) as two:
            await one.ready()
            status = await browser.notified("status")
            assert (status["connected"], status["peer_count"]) == (True, 1)
            assert status["timestamp"].startswith("20")
            assert (await one.notified("status"))["connected"] is True
            await two.ready()
            assert (await browser.notified("status"))["peer_count"] == 2
            assert await one.result("disconnect") == {"disconnected": True}
            assert (await browser.notified("status"))["peer_count"] == 1
            assert (await one.notified("status"))["connected"] is False
            assert await two.result("getTabs") == {"method": "getTabs", "params": {}}
        gone = await browser.notified("status")
        assert (gone["connected"], gone["peer_count"]) == (False, 0)
        async with IndependentAgent(relay.url, token("ann")) as third:
            await third.ready()
            assert await third.result("getTabs") == {"method": "getTabs", "params": {}}


@pytest.mark.req("S003-notifications-03", "S003-lifecycle-03")
async def test_when_a_browser_disconnects_its_agents_are_notified_and_calls_fail_at_once(relay: RunningRelay) -> None:
    async with IndependentAgent(relay.url, token("ann")) as agent:
        async with IndependentExtension(relay.url, token("ann")) as browser:
            browser.handle = lambda method, params: None
            await agent.ready()
            call = await agent.begin("click", {"selector": "#pay"})
            await until(lambda: bool(browser.requests))
            browser.ws.transport.abort()
            error = (await call)["error"]
            assert error["data"]["outcome"] == "unknown"
        params = await agent.notified("disconnected")
        assert params == {"connection_id": agent.connection_id, "reason": "Extension closed"}
        assert await agent.browsers() == []
        assert (await agent.error("click"))["code"] == -32000


@pytest.mark.req("S003-ids-05", "S003-ids-06", "S003-principles-05", "B12")
async def test_equal_ids_of_two_agents_or_two_types_get_their_own_replies(relay: RunningRelay) -> None:
    async with (
        IndependentExtension(relay.url, token("ann")) as browser,
        IndependentAgent(relay.url, token("ann")) as one,
        IndependentAgent(relay.url, token("ann")) as two,
    ):
        await one.ready()
        await two.ready()
        held: list[str] = []
        browser.handle = lambda method, params: None
        calls = [
            await one.begin("navigate", {"who": "one"}, id=1),
            await one.begin("navigate", {"who": "text"}, id="1"),
            await two.begin("click", {"who": "two"}, id=1),
        ]
        await until(lambda: len(browser.requests) == 3)
        for request in reversed(browser.requests):
            held.append(request["id"])
            await browser.send({"id": request["id"], "result": {"who": request["params"]["who"]}})
        assert len(set(held)) == 3
        answers = [await call for call in calls]
        assert [a["result"]["who"] for a in answers] == ["one", "text", "two"]
        assert [a["id"] for a in answers] == [1, "1", 1]
        assert [type(a["id"]) for a in answers] == [int, str, int]
        for prefix in ("proxy:1", "ext:1", "conn-1"):
            assert (await one.error("navigate", id=prefix))["code"] == -32600
        assert len(browser.requests) == 3


@pytest.mark.req("S003-security-03", "S003-list-01", "S003-list-02", "S003-connect-01", "S003-forwarding-07")
async def test_the_browser_of_another_user_looks_missing(relay: RunningRelay) -> None:
    async with (
        IndependentExtension(relay.url, token("ann")) as anns,
        IndependentAgent(relay.url, token("ann")) as ann,
        IndependentAgent(relay.url, token("bob")) as bob,
    ):
        await ann.ready()
        await bob.handshake()
        assert await bob.browsers() == []
        foreign = await bob.error("connect", {"extension_id": anns.extension_id})
        absent = await bob.error("connect", {"extension_id": "ext-d1cdb70b-b20a-46ed-8fa7-7597a0f2837a"})
        assert foreign == absent
        assert (foreign["code"], foreign["message"]) == (-32000, "Extension not found or not accessible")
        assert (await bob.error("getTabs", connectionId=ann.connection_id))["code"] == -32000
        assert anns.requests == []


@pytest.mark.req(
    "S003-connect-02",
    "S003-connect-03",
    "S003-establish-02",
    "S003-disconnect-01",
    "S003-disconnect-02",
    "S003-disconnect-03",
)
async def test_an_agent_has_one_connection_and_must_disconnect_to_change_it(relay: RunningRelay) -> None:
    async with (
        IndependentExtension(relay.url, token("ann"), "First") as first,
        IndependentExtension(relay.url, token("ann"), "Second") as second,
        IndependentAgent(relay.url, token("ann")) as agent,
    ):
        await agent.handshake()
        assert await agent.result("disconnect") == {"disconnected": True}
        await agent.join(first.extension_id)
        again = await agent.error("connect", {"extension_id": second.extension_id})
        assert (again["code"], again["message"]) == (-32001, "MCP client already connected to an extension")
        assert await agent.result("disconnect") == {"disconnected": True}
        assert (await agent.join(second.extension_id))["extension_name"] == "Second"
        await agent.result("getTabs")
        assert (len(first.requests), len(second.requests)) == (0, 1)


@pytest.mark.req("S003-forwarding-06", "S003-proxies-02")
async def test_errors_are_forwarded_and_connection_ids_are_not(relay: RunningRelay) -> None:
    async with (
        IndependentExtension(relay.url, token("ann")) as browser,
        IndependentAgent(relay.url, token("ann")) as agent,
    ):
        await agent.ready()

        def fail(method: str, params: object) -> None:
            raise LookupError("Tab creation failed: Permission denied")

        browser.handle = fail
        error = await agent.error("createTab", connectionId=agent.connection_id)
        assert error == {"code": -32000, "message": "Tab creation failed: Permission denied"}
        assert "connectionId" not in browser.requests[0]
        wrong = await agent.error("createTab", connectionId="conn-00000000-0000-4000-8000-000000000000")
        assert wrong["code"] == -32000
        assert len(browser.requests) == 1


@pytest.mark.req("S003-notifications-01")
async def test_notifications_of_a_browser_reach_every_connected_agent(relay: RunningRelay) -> None:
    async with (
        IndependentExtension(relay.url, token("ann")) as browser,
        IndependentExtension(relay.url, token("ann"), "Other") as other,
        IndependentAgent(relay.url, token("ann")) as one,
        IndependentAgent(relay.url, token("ann")) as two,
        IndependentAgent(relay.url, token("ann")) as elsewhere,
    ):
        for agent, extension in ((one, browser), (two, browser), (elsewhere, other)):
            await agent.handshake()
            await agent.join(extension.extension_id)
        await browser.notify("tab.stateChanged", {"tabId": 3})
        assert await one.notified("tab.stateChanged") == {"tabId": 3}
        assert await two.notified("tab.stateChanged") == {"tabId": 3}
        await browser.notify("disconnected", {"connection_id": one.connection_id, "reason": "forged"})
        await browser.notify("last", {})
        await other.notify("last", {})
        await one.notified("last")
        methods = [message["method"] for message in list(elsewhere.notifications._queue)]  # type: ignore[attr-defined]
        assert "tab.stateChanged" not in methods
        await one.send({"method": "seen", "params": {"x": 1}})
        assert await browser.notified("seen") == {"x": 1}
