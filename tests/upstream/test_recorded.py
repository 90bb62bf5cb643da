"""What the hub sends to external servers, recorded by a server without an SDK."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import pytest

from tabhub.errors import InvalidServerConfig
from tests.harness.agent import Agent, client
from tests.harness.hub import RunningHub
from tests.harness.panel import Panel
from tests.upstream.recorder import REVISION, Recorder
from tests.upstream.servers import names, state, text

KEYS = {"Authorization": "Bearer sk-1", "X-Api-Key": "abc123"}
BEGINNING = ["initialize", "notifications/initialized", "tools/list"]


async def add(hub: RunningHub, servers: dict[str, Any]) -> list[dict[str, Any]]:
    facts: list[dict[str, Any]] = await hub.hub.upstream.add(json.dumps(servers))
    return facts


def sent(server: Recorder, at: int = 0) -> list[str]:
    """The methods sent by POST, without the refused attempt at the newer revision."""
    return [each.method for each in server.received[at:] if each.verb == "POST" and each.method != "server/discover"]


@pytest.mark.req("S001-overview-01")
async def test_external_tools_are_listed_with_built_in_ones_and_both_can_be_called(
    hub: RunningHub,
) -> None:
    with Recorder("weather", "now") as weather, Recorder("news", "now") as news:
        facts = await add(hub, {server.name: {"url": server.url} for server in (weather, news)})
        assert [each["state"] for each in facts] == ["ready", "ready"]
        wanted = {"browser_list_tabs", "mcp__weather__now", "mcp__news__now"}
        async with Panel(hub), Agent(hub) as agent, Agent(hub, "/mcp/gateway") as lean, client(hub) as http:
            listed = (await agent.request("tools/list"))["result"]["tools"]
            assert wanted <= {tool["name"] for tool in listed}
            assert wanted <= {tool["name"] for tool in (await http.get("/tools")).json()}
            for called, returned in (("mcp__weather__now", "weather: now"), ("mcp__news__now", "news: now")):
                assert text((await agent.call(called))["result"]) == returned
                assert text((await lean.call("tabhub_call", {"name": called, "arguments": {}}))["result"]) == returned
                assert text((await http.post(f"/tools/{called}/call", json={})).json()) == returned
            tabs = (await agent.call("browser_list_tabs"))["result"]["structuredContent"]["tabs"]
            assert [tab["tabId"] for tab in tabs] == [7]


@pytest.mark.req("S001-transport-03")
async def test_a_session_is_initialized_before_tools_are_listed_and_called(hub: RunningHub) -> None:
    with Recorder("weather", "now") as server:
        (facts,) = await add(hub, {"weather": {"url": server.url}})
        assert (facts["state"], facts["protocol"]) == ("ready", REVISION)
        assert sent(server) == BEGINNING
        async with Agent(hub) as agent:
            for count in (1, 2):
                assert text((await agent.call("mcp__weather__now"))["result"]) == "weather: now"
                assert sent(server) == [*BEGINNING, *["tools/call"] * count]
        first, *others = [each for each in server.received if each.method in sent(server)]
        assert "mcp-session-id" not in first.headers
        assert {each.headers["mcp-session-id"] for each in others} == set(server.sessions)
        assert all(each.headers["accept"].count("/") == 2 for each in others)  # JSON and event streams


@pytest.mark.req("S001-config-04")
async def test_headers_are_sent_with_every_request_to_their_server_only(hub: RunningHub) -> None:
    with Recorder("keyed", "one") as keyed, Recorder("plain", "one") as plain:
        await add(hub, {"keyed": {"url": keyed.url, "headers": KEYS}, "plain": {"url": plain.url}})
        async with Agent(hub) as agent:
            for name in ("keyed", "plain"):
                assert text((await agent.call(f"mcp__{name}__one"))["result"]) == f"{name}: one"
        for name in ("keyed", "plain"):
            await hub.hub.upstream.refresh(name)
            await hub.hub.upstream.remove(name)
        everything = {*BEGINNING, "server/discover", "GET", "tools/call", "DELETE"}
        for server, wanted in ((keyed, KEYS), (plain, {})):
            assert {each.method for each in server.received} == everything
            for each in server.received:
                given = {name: each.headers[name.lower()] for name in KEYS if name.lower() in each.headers}
                assert given == wanted, each


@pytest.mark.req("S001-config-02")
async def test_the_key_of_an_entry_is_the_name_and_prefixes_the_tools(hub: RunningHub) -> None:
    with Recorder("itself", "one", "two") as server:
        entry = {"url": server.url}
        for nameless in (entry, {"": entry}, {"mcpServers": {"": entry}}, {"  ": entry}):
            with pytest.raises(InvalidServerConfig) as refused:
                await add(hub, nameless)
            assert "name" in refused.value.message
        assert server.received == []
        (facts,) = await add(hub, {"my-server": entry})
        assert facts["name"] == "my-server"
        assert {tool["name"] for tool in facts["tools"]} == {"mcp__my-server__one", "mcp__my-server__two"}
        async with Panel(hub) as panel, client(hub) as http:
            (shown,) = (await panel.get("config.getState"))["upstream"]
            listed = (await http.get("/tools?plugin=my-server")).json()
        assert shown["name"] == "my-server"
        assert {tool["name"] for tool in listed} == names(hub) == {tool["name"] for tool in shown["tools"]}
        assert all(name.startswith("mcp__my-server__") for name in names(hub))


@pytest.mark.req("S001-naming-02")
async def test_each_listed_name_calls_exactly_one_tool_of_one_server(hub: RunningHub) -> None:
    tools = ("get", "b__get", "get weather", "größe", "x" * 90)
    servers = [Recorder(name, *tools) for name in ("a", "a__b", "a b", "wetter-köln", "B")]
    for server in servers:
        server.__enter__()
    try:
        await add(hub, {server.name: {"url": server.url} for server in servers})
        async with Agent(hub) as agent:
            listed = (await agent.request("tools/list"))["result"]["tools"]
            seen = [tool["name"] for tool in listed if tool["name"].startswith("mcp__")]
            assert len(seen) == len(set(seen)) == len(servers) * len(tools)
            meant = Counter()  # type: Counter[str]
            for name in seen:
                returned = text((await agent.call(name))["result"])
                meant[returned] += 1
                if not re.search(r"_h[0-9a-f]{10}$", name):
                    assert returned == ": ".join(name.removeprefix("mcp__").split("__", 1))
        assert meant == Counter(f"{server.name}: {tool}" for server in servers for tool in tools)
        for server in servers:
            called = [each.body["params"]["name"] for each in server.received if each.method == "tools/call"]
            assert Counter(called) == Counter(tools)
    finally:
        for server in servers:
            server.__exit__()


@pytest.mark.req("S001-discovery-01", "S001-discovery-04", "S001-managing-04")
async def test_adding_and_refreshing_list_all_tools_in_an_initialized_session(hub: RunningHub) -> None:
    with Recorder("shop", "one", "two", "three") as server:
        await add(hub, {"shop": {"url": server.url}})
        assert sent(server) == [*BEGINNING, "tools/list"]  # two pages
        assert names(hub) == {"mcp__shop__one", "mcp__shop__two", "mcp__shop__three"}
        # Its tools change without a notification.
        server.tools[:] = ["two", "three", "four", "five", "six"]
        assert "mcp__shop__four" not in names(hub)
        at = len(server.received)
        refreshed = await hub.hub.upstream.refresh("shop")
        assert sent(server, at) == ["tools/list"] * 3
        assert {each.headers["mcp-session-id"] for each in server.received[at:]} == set(server.sessions)
        wanted = {f"mcp__shop__{name}" for name in server.tools}
        assert names(hub) == wanted == {tool["name"] for tool in refreshed["tools"]}
        async with Agent(hub) as agent:
            assert text((await agent.call("mcp__shop__six"))["result"]) == "shop: six"
        # Without a session, refreshing initializes one.
        server.forget()
        server.tools.append("seven")
        at = len(server.received)
        await hub.hub.upstream.refresh("shop")
        assert state(hub, "shop") == "ready"
        assert sent(server, at)[-len(BEGINNING) - 2 :] == [*BEGINNING, "tools/list", "tools/list"]
        assert names(hub) == wanted | {"mcp__shop__seven"}


async def test_an_error_of_the_server_is_passed_on_and_the_connection_stays(hub: RunningHub) -> None:
    with Recorder("shop", "fails", "one") as server:
        await add(hub, {"shop": {"url": server.url}})
        async with Agent(hub) as agent:
            answer = str(await agent.call("mcp__shop__fails"))
            assert "shop answered tools/call with an error: Out of stock." in answer
            assert text((await agent.call("mcp__shop__one"))["result"]) == "shop: one"
        assert sent(server) == [*BEGINNING, "tools/call", "tools/call"]


async def test_a_redirect_within_the_origin_is_followed_with_method_and_headers(hub: RunningHub) -> None:
    with Recorder("shop", "one") as server:
        server.moved_to = "/mcp/"
        await add(hub, {"shop": {"url": server.url, "headers": KEYS}})
        async with Agent(hub) as agent:
            assert text((await agent.call("mcp__shop__one"))["result"]) == "shop: one"
        assert sent(server) == [*BEGINNING, "tools/call"]
        assert {each.headers["x-api-key"] for each in server.received} == {"abc123"}
