"""Tools of pages, from the page to the hub and back, in a real Chromium: all kinds of pages."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.extension.fakehub import Wire
from tests.extension.pagesite import PageSite
from tests.extension.pagetab import PageTab

OWN = ("add", "where", "fails", "hangs", "asks", "huge")
FORMS = ("search", "buy", "odd", "go")
CONFIRM = "browser/elicitConfirmation"
Opener = Callable[[str], Awaitable[PageTab]]


@pytest.mark.req("S000-page-server-02", "S000-proxy-02", "S000-spec-registration-02", "S000-messages-05")
async def test_tools_in_the_model_context_are_listed_called_updated_and_removed(visit: Opener, shop: PageSite) -> None:
    page = await visit("webmcp.html")
    reported = await page.reported(*OWN)
    assert reported["method"] == "browser/registerTools"
    assert (reported["frameId"], reported["origin"]) == (0, shop.url)
    assert reported["url"] == reported["tabUrl"] == f"{shop.url}/pages/webmcp.html"
    assert reported["title"] == "WebMCP"
    number = {"type": "number"}
    assert next(tool for tool in reported["tools"] if tool["name"] == "add") == {
        "name": "add",
        "title": "Adding",
        "description": "The tool add.",
        "inputSchema": {"type": "object", "properties": {"a": number, "b": number}, "required": ["a", "b"]},
        "annotations": {"readOnlyHint": True},
        "via": "webmcp",
    }
    answer = await page.call("add", a=2, b=40)
    assert answer["payload"]["structuredContent"] == {"sum": 42}
    await page.run("offer('more', () => 'more')")
    assert (await page.reported(*OWN, "more"))["method"] == "browser/updateTools"
    assert await page.text("more") == "more"
    await page.run("endings.more.abort()")
    await page.reported(*OWN)
    assert await page.call("more") == {"success": False, "payload": "The page no longer has a tool named more."}


async def test_methods_of_earlier_drafts_work(visit: Opener) -> None:
    page = await visit("empty.html")
    await page.run(
        "navigator.modelContext.provideContext({ tools: [{ name: 'old', description: 'Old.', execute: () => 'old' }] })"
    )
    await page.reported("old")
    assert await page.text("old") == "old"
    await page.run("void (ending = navigator.modelContext.registerTool({ name: 'older', execute: () => 1 }))")
    await page.reported("old", "older")
    await page.run("ending.unregister()")
    await page.reported("old")
    await page.run("navigator.modelContext.clearContext()")
    assert (await page.reported())["tools"] == []


async def test_the_model_context_follows_the_standard(visit: Opener) -> None:
    page = await visit("webmcp.html")
    assert await page.run("document.modelContext === navigator.modelContext")
    found = await page.run("document.modelContext.getTools().then(([{ window: _, ...rest }]) => rest)")
    assert (found["name"], found["inputSchema"]["required"]) == ("add", ["a", "b"])
    run = "document.modelContext.getTools().then(([add]) => document.modelContext.executeTool(add, %s))"
    assert await page.run(run % '{"a":1,"b":2}') == '{"sum":3}'
    assert await page.run(run % '\'{"a":1,"b":2}\'') == '{"sum":3}'
    refused = "document.modelContext.registerTool(%s).catch(error => error.name)"
    assert await page.run(refused % "{ name: 'add', execute() {} }") == "InvalidStateError"
    assert await page.run(refused % "{ name: '', execute() {} }") == "InvalidStateError"
    assert await page.run(refused % "{ name: 'x' }") == "TypeError"
    script = "new Promise(end => { document.modelContext.ontoolchange = () => end(1); offer('new', () => 1); })"
    assert await page.run(script) == 1


async def test_a_model_context_defined_by_the_page_is_used(visit: Opener) -> None:
    page = await visit("empty.html")
    await page.run(
        """void (document.modelContext = {
            getTools: async () => [{ name: 'theirs', description: 'Theirs.' }],
            executeTool: async (tool, input) => JSON.stringify({ got: JSON.parse(input) }),
        })"""
    )
    await page.reported("theirs")
    assert (await page.call("theirs", a=1))["payload"]["structuredContent"] == {"got": {"a": 1}}


@pytest.mark.req("S000-spec-transport-06")
async def test_an_error_has_its_message_and_a_result_that_is_too_large_is_refused(visit: Opener) -> None:
    page = await visit("webmcp.html")
    await page.reported(*OWN)
    assert await page.call("fails") == {"success": False, "payload": "The shelf is empty."}
    huge = await page.call("huge")
    assert not huge["success"]
    assert "larger than 1048576" in huge["payload"]


async def test_lone_surrogates_in_texts_of_a_page_are_replaced(visit: Opener) -> None:
    page = await visit("empty.html")
    await page.run(
        """(() => {
            const half = "a\\ud83db";
            const offer = (name, execute, description = "d", inputSchema = {}) =>
                document.modelContext.registerTool({ name, description, inputSchema, execute });
            const odd = { content: [{ type: "text", text: half }], structuredContent: { [half]: "\\\\ud83d 😀" } };
            offer("odd", () => odd, half, { description: half, properties: { [half]: {} } });
            offer("bare", () => half);
            offer("throws", () => { throw new Error(half); });
            offer("x\\udc00", () => 1);
            return 1;
        })()"""
    )
    tools = (await page.reported("odd", "bare", "throws"))["tools"]
    assert tools[0]["description"] == "a\ufffdb"
    assert tools[0]["inputSchema"] == {"description": "a\ufffdb", "properties": {"a\ufffdb": {}}}
    assert (await page.call("odd"))["payload"] == {
        "content": [{"type": "text", "text": "a\ufffdb"}],
        "structuredContent": {"a\ufffdb": "\\ud83d 😀"},
    }
    assert (await page.call("bare"))["payload"] == {"content": [{"type": "text", "text": "a\ufffdb"}]}
    assert await page.call("throws") == {"success": False, "payload": "a\ufffdb"}


async def test_cancelling_reaches_the_tool(wire: Wire, visit: Opener) -> None:
    page = await visit("webmcp.html")
    await page.reported(*OWN)
    number, reply = await page.start("hangs")
    await page.until("calls.includes('begun')")
    await wire.notify("cancel", id=number)
    assert (await reply)["error"]["code"] == -32010
    await page.until("calls.includes('stopped')")


@pytest.mark.parametrize("confirmed", [True, False])
async def test_a_tool_that_asks_for_confirmation_continues_only_if_confirmed(
    wire: Wire, visit: Opener, confirmed: bool
) -> None:
    wire.answers[CONFIRM] = {"confirmed": confirmed}
    page = await visit("webmcp.html")
    await page.reported(*OWN)
    before = len(wire.seen)
    answer = await page.call("asks")
    asked = await wire.notified(CONFIRM, after=before)
    assert (asked["tabId"], asked["frameId"], asked["toolName"]) == (page.tab, 0, "asks")
    assert answer["success"] is confirmed
    words = answer["payload"]["content"][0]["text"] if confirmed else answer["payload"]
    assert words == ("bought" if confirmed else "The person did not confirm.")


async def test_a_page_with_mcp_b_global_offers_each_tool_once(visit: Opener) -> None:
    page = await visit("global.html")
    reported = await page.reported("put_in_cart")
    assert reported["tools"][0]["inputSchema"]["required"] == ["item"]
    assert await page.text("put_in_cart", item="tea") == "put tea"
    await page.run("void more()")
    assert len((await page.reported("put_in_cart", "pay"))["tools"]) == 2
    assert await page.text("pay") == "paid"
    await page.run("ending.abort()")
    await page.reported("pay")


SHOP = ("price", "count", "waits", "order")


@pytest.mark.req(
    "S000-proxy-01",
    "S000-page-server-01",
    "S000-page-server-04",
    "S000-spec-registration-01",
    "S000-spec-registration-04",
)
async def test_a_server_of_the_official_sdk_over_mcp_b_is_listed_called_updated_and_ends(visit: Opener) -> None:
    page = await visit("transports.html")
    reported = await page.reported(*SHOP)
    assert reported["capabilities"] == {"browser": {"cacheSupported": True}}
    price = reported["tools"][0]
    assert (price["via"], price["annotations"]["cache"], price["inputSchema"]["required"]) == ("mcpb", True, ["item"])
    assert await page.text("price", item="tea") == "tea costs 7"
    await page.run("void more()")
    await page.reported(*SHOP, "late")
    assert await page.text("late") == "late"
    await page.run("end()")
    assert (await page.reported())["tools"] == []
    # A server after the first one is found as well.
    await page.run("void serve()")
    await page.reported(*SHOP)
    assert await page.text("price", item="jam") == "jam costs 7"


async def test_a_server_that_starts_late_is_found(visit: Opener) -> None:
    page = await visit("transports.html?later")
    await page.until("window.serve")
    await page.run("void serve()")
    await page.reported(*SHOP)
    assert await page.text("price", item="tea") == "tea costs 7"


async def test_progress_and_cancelling_pass_through_to_a_server_in_the_page(wire: Wire, visit: Opener) -> None:
    page = await visit("transports.html")
    await page.reported(*SHOP)
    number, reply = await page.start("count")
    assert (await reply)["result"]["payload"]["content"][0]["text"] == "three"
    progress = await wire.notified("tool.progress", dispatchId=number)
    assert progress == {"dispatchId": number, "progress": 1, "total": 3, "message": "one"}
    number, reply = await page.start("waits")
    await page.until("window.began")
    await wire.notify("cancel", id=number)
    assert (await reply)["error"]["code"] == -32010
    await page.until("window.stopped")


@pytest.mark.req("S000-spec-security-06")
@pytest.mark.parametrize(("confirmed", "text"), [(True, "ordered true"), (False, "decline")])
async def test_an_elicitation_of_a_server_in_the_page_reaches_the_hub(
    wire: Wire, visit: Opener, confirmed: bool, text: str
) -> None:
    wire.answers[CONFIRM] = {"confirmed": confirmed}
    page = await visit("transports.html")
    await page.reported(*SHOP)
    before = len(wire.seen)
    assert await page.text("order") == text
    asked = await wire.notified(CONFIRM, after=before)
    assert (asked["toolName"], asked["message"]) == ("order", "Order it?")


@pytest.mark.req("C2")
async def test_what_only_the_page_server_says_of_a_tool_is_listed_too(visit: Opener) -> None:
    page = await visit("transports.html")
    await page.reported(*SHOP)
    await page.run("void registerTotal()")
    reported = await page.reported(*SHOP, "total")
    while "outputSchema" not in (total := next(t for t in reported["tools"] if t["name"] == "total")):
        reported = await page.reported(*SHOP, "total")
    assert (total["via"], total["title"]) == ("webmcp", "The total")
    assert total["annotations"] == {"idempotentHint": True, "readOnlyHint": True}
    assert total["outputSchema"]["properties"] == {"sum": {"type": "number"}}
    assert (await page.call("total"))["payload"]["structuredContent"] == {"sum": 7}


@pytest.mark.req("C2")
async def test_prompts_and_resources_of_a_page_server_are_reported_and_requested(visit: Opener) -> None:
    page = await visit("transports.html?later")
    await page.until("window.serve")
    await page.run("void serve(true)")
    reported = await page.reported(*SHOP, "prompt:greet", "resource:shop://list")
    greet, shelf = (tool for tool in reported["tools"] if "kind" in tool)
    assert greet == {
        "name": "prompt:greet",
        "kind": "prompt",
        "title": "Greeting",
        "description": "Greets.",
        "inputSchema": {"type": "object", "properties": {"who": {"type": "string"}}, "required": ["who"]},
        "via": "mcpb",
    }
    assert (shelf["kind"], shelf["title"], shelf["annotations"]) == ("resource", "list", {"mimeType": "text/plain"})
    answer = (await page.call("prompt:greet", who="Anna"))["payload"]["structuredContent"]
    assert answer["messages"][0]["content"]["text"] == "Greet Anna."
    answer = (await page.call("resource:shop://list"))["payload"]["structuredContent"]
    assert answer["contents"] == [{"uri": "shop://list", "text": "tea, milk"}]


async def test_a_server_with_the_transport_of_2025_is_listed_called_updated_and_emptied(visit: Opener) -> None:
    page = await visit("transports2025.html")
    assert (await page.reported("price"))["tools"][0]["via"] == "mcpb"
    assert await page.text("price", item="tea") == "tea cost 5"
    await page.run("void more()")
    await page.reported("price", "news")
    await page.run("less()")
    await page.reported("news")


async def test_a_form_is_a_tool_whose_schema_comes_from_its_fields(visit: Opener) -> None:
    page = await visit("form.html")
    reported = await page.reported(*FORMS)
    search = next(tool for tool in reported["tools"] if tool["name"] == "search")
    assert search == {
        "name": "search",
        "description": "Searches the shop.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "q": {"type": "string", "pattern": "^(?:[a-z]+)$", "description": "What"},
                "most": {"type": "number", "minimum": 1, "maximum": 9, "description": "At most so many."},
                "sort": {"type": "string", "enum": ["price", "name"]},
                "size": {"type": "string", "enum": ["s", "l"]},
                "new": {"type": "boolean"},
            },
            "required": ["q"],
        },
        "via": "form",
    }


async def test_a_form_is_filled_in_and_submitted_and_the_page_responds(visit: Opener) -> None:
    page = await visit("form.html")
    await page.reported(*FORMS)
    values: dict[str, Any] = {"q": "tea", "most": 3, "sort": "name", "size": "l", "new": True}
    answer = await page.call("search", **values)
    found = {"q": "tea", "most": "3", "sort": "name", "size": "l", "new": "on", "token": "secret"}
    assert answer["payload"]["structuredContent"] == {"agent": True, "found": found}
    wrong = await page.call("search", q="TEA")
    assert not wrong["success"]
    assert wrong["payload"].startswith("The form is not valid: q:")
    assert await page.call("search", token="x") == {"success": False, "payload": "The form has no field named token."}
    for value in ("size", ["s"], None, 5):
        assert await page.call("search", q="tea", sort=value) == {
            "success": False,
            "payload": "The field sort cannot have that value.",
        }
    odd: dict[str, Any] = dict.fromkeys(("getAttribute", "elements", "requestSubmit", "__proto__"), "x")
    assert await page.text("odd", **odd) == "The form was submitted, and the page handled it itself."
    assert await page.text("go", x="1") == "The form was submitted to /pages/webmcp.html."
    await page.reported(*OWN)


@pytest.mark.parametrize("confirmed", [True, False])
async def test_a_form_without_autosubmit_is_submitted_only_if_confirmed(
    wire: Wire, visit: Opener, confirmed: bool
) -> None:
    wire.answers[CONFIRM] = {"confirmed": confirmed}
    page = await visit("form.html")
    await page.reported(*FORMS)
    answer = await page.call("buy", thing="tea")
    assert answer["success"] is confirmed
    assert await page.run("document.querySelector('[name=thing]').value") == "tea"
    assert await page.run("seen") == ([True] if confirmed else [])


async def test_added_and_removed_forms_are_detected(visit: Opener) -> None:
    page = await visit("empty.html")
    await page.run("document.body.innerHTML = '<form toolname=a tooldescription=b><input name=c></form>'")
    await page.reported("a")
    await page.run("document.forms[0].setAttribute('toolname', 'b')")
    await page.reported("b")
    await page.run("document.forms[0].remove()")
    await page.reported()


async def test_active_and_background_tabs_report_their_tools(wire: Wire, visit: Opener) -> None:
    page = await visit("webmcp.html")
    await page.reported(*OWN)
    assert await page.run("document.hidden")
    await wire.ask("activateTab", tabId=page.tab)
    await page.until("!document.hidden")
    for name in ("one", "two"):
        await page.run(f"offer('{name}', () => 1)")
    await page.reported(*OWN, "one", "two")
    await page.run("document.body.innerHTML = '<form toolname=a tooldescription=b></form>'")
    await page.reported(*OWN, "one", "two", "a")


@pytest.mark.req("S000-flows-04")
async def test_two_tabs_of_one_page_are_distinguished(visit: Opener) -> None:
    first, second = await asyncio.gather(visit("webmcp.html?1"), visit("webmcp.html?2"))
    await first.reported(*OWN)
    await second.reported(*OWN)
    assert (await first.text("where")).endswith("?1")
    assert (await second.text("where")).endswith("?2")


@pytest.mark.req("B19")
async def test_a_frame_of_another_origin_offers_its_own_tools(visit: Opener, shop: PageSite) -> None:
    page = await visit("framed.html")
    reported = await page.reported(*OWN, frame=None)
    assert reported["frameId"] != 0
    assert reported["origin"] == f"http://localhost:{shop.port}"
    assert reported["url"] == f"{reported['origin']}/pages/webmcp.html"
    assert reported["tabUrl"] == f"{shop.url}/pages/framed.html"
    assert await page.text("where", reported["frameId"]) == reported["url"]
    since = len(page.wire.seen)
    await page.run("document.querySelector('iframe').remove()")
    gone = await page.wire.notified("browser/disconnected", after=since, tabId=page.tab)
    assert gone == {"tabId": page.tab, "frameId": reported["frameId"], "documentId": reported["documentId"]}
