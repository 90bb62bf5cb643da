"""Tools of pages in a Chromium with native WebMCP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from tests.extension.conftest import Chromium
from tests.extension.fakehub import FakeHub, Wire
from tests.extension.pagetab import PageTab

FORMS = ("search", "buy", "odd", "go")
OWN = ("add", "where", "fails", "hangs", "asks", "huge")
Opener = Callable[[str], Awaitable[PageTab]]


@pytest.fixture(scope="module")
async def chromium(hub: FakeHub, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Chromium]:
    browser = Chromium(tmp_path_factory.mktemp("chromium"), hub, debuggerIdleMs=1500)
    browser.more_switches = ("--enable-features=WebMCP",)
    # Intervals of a minute are shortened to less than a second.
    proxy = browser.extension / "page" / "proxy.js"
    proxy.write_text(proxy.read_text().replace("60_000", "700"))
    await browser.start()
    yield browser
    await browser.stop()


async def test_the_browsers_own_web_mcp_is_used(visit: Opener) -> None:
    page = await visit("webmcp.html")
    reported = await page.reported(*OWN)
    getter = "Object.getOwnPropertyDescriptor(Document.prototype, 'modelContext').get.toString()"
    assert "[native code]" in await page.run(getter)
    add = next(tool for tool in reported["tools"] if tool["name"] == "add")
    assert (add["via"], add["annotations"]["readOnlyHint"]) == ("webmcp", True)
    assert add["inputSchema"]["required"] == ["a", "b"]
    assert (await page.call("add", a=2, b=40))["payload"]["structuredContent"] == {"sum": 42}
    assert await page.text("where") == reported["url"]
    assert not (await page.call("fails"))["success"]
    await page.run("offer('more', () => 'more')")
    await page.reported(*OWN, "more")
    await page.run("endings.more.abort()")
    await page.reported(*OWN)


async def test_cancelling_ends_the_call(wire: Wire, visit: Opener) -> None:
    page = await visit("webmcp.html")
    await page.reported(*OWN)
    number, reply = await page.start("hangs")
    await page.until("calls.includes('begun')")
    await wire.notify("cancel", id=number)
    assert (await reply)["error"]["code"] == -32010
    assert await page.text("where")


async def test_an_empty_list_and_a_slow_page_do_not_delay_later_lists(visit: Opener) -> None:
    page = await visit("empty.html")
    await page.run("document.modelContext.registerTool({ name: 'a', description: 'A.', execute: () => 'a' })")
    await page.reported("a")
    assert await page.text("a") == "a"


async def test_a_page_with_mcp_b_global_offers_each_tool_once(visit: Opener) -> None:
    page = await visit("global.html")
    reported = await page.reported("put_in_cart")
    while reported["tools"][0]["via"] != "webmcp":  # MCP-B's own tools may be reported first, and are then replaced
        reported = await page.reported("put_in_cart")
    assert await page.text("put_in_cart", item="tea") == "put tea"


async def test_a_page_that_looks_for_the_context_of_earlier_drafts_offers_its_tools(visit: Opener) -> None:
    page = await visit("empty.html")
    assert await page.run("typeof navigator.modelContext") == "object"
    await page.run(
        "navigator.modelContext.provideContext({ tools: [{ name: 'old', description: 'Old.', execute: () => 'old' }] })"
    )
    await page.reported("old")
    assert await page.text("old") == "old"


@pytest.mark.req("C2")
async def test_a_polyfill_in_the_navigator_is_found(visit: Opener) -> None:
    page = await visit("empty.html")
    await page.run(
        "void (navigator.modelContext = Object.assign(new EventTarget(), {"
        " getTools: async () => [{ name: 'own', description: 'Own.' }],"
        " executeTool: async () => JSON.stringify('from the polyfill') }))"
    )
    await page.reported("own")
    assert await page.text("own") == "from the polyfill"


@pytest.mark.req("S000-spec-registration-05", "S000-spec-registration-10")
async def test_a_server_without_notifications_is_polled_and_reported_on_changes_only(visit: Opener) -> None:
    page = await visit("quiet.html")
    assert (await page.reported())["method"] == "browser/updateTools"
    await page.run("void (names = ['a', 'b', 'c'])")
    reported = await page.reported("a", "b", "c")
    assert reported["method"] == "browser/registerTools"
    asked = await page.run("asked")
    await page.until(f"asked > {asked} + 3")
    assert len(page.lists()) == 2
    assert (await page.call("a"))["payload"] == {"content": [], "_meta": {"given": "a"}}
    assert await page.call("c") == {"success": False, "payload": "No such thing."}


async def test_forms_are_listed_as_the_browser_describes_them(visit: Opener) -> None:
    page = await visit("form.html")
    reported = await page.reported(*FORMS)
    assert {tool["via"] for tool in reported["tools"]} == {"webmcp"}
    answer = await page.call("search", q="tea")
    assert answer["success"], answer
    assert answer["payload"]["structuredContent"]["agent"] is True


async def test_a_frame_reports_only_its_own_tools(visit: Opener) -> None:
    page = await visit("framed.html")
    reported = await page.reported(*OWN, frame=None)
    assert reported["frameId"] != 0
    assert await page.text("where", reported["frameId"]) == reported["url"]
    assert {m["params"]["frameId"] for m in page.lists()} == {reported["frameId"]}
