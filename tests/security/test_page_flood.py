"""Pages that offer far too many tools: what is listed, what others keep, and what is left when they are closed."""

from __future__ import annotations

import gc
import logging
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tabhub.core.pages.tools import PageTool
from tabhub.core.schemas.validators import Schema
from tabhub.core.tools import Tool
from tests.harness.agent import Agent
from tests.harness.fake_extension import tab
from tests.harness.hub import RunningHub, running_hub
from tests.harness.pages import ADD, SHOP, Browser, listed, page, text_of, tool

NEWS = "https://news.example"
UNLIMITED_RATE = {"page_update_rate": 0, "page_update_rate_all": 0}
COUNTED = (Tool, PageTool, Schema)


def flood(frames: int, tools: int) -> list[dict[str, Any]]:
    """The registrations of a page with frames of many origins of one site."""
    names = [tool(f"t{number}", description="word " * 20) for number in range(tools)]
    return [
        page(7, *names, origin=f"https://s{frame}.news.example" if frame else NEWS, frame=frame, tabUrl=f"{NEWS}/p")
        for frame in range(frames)
    ]


async def register(browser: Browser, pages: list[dict[str, Any]]) -> None:
    for registration in pages:
        await browser.notify("browser/registerTools", registration)
    await browser.settle()


async def names(agent: Agent) -> list[str]:
    """The names of all listed page tools, page by page."""
    found: list[str] = []
    params: dict[str, Any] = {}
    while True:
        answer = (await agent.request("tools/list", params))["result"]
        found += [each["name"] for each in answer["tools"] if each["name"].startswith("website_tool_")]
        if "nextCursor" not in answer:
            return found
        params = {"cursor": answer["nextCursor"]}


def living() -> dict[str, int]:
    """How many tools, parsed declarations and validators there are in this process."""
    gc.collect()
    found = Counter(type(each) for each in gc.get_objects() if isinstance(each, COUNTED))
    return {kind.__name__: found[kind] for kind in COUNTED}


@pytest.mark.req("B27")
async def test_one_page_cannot_fill_the_list_and_another_site_keeps_its_tools(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tabs = [tab(7, f"{NEWS}/p"), tab(8, f"{SHOP}/p", active=True)]
    async with (
        running_hub(tmp_path, limits=UNLIMITED_RATE) as hub,
        Browser(hub, *tabs) as browser,
        Agent(hub) as agent,
    ):
        await register(browser, flood(60, 120))
        await browser.offer(8, tool("add"))
        found = await names(agent)
        assert sum("news_example" in name for name in found) == 200
        assert sum("tool_news_example" in name for name in found) == 100  # its own page keeps half of the tab's share
        assert "website_tool_shop_example_tab2_add" in found or ADD in found
        assert text_of(await agent.call("website_tool_shop_example_add")) == "add in 8"
        (notice,) = hub.hub.health.full()["pageNotices"]
        assert notice == "news.example offers 6,000 tools; Tabhub lists 200 of them."
        assert "news.example offers" in caplog.text


@pytest.mark.req("B27")
async def test_frames_of_other_sites_have_a_small_share_and_count_as_their_own_site(tmp_path: Path) -> None:
    many = [tool(f"t{number}") for number in range(60)]
    async with running_hub(tmp_path, limits=UNLIMITED_RATE) as hub, Browser(hub, tab(7, f"{NEWS}/p")) as browser:
        for number in range(1, 8):
            origin = f"https://x.ad{number}.example"
            await register(browser, [page(7, *many, origin=origin, frame=number, tabUrl=f"{NEWS}/p")])
        await register(browser, [page(7, *many, origin=NEWS, frame=0, tabUrl=f"{NEWS}/p")])
        async with Agent(hub) as agent:
            counts = Counter(name.split("_tab1_")[0].removeprefix("website_tool_") for name in await names(agent))
    assert counts.pop("news_example") == 60
    assert counts == {f"x_ad{number}_example": 20 for number in range(1, 6)}


@pytest.mark.req("B27")
async def test_large_definitions_count_by_their_bytes(tmp_path: Path) -> None:
    schema = {"type": "object", "description": "x" * 60_000}
    large = [tool(f"t{number}", inputSchema=schema) for number in range(20)]
    async with running_hub(tmp_path, limits=UNLIMITED_RATE) as hub, Browser(hub) as browser, Agent(hub) as agent:
        await register(browser, [page(7, *large)])
        assert len(await names(agent)) == 4
        assert hub.hub.health.full()["pageNotices"] == ["shop.example offers 20 tools; Tabhub lists 4 of them."]
        await browser.notify("browser/updateTools", {**page(7), "tools": [tool("add")]})
        await browser.settle()
        assert await names(agent) == [ADD]
        assert hub.hub.health.full()["pageNotices"] == []


@pytest.mark.req("B27")
async def test_updates_of_one_tab_are_slowed_and_those_of_another_are_not(
    hub: RunningHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = hub.hub.pages.clock()
    monkeypatch.setattr(hub.hub.pages, "clock", lambda: now)  # all of it happens within one second
    async with Browser(hub, tab(7, f"{NEWS}/p"), tab(8, f"{SHOP}/p")) as browser, Agent(hub) as agent:
        await register(browser, flood(40, 1))
        await browser.offer(8, tool("add"))
        found = await names(agent)
        assert sum("news_example" in name for name in found) == 10
        assert ADD in found


@pytest.mark.req("B27")
async def test_nothing_of_a_closed_page_is_left(tmp_path: Path) -> None:
    async with (
        running_hub(tmp_path, limits=UNLIMITED_RATE) as hub,
        Browser(hub) as browser,
        Agent(hub) as agent,
        Agent(hub, path="/mcp?tools=core,page") as core,
        Agent(hub, path="/mcp/gateway") as gateway,
    ):
        for each in (agent, core):
            await listed(each)
        await gateway.call("tabhub_list_tools", {"query": "word"})
        before = living()
        await register(browser, flood(10, 100))
        for each in (agent, core):
            assert len(await names(each)) == 200
        answer = await gateway.call("tabhub_list_tools", {"query": "word"})
        assert "website_tool_" in text_of(answer)
        await agent.call("website_tool_news_example_tab1_t1", {"id": 7})
        during = living()
        assert during["Tool"] - before["Tool"] >= 200
        await browser.change(7, "removed")
        assert living() == before
        assert len(hub.hub.pages.pages.shares) == 0


@pytest.mark.req("B27")
async def test_notices_name_a_few_sites(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with running_hub(tmp_path, limits={**UNLIMITED_RATE, "page_tools": 1}) as hub, Browser(hub) as browser:
        two = [tool("a"), tool("b")]
        with caplog.at_level(logging.WARNING):
            for number in range(8):
                origin = f"https://s{number}.example"
                await register(browser, [page(7, *two, origin=origin, frame=number, tabUrl=f"{SHOP}/p")])
        notices = hub.hub.health.full()["pageNotices"]
        assert notices[-1] == "3 more sites offer more tools than are listed."
        assert len(notices) == 6
        assert len([line for line in caplog.messages if "Tabhub lists" in line]) == 8
