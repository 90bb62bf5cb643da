"""Page tools on the whole road: pages in a real Chromium declare them, agents with the official client use them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client
from mcp.client.subscriptions import ToolsListChanged
from mcp.types import CallToolResult, ElicitResult, ToolListChangedNotification

from tests.e2e import live
from tests.e2e.live import DevTools, LiveHub
from tests.e2e.pagesite import PageSite, PageTab, data, of_site, prefix, said

ERAS = ("legacy", "2026-07-28")
OWN = ("add", "where", "fails", "hangs", "asks", "huge")
SHOP = ("price", "count", "waits", "order")
FORMS = ("search", "buy", "odd", "go")
NATIVE = "return Object.getOwnPropertyDescriptor(Document.prototype, 'modelContext')?.get.toString() ?? ''"


@pytest.fixture(scope="module")
def shop() -> Iterator[PageSite]:
    site = PageSite()
    yield site
    site.stop()


@pytest.fixture(autouse=True)
async def closed_tabs(live_hub: LiveHub, shop: PageSite) -> AsyncIterator[None]:
    """Each test begins without tabs of the site."""
    yield
    async with live.caller(live_hub) as agent:
        for tab in (await agent.get("browser_list_tabs"))["tabs"]:
            if tab["url"].startswith((shop.url, shop.elsewhere)):
                await agent.get("browser_close_tab", tabId=tab["tabId"])


@dataclass(frozen=True, slots=True)
class Kind:
    """One way in which a page offers tools: its page, what it does, and what is listed then."""

    path: str
    offers: tuple[str, ...]
    via: str
    call: tuple[str, dict[str, Any]]
    answers: Callable[[CallToolResult], bool]
    grow: str
    """Adds `added` and says something new of a tool."""
    added: str
    says: dict[str, str]
    shrink: str
    left: tuple[str, ...]
    framed: bool = field(default=False)


OFFER = "offer('more', () => 'more'); endings.add.abort(); offer('add', () => ({sum: 0}), {description: 'Adds anew.'});"
KINDS = {
    "mcp-b global": Kind(
        path="/pages/global.html",
        offers=("put_in_cart",),
        via="webmcp",
        call=("put_in_cart", {"item": "tea"}),
        answers=lambda result: said(result) == "put tea",
        grow="await more(); ending.abort(); window.again = new AbortController();"
        "await document.modelContext.registerTool({name: 'put_in_cart', description: 'Puts anew.', inputSchema, "
        "execute: async () => 'put'}, {signal: again.signal});",
        added="pay",
        says={"put_in_cart": "Puts anew."},
        shrink="again.abort()",
        left=("pay",),
    ),
    "mcp-b transports": Kind(
        path="/pages/transports.html",
        offers=SHOP,
        via="mcpb",
        call=("price", {"item": "tea"}),
        answers=lambda result: said(result) == "tea costs 7",
        grow="more(); change()",
        added="late",
        says={"price": "What an item costs today."},
        shrink="await end()",
        left=(),
    ),
    "model context": Kind(
        path="/pages/webmcp.html",
        offers=OWN,
        via="webmcp",
        call=("add", {"a": 2, "b": 40}),
        answers=lambda result: result.structured_content == {"sum": 42},
        grow=OFFER,
        added="more",
        says={"add": "Adds anew."},
        shrink="endings.more.abort()",
        left=OWN,
    ),
    "form": Kind(
        path="/pages/form.html",
        offers=FORMS,
        via="form",
        call=("search", {"q": "tea"}),
        answers=lambda result: (result.structured_content or {}).get("agent") is True,
        grow="document.forms[0].setAttribute('tooldescription', 'Looks.'); document.body.insertAdjacentHTML("
        "'beforeend', '<form id=new toolname=ask tooldescription=Asks. toolautosubmit onsubmit=\"event.preventDefault(); "
        "event.respondWith(Promise.resolve({asked: true}))\"></form>')",
        added="ask",
        says={"search": "Looks."},
        shrink="document.getElementById('new').remove()",
        left=FORMS,
    ),
    "frame": Kind(
        path="/framed",
        offers=OWN,
        via="webmcp",
        call=("add", {"a": 2, "b": 40}),
        answers=lambda result: result.structured_content == {"sum": 42},
        grow=f"drive(`{OFFER}`)",
        added="more",
        says={"add": "Adds anew."},
        shrink="document.querySelector('iframe').remove()",
        left=(),
        framed=True,
    ),
}


async def shows(client: Client, shop: PageSite, kind: Kind, via: str) -> None:
    """One kind of page: its tools are listed, called, updated, removed, and gone with their tab."""
    origin = shop.elsewhere if kind.framed else shop.url
    page = await PageTab.open(client, f"{shop.url}{kind.path}", origin)
    tools = await page.lists(*kind.offers)
    name, arguments = kind.call
    facts = (tools[name].meta or {})["tabhub/page"]
    assert (facts["via"], facts["origin"], facts["frameId"] != 0) == (via, origin, kind.framed)
    assert (tools[name].description or "").startswith(f"[{origin.partition('://')[2]} · tab {facts['tab']} · ")
    result = await page.call(name, **arguments)
    assert not result.is_error, said(result)
    assert kind.answers(result), result
    assert (result.meta or {})["tabhub/untrusted"] == {"origin": origin}

    await page.run(kind.grow)
    await page.lists(*kind.offers, kind.added, **kind.says)
    assert not (await page.call(kind.added)).is_error
    await page.run(kind.shrink)
    await page.lists(*kind.left)
    await page.close()
    await page.lists()


@pytest.mark.req(
    "S000-overview-01",
    "S000-overview-02",
    "S000-page-server-01",
    "S000-page-server-02",
    "S000-page-server-03",
    "S000-principles-01",
    "S000-principles-04",
    "S000-spec-architecture-01",
    "S000-spec-architecture-04",
    "S000-spec-routing-07",
    "S000-flows-01",
    "S000-flows-02",
    "S000-flows-03",
)
@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize("kind", KINDS)
async def test_each_kind_of_page_is_listed_called_updated_and_removed(
    live_hub: LiveHub, shop: PageSite, kind: str, mode: str
) -> None:
    async with live_hub.mcp(mode) as client:
        await shows(client, shop, KINDS[kind], KINDS[kind].via)


@pytest.mark.req("S000-page-server-01")
async def test_the_same_pages_where_the_browser_has_web_mcp_itself(tmp_path: Path, shop: PageSite) -> None:
    hub = live.start(tmp_path, TABHUB_BROWSER_ARGS="--enable-features=WebMCP")
    try:
        async with hub.mcp("2026-07-28") as client:
            page = await PageTab.open(client, f"{shop.url}/pages/webmcp.html")
            assert "[native code]" in await page.run(NATIVE)
            await page.close()
            for kind in ("model context", "form", "frame", "mcp-b global"):
                await shows(client, shop, KINDS[kind], "webmcp")
    finally:
        live.stop(hub)


@pytest.mark.req("S000-overview-08")
async def test_agents_of_both_eras_are_told_when_a_page_changes_its_tools(live_hub: LiveHub, shop: PageSite) -> None:
    told = asyncio.Event()

    async def hear(message: Any) -> None:
        if isinstance(message, ToolListChangedNotification):
            told.set()

    async with (
        live_hub.mcp("legacy", message_handler=hear) as first,
        live_hub.mcp("2026-07-28") as second,
        second.listen(tools_list_changed=True) as events,
    ):
        page = await PageTab.open(first, f"{shop.url}/pages/webmcp.html")
        await page.lists(*OWN)
        for client in (first, second):
            await client.list_tools()
        await page.run("offer('more', () => 'more')")
        wanted = f"{prefix(shop.url)}_tab1_more"
        async with asyncio.timeout(3):  # and not by asking again: what is not told of comes from the client's own cache
            while wanted not in [tool.name for tool in (await first.list_tools()).tools]:
                told.clear()
                await told.wait()
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
    "S000-spec-routing-09",
    "S000-spec-testing-02",
)
@pytest.mark.parametrize("mode", ERAS)
async def test_tabs_of_one_site_are_told_apart_by_name_and_without_a_tab_the_best_is_chosen(
    live_hub: LiveHub, devtools: DevTools, shop: PageSite, mode: str
) -> None:
    async with live_hub.mcp(mode) as client:
        anywhere = f"{prefix(shop.url)}_where"

        async def where() -> str:
            return said(await client.call_tool(anywhere, {}))

        first, second = [await PageTab.open(client, f"{shop.url}/pages/webmcp.html?{n}") for n in (1, 2)]
        other = await PageTab.open(client, f"{shop.elsewhere}/pages/webmcp.html?3")
        for number, page in enumerate((first, second, other), 1):
            tools = await page.lists(*OWN)
            assert tools["where"].name == f"{prefix(page.origin)}_tab{number % 3 or 1}_where"
            assert said(await page.call("where")) == f"{page.origin}/pages/webmcp.html?{number}"
        assert (await where()).endswith("?2")
        await first.run("offer('more', () => 'more')")
        await first.lists(*OWN, "more")
        assert (await where()).endswith("?1")
        (target,) = await devtools.targets("page", f"{shop.url}/pages/webmcp.html?2")
        await devtools.send("Target.activateTarget", targetId=target)
        await second.lists(*OWN, where="active tab")
        assert (await where()).endswith("?2")
        await second.close()
        await second.lists()
        assert (await where()).endswith("?1")
        await first.close()
        await first.lists()
        assert said(await other.call("where")).endswith("?3")


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
async def test_a_page_that_goes_under_a_call_fails_it_within_a_second_and_it_runs_once(
    live_hub: LiveHub, devtools: DevTools, shop: PageSite, ending: str
) -> None:
    url, hits = f"{shop.url}/counted?{ending}", f"/hit/order{ending}"
    async with live_hub.mcp("legacy") as client:
        page = await PageTab.open(client, url)
        await page.lists("order", "look")
        call = asyncio.create_task(page.call("order"))
        await shop.asked(hits)
        began = time.monotonic()
        await ENDINGS[ending](page, devtools, url)
        result = await call
        assert time.monotonic() - began <= 1
        assert result.is_error
        assert f"page of {shop.url}" in said(result)
        await page.lists(*(("order", "look") if ending == "reloaded" else ()))
        assert shop.count(hits) == 1


@pytest.mark.req("S000-spec-routing-14")
async def test_a_call_that_only_reads_goes_on_in_another_tab(live_hub: LiveHub, shop: PageSite) -> None:
    async with live_hub.mcp("2026-07-28") as client:
        pages = [await PageTab.open(client, f"{shop.url}/counted{more}") for more in ("", "?never")]
        for page in pages:
            await page.lists("order", "look")
        call = asyncio.create_task(client.call_tool(f"{prefix(shop.url)}_look", {}))
        await shop.asked("/hit/looknever")
        await pages[1].close()
        assert said(await call) == f"done at {shop.url}/counted"
        assert (shop.count("/hit/looknever"), shop.count("/hit/look")) == (1, 1)


@pytest.mark.req("S000-extensibility-03", "S000-spec-security-06")
@pytest.mark.parametrize("mode", ERAS)
async def test_what_a_page_wants_confirmed_reaches_the_agents_person(
    live_hub: LiveHub, shop: PageSite, mode: str
) -> None:
    asked: list[str] = []

    async def agree(context: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action="accept", content={})

    async with live_hub.mcp(mode, elicitation_callback=agree) as client:
        page = await PageTab.open(client, f"{shop.url}/pages/transports.html")
        await page.lists(*SHOP)
        assert said(await page.call("order")) == "ordered true"
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
async def test_a_cached_tool_outlives_its_tab_and_the_hub_and_opens_its_page_again(
    tmp_path: Path, shop: PageSite
) -> None:
    url, name = f"{shop.url}/pages/transports.html", f"{prefix(shop.url)}_price"

    async def opens_again(client: Client) -> None:
        assert list(await of_site(client, shop.url)) == [name]
        result = await client.call_tool(name, {"item": "jam"})
        assert said(result) == "jam costs 7"
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


@pytest.mark.req("S000-spec-testing-05")
async def test_ten_tools_are_listed_soon_and_a_call_is_quick(live_hub: LiveHub, shop: PageSite) -> None:
    async with live_hub.mcp("2026-07-28") as client:
        page = await PageTab.open(client, f"{shop.url}/pages/empty.html")
        names = [f"t{n}" for n in range(10)]
        register = "document.modelContext.registerTool({name, description: name, execute: () => name})"
        await page.run(f"for (const name of {names}) {register}")
        began = time.monotonic()
        tools = await page.lists(*names)
        assert time.monotonic() - began < 0.6  # 100 ms, and the 500 ms for which the page's changes are gathered
        times = []
        for name in names:
            began = time.monotonic()
            assert said(await client.call_tool(tools[name].name, {})) == name
            times.append(time.monotonic() - began)
        assert sorted(times)[5] < 0.5
