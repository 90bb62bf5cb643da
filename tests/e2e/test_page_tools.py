"""Page tools end to end: where a call goes, notifications to agents, and what happens when pages close."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client
from mcp.client.subscriptions import ToolsListChanged
from mcp.types import ElicitResult, ToolListChangedNotification

from tests.e2e import live
from tests.e2e.live import DevTools, LiveHub
from tests.e2e.pagesite import ERAS, SHOP, WEBMCP, PageSite, PageTab, data, of_site, prefix, result_text
from tests.harness.waiting import until_outside


@pytest.mark.req("S000-overview-08")
async def test_agents_of_both_eras_are_notified_of_changed_page_tools(live_hub: LiveHub, shop: PageSite) -> None:
    answer = asyncio.Event()

    async def on_message(message: Any) -> None:
        if isinstance(message, ToolListChangedNotification):
            answer.set()

    async with (
        live_hub.mcp("legacy", message_handler=on_message) as first,
        live_hub.mcp("2026-07-28") as second,
        second.listen(tools_list_changed=True) as events,
    ):
        page = await PageTab.open(first, f"{shop.url}/pages/webmcp.html")
        await page.lists(*WEBMCP)
        for client in (first, second):
            await client.list_tools()
        await page.run("offer('more', () => 'more')")
        wanted = f"{prefix(shop.url)}_tab1_more"
        # Not by polling: without a notification the client answers from its own cache.
        async with asyncio.timeout(30):
            while wanted not in [tool.name for tool in (await first.list_tools()).tools]:
                answer.clear()
                await answer.wait()
            async for event in events:
                assert isinstance(event, ToolsListChanged)
                if wanted in [tool.name for tool in (await second.list_tools()).tools]:
                    break


@pytest.mark.req(
    "S000-overview-04",
    "S000-overview-05",
    "S000-principles-02",
    "S000-flows-04",
    "S000-flows-05",
    "S000-flows-06",
    "S000-spec-routing-01",
    "S000-spec-routing-03",
    "S000-spec-routing-04",
    "S000-spec-routing-07",
    "S000-spec-routing-09",
    "S000-spec-testing-02",
)
@pytest.mark.parametrize("mode", ERAS)
async def test_tool_names_distinguish_tabs_of_a_site_and_the_best_tab_is_the_default(
    live_hub: LiveHub, devtools: DevTools, shop: PageSite, mode: str
) -> None:
    async with live_hub.mcp(mode) as client:
        anywhere = f"{prefix(shop.url)}_where"

        async def where() -> str:
            return result_text(await client.call_tool(anywhere, {}))

        first, second = [await PageTab.open(client, f"{shop.url}/pages/webmcp.html?{n}") for n in (1, 2)]
        other = await PageTab.open(client, f"{shop.elsewhere}/pages/webmcp.html?3")
        for number, page in enumerate((first, second, other), 1):
            tools = await page.lists(*WEBMCP)
            assert tools["where"].name == f"{prefix(page.origin)}_tab{number % 3 or 1}_where"
            assert result_text(await page.call("where")) == f"{page.origin}/pages/webmcp.html?{number}"
        assert (await where()).endswith("?2")
        failed = await first.call("fails")
        assert failed.is_error
        assert "The shelf is empty." in result_text(failed)
        await first.run("offer('more', () => 'more')")
        await first.lists(*WEBMCP, "more")
        assert (await where()).endswith("?1")
        (target,) = await devtools.targets("page", f"{shop.url}/pages/webmcp.html?2")
        await devtools.send("Target.activateTarget", targetId=target)
        await second.lists(*WEBMCP, where="active tab")
        assert (await where()).endswith("?2")
        await second.close()
        await second.lists()
        assert (await where()).endswith("?1")
        await first.close()
        await first.lists()
        assert result_text(await other.call("where")).endswith("?3")


@pytest.mark.req("S000-overview-03", "S000-spec-routing-11", "S000-security-02")
async def test_tools_depend_on_the_login_of_the_page_and_run_with_it(live_hub: LiveHub, shop: PageSite) -> None:
    async with live_hub.mcp("legacy") as client:
        page = await PageTab.open(client, f"{shop.url}/member")
        assert await page.run("await asked; return document.title") == "Nobody"
        await page.lists()
        await data(client, "browser_navigate_tab", tabId=page.tab_id, url=f"{shop.url}/login")
        await data(client, "browser_navigate_tab", tabId=page.tab_id, url=f"{shop.url}/member")
        await page.lists("me")
        assert await page.run("return document.cookie") == ""
        assert result_text(await page.call("me")) == "member=anna"
        await data(client, "browser_navigate_tab", tabId=page.tab_id, url=f"{shop.url}/logout")
        await page.lists()


Ending = Callable[[PageTab, DevTools, str], Awaitable[Any]]
ENDINGS: dict[str, Ending] = {
    "reloaded": lambda page, devtools, url: page.run("setTimeout(() => location.reload())"),
    "navigated": lambda page, devtools, url: data(
        page.client, "browser_navigate_tab", tabId=page.tab_id, url=f"{page.origin}/pages/empty.html"
    ),
    "closed": lambda page, devtools, url: page.close(),
    "crashed": lambda page, devtools, url: devtools.crash(url),
}


@pytest.mark.req("F9", "S000-spec-cleanup-01", "S000-spec-cleanup-02", "S000-spec-cleanup-07")
@pytest.mark.parametrize("ending", ENDINGS)
async def test_navigation_during_a_call_fails_it_immediately_and_it_is_not_repeated(
    live_hub: LiveHub, devtools: DevTools, shop: PageSite, ending: str
) -> None:
    url, hits = f"{shop.url}/counted?{ending}", f"/hit/order{ending}"
    async with live_hub.mcp("legacy") as client:
        page = await PageTab.open(client, url)
        await page.lists("order", "look")
        call = asyncio.create_task(page.call("order"))
        await shop.asked(hits)
        await ENDINGS[ending](page, devtools, url)
        result = await call
        assert result.is_error
        assert re.search(
            f"The page of {shop.url} in tab .* is gone: The page was closed or navigated during the call",
            result_text(result),
        )
        await page.lists(*(("order", "look") if ending == "reloaded" else ()))
        assert shop.count(hits) == 1


@pytest.mark.req("S000-spec-routing-14")
async def test_a_read_only_call_is_retried_in_another_tab(live_hub: LiveHub, shop: PageSite) -> None:
    async with live_hub.mcp("2026-07-28") as client:
        pages = [await PageTab.open(client, f"{shop.url}/counted{more}") for more in ("", "?never")]
        for page in pages:
            await page.lists("order", "look")
        call = asyncio.create_task(client.call_tool(f"{prefix(shop.url)}_look", {}))
        await shop.asked("/hit/looknever")
        await pages[1].close()
        assert result_text(await call) == f"done at {shop.url}/counted"
        assert (shop.count("/hit/looknever"), shop.count("/hit/look")) == (1, 1)


@pytest.mark.req("S000-extensibility-03", "S000-spec-security-06")
@pytest.mark.parametrize("mode", ERAS)
async def test_a_pages_confirmation_request_reaches_the_mcp_client(
    live_hub: LiveHub, shop: PageSite, mode: str
) -> None:
    asked: list[str] = []

    async def agree(context: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action="accept", content={})

    async with live_hub.mcp(mode, elicitation_callback=agree) as client:
        page = await PageTab.open(client, f"{shop.url}/pages/transports.html")
        await page.lists(*SHOP)
        assert result_text(await page.call("order")) == "ordered true"
        assert asked == [f"{shop.url} asks you to confirm, for its tool 'order': Order it?"]


@pytest.mark.req(
    "S000-overview-07",
    "S000-hub-03",
    "S000-hub-04",
    "S000-flows-07",
    "S000-spec-registration-08",
    "S000-spec-routing-05",
    "S000-spec-routing-17",
    "S000-spec-cleanup-03",
    "S000-spec-cleanup-06",
)
async def test_a_cached_tool_survives_its_tab_and_a_hub_restart_and_reopens_its_page(
    tmp_path: Path, shop: PageSite
) -> None:
    url, name = f"{shop.url}/pages/transports.html", f"{prefix(shop.url)}_price"

    async def opens_again(client: Client) -> None:
        assert list(await of_site(client, shop.url)) == [name]
        result = await client.call_tool(name, {"item": "jam"})
        assert result_text(result) == "jam costs 7"
        tabs = (await data(client, "browser_list_tabs"))["tabs"]
        (opened,) = [tab for tab in tabs if tab["url"] == url]
        assert not opened["active"]
        page = PageTab(client, opened["tabId"], shop.url)
        await page.lists(*SHOP)
        await page.close()
        await page.lists()

    hub = live.start(tmp_path)
    try:
        async with hub.mcp("legacy") as client:
            page = await PageTab.open(client, url)
            await page.lists(*SHOP)
            await page.close()
            await page.lists()
            await opens_again(client)
    finally:
        live.stop(hub)
    hub = live.start(tmp_path)
    try:
        async with hub.mcp("2026-07-28") as client:
            await opens_again(client)
    finally:
        live.stop(hub)


@pytest.mark.req("B27")
async def test_a_page_whose_frames_have_hundreds_of_tools_leaves_others_theirs_and_nothing_behind(
    live_hub: LiveHub, shop: PageSite
) -> None:
    async with live_hub.mcp("legacy") as client:
        page = await PageTab.open(client, f"{shop.url}/pages/webmcp.html")
        await page.lists(*WEBMCP)
        before = live_hub.health()["toolCount"]
        flood = await PageTab.open(client, f"{shop.elsewhere}/flood")
        wanted = ["localhost offers 720 tools; Tabhub lists 200 of them."]
        await until_outside(lambda: live_hub.health()["pageNotices"] == wanted)
        assert live_hub.health()["toolCount"] == before + 200
        assert len(await flood.tools()) == 100
        await page.lists(*WEBMCP)
        assert result_text(await page.call("where")) == f"{shop.url}/pages/webmcp.html"
        await flood.close()
        await until_outside(lambda: live_hub.health()["toolCount"] == before)
        assert live_hub.health()["pageNotices"] == []


@pytest.mark.req("S000-spec-testing-05")
async def test_ten_tools_registered_together_are_all_listed_and_callable(live_hub: LiveHub, shop: PageSite) -> None:
    """How soon and how quickly is measured by bench/pages.py."""
    async with live_hub.mcp("2026-07-28") as client:
        page = await PageTab.open(client, f"{shop.url}/pages/empty.html")
        names = [f"t{n}" for n in range(10)]
        register = "document.modelContext.registerTool({name, description: name, execute: () => name})"
        await page.run(f"for (const name of {names}) {register}")
        tools = await page.lists(*names)
        for name in names:
            assert result_text(await client.call_tool(tools[name].name, {})) == name
