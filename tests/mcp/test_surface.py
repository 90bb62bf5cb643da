"""Which tools a connection lists: by its URL, by the setting, and all of them through the gateway."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tabhub.browser.families import CORE, FAMILIES
from tests.harness.agent import Agent, client, message, stateless
from tests.harness.fake_extension import FakeExtension, tab
from tests.harness.hub import RunningHub
from tests.harness.pages import SHOP, Browser
from tests.harness.pages import tool as declared

FULL = {name for names in FAMILIES.values() for name in names}


async def listed(hub: RunningHub, address: str, era: str = "stateless") -> tuple[list[dict[str, Any]], int]:
    """The tools at a URL, and the size of the answer in bytes."""
    async with client(hub) as http:
        if era == "stateless":
            body, headers = stateless("tools/list")
            answer = await http.post(address, json=body, headers=headers)
        else:
            hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
            opened = await http.post(address, json=message("initialize", hello))
            assert opened.status_code == 200, opened.text
            session = {"Mcp-Session-Id": opened.headers["mcp-session-id"]}
            answer = await http.post(address, json=message("tools/list"), headers=session)
    assert answer.status_code == 200, answer.text
    return answer.json()["result"]["tools"], len(answer.content)


@pytest.mark.parametrize("era", ["stateless", "handshake"])
async def test_the_core_profile_has_26_tools_at_most_in_13_kb(hub: RunningHub, era: str) -> None:
    tools, size = await listed(hub, "/mcp?tools=core", era)
    assert {tool["name"] for tool in tools} == set(CORE)
    assert len(tools) <= 26
    assert size <= 13 * 1024
    for tool in tools:
        assert tool["description"]
        assert tool["inputSchema"]["type"] == "object"
        assert "outputSchema" not in tool


@pytest.mark.parametrize("era", ["stateless", "handshake"])
async def test_the_url_selects_families_and_without_a_selection_core_and_the_finder_are_listed(
    hub: RunningHub, era: str
) -> None:
    default, _ = await listed(hub, "/mcp", era)
    everything, _ = await listed(hub, "/mcp?tools=all", era)
    network, _ = await listed(hub, "/mcp?tools=core,network", era)
    without, _ = await listed(hub, "/mcp?tools=all,-network", era)
    assert {tool["name"] for tool in default} == {*CORE, "tabhub_list_tools", "tabhub_call"}
    assert {tool["name"] for tool in everything} == FULL
    assert {tool["name"] for tool in network} == {*CORE, *FAMILIES["network"]}
    assert {tool["name"] for tool in without} == FULL - set(FAMILIES["network"])


async def test_the_setting_applies_to_connections_without_a_selection(hub: RunningHub) -> None:
    hub.home.config.write_text('{"tools": "tabs"}')
    async with client(hub) as http:
        assert (await http.post("/reload")).status_code == 200
    tools, _ = await listed(hub, "/mcp")
    assert {tool["name"] for tool in tools} == {*FAMILIES["tabs"], *FAMILIES["hub"]}
    everything, _ = await listed(hub, "/mcp?tools=all")
    assert {tool["name"] for tool in everything} == FULL


@pytest.mark.parametrize("word", ["nettwork", "%00", "core,__proto__"])
async def test_an_unknown_selection_is_refused_with_the_known_ones(hub: RunningHub, word: str) -> None:
    body, headers = stateless("tools/list")
    async with client(hub) as http:
        answer = await http.post(f"/mcp?tools={word}", json=body, headers=headers)
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert error["code"] == -32602
    assert "network" in str(error)


async def test_unlisted_tools_can_be_called_and_found_through_the_gateway(hub: RunningHub) -> None:
    async with FakeExtension(hub), client(hub) as http:
        body, headers = stateless("tools/call", {"name": "browser_get_tab_info", "arguments": {"tabId": 7}})
        answer = (await http.post("/mcp?tools=network", json=body, headers=headers)).json()
        find = {"name": "tabhub_list_tools", "arguments": {"query": "describe a tab"}}
        body, headers = stateless("tools/call", find)
        found = (await http.post("/mcp/gateway?tools=network", json=body, headers=headers)).json()
    assert json.loads(answer["result"]["content"][0]["text"])["tabId"] == 7
    assert "browser_get_tab_info" in str(found["result"])


async def test_the_finder_finds_and_calls_what_is_not_listed(hub: RunningHub) -> None:
    async with FakeExtension(hub), Agent(hub, "/mcp") as agent:
        names = {tool["name"] for tool in (await agent.request("tools/list"))["result"]["tools"]}
        assert "browser_get_tab_info" not in names
        found = (await agent.call("tabhub_list_tools", {"query": "describe a tab"}))["result"]
        best = json.loads(found["content"][0]["text"])["tools"][0]
        assert best["name"].startswith("browser_get_tab_info(")
        assert "tabId" in best["inputSchema"]["properties"]
        given = {"name": "browser_get_tab_info", "arguments": {"tabId": 7}}
        through = await agent.call("tabhub_call", given)
        direct = await agent.call("browser_get_tab_info", {"tabId": 7})
    assert through["result"] == direct["result"]
    assert json.loads(direct["result"]["content"][0]["text"])["tabId"] == 7


async def test_agents_get_text_and_programs_get_data_never_both(hub: RunningHub) -> None:
    call = {"name": "browser_get_tab_info", "arguments": {"tabId": 7}}
    async with FakeExtension(hub), Agent(hub, "/mcp") as agent, Agent(hub) as program, client(hub) as http:
        read = (await agent.request("tools/call", call))["result"]
        data = (await program.request("tools/call", call))["result"]
        rest = (await http.post("/tools/browser_get_tab_info/call", json=call["arguments"])).json()
        asked = await http.post(
            "/tools/browser_get_tab_info/call", json=call["arguments"], headers={"Tabhub-Answer": "text"}
        )
        listings = [(await each.request("tools/list"))["result"]["tools"] for each in (agent, program)]
    assert read.keys() == {"content"}
    assert data == rest
    assert data["content"] == []
    assert json.loads(read["content"][0]["text"]) == data["structuredContent"]
    assert asked.json() == read
    assert [any("outputSchema" in tool for tool in listing) for listing in listings] == [False, True]


async def test_a_change_of_tools_that_are_not_listed_notifies_nobody(hub: RunningHub) -> None:
    hub.home.config.write_text('{"catalogueTokens": 150}')
    shop, other = tab(7, f"{SHOP}/p", active=True), tab(8, "https://other.example/p")
    async with Browser(hub, shop, other) as browser, Agent(hub, "/mcp") as agent, client(hub) as http:
        assert (await http.post("/reload")).status_code == 200
        await browser.offer(7, declared("add"))
        session = hub.hub.mcp.handshake.sessions[agent.headers["Mcp-Session-Id"]]
        await agent.request("tools/list")
        assert not hub.hub.mcp.handshake.differs(session, "tools")
        await browser.offer(8, declared("pay", description="long " * 200), origin="https://other.example")
        assert not hub.hub.mcp.handshake.differs(session, "tools")
        await browser.offer(7, declared("buy"))
        assert hub.hub.mcp.handshake.differs(session, "tools")
