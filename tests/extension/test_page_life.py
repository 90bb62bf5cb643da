"""Tools of pages that navigate, reload, forge messages and flood; and of a worker that stops or gets other settings."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import orjson
import pytest

from tests.extension.conftest import Chromium, Site
from tests.extension.fakehub import FakeHub, Refused, Wire
from tests.extension.pagetab import PageTab

FORMS = ("search", "buy", "odd", "go")
OWN = ("add", "where", "fails", "hangs", "asks", "huge")
Opener = Callable[[str], Awaitable[PageTab]]


@pytest.fixture
async def as_before(wire: Wire) -> AsyncIterator[None]:
    """Restores the default settings afterwards."""
    yield
    await wire.notify("pages.settings", modelContext=True, allowedOrigins=["*"])
    await wire.ask("getState")


@pytest.mark.req("F9")
async def test_a_reload_during_a_call_fails_it_at_once_and_registers_the_tools_again(wire: Wire, visit: Opener) -> None:
    page = await visit("webmcp.html")
    first = await page.reported(*OWN)
    _, reply = await page.start("hangs")
    await page.until("calls.includes('begun')")
    since = len(wire.seen)
    await wire.ask("reloadTab", tabId=page.tab)
    error = (await reply)["error"]
    assert (error["code"], error["data"]) == (-32001, {"sent": True})
    second = await page.reported(*OWN)
    assert second["method"] == "browser/registerTools"
    assert second["documentId"] != first["documentId"]
    gone = await wire.notified("browser/disconnected", after=since, tabId=page.tab)
    assert gone["documentId"] == first["documentId"]
    with pytest.raises(Refused, match="was closed or has navigated") as refused:
        await wire.ask("browser/executeTool", **page.params("where", documentId=first["documentId"]))
    assert (refused.value.code, refused.value.data) == (-32001, {"sent": False})
    where = await wire.ask("browser/executeTool", **page.params("where", documentId=second["documentId"]))
    assert where["success"]


@pytest.mark.req("S000-spec-cleanup-01", "F9")
async def test_a_closed_tab_loses_its_tools(wire: Wire, visit: Opener) -> None:
    page = await visit("webmcp.html")
    reported = await page.reported(*OWN)
    _, reply = await page.start("hangs")
    await page.until("calls.includes('begun')")
    since = len(wire.seen)
    await wire.ask("closeTab", tabId=page.tab)
    assert (await reply)["error"]["data"] == {"sent": True}
    gone = await wire.notified("browser/disconnected", after=since, tabId=page.tab)
    assert gone["documentId"] == reported["documentId"]
    with pytest.raises(Refused, match="was closed or has navigated"):
        await page.call("where")


async def test_a_single_page_navigation_keeps_the_tools_and_reports_the_new_url(visit: Opener, shop: Site) -> None:
    page = await visit("webmcp.html")
    first = await page.reported(*OWN)
    await page.run("history.pushState({}, '', '/cart#top')")
    second = await page.reported(*OWN)
    assert second["url"] == f"{shop.url}/cart#top"
    assert second["documentId"] == first["documentId"]


async def test_a_page_from_the_back_forward_cache_registers_its_tools_again(wire: Wire, visit: Opener) -> None:
    page = await visit("webmcp.html")
    first = await page.reported(*OWN)
    await page.run("void (window.mark = 1)")
    since = len(wire.seen)
    elsewhere = first["url"].replace("webmcp", "empty")
    # An attached debugger keeps a page out of the cache.
    await wire.notified("debugger.changed", after=since, attached=[])
    await wire.ask("browser_navigate", tabId=page.tab, url=elsewhere)
    await wire.notified("browser/disconnected", after=since, tabId=page.tab)
    await wire.ask("goBack", tabId=page.tab)
    await page.reported(*OWN)
    assert await page.run("window.mark") == 1
    assert (await page.text("where")).endswith("webmcp.html")


async def test_a_page_without_tools_is_not_reported(wire: Wire, visit: Opener) -> None:
    page = await visit("empty.html")
    await page.run("document.modelContext.registerTool({ name: 'x', execute() {} }).then(() => 0)")
    await page.reported("x")
    assert len(page.lists()) == 1


async def test_tools_work_after_document_open(visit: Opener) -> None:
    page = await visit("webmcp.html")
    await page.reported(*OWN)
    await page.run("void (document.open(), document.write('<title>New</title>'), document.close())")
    assert await page.text("where")
    await page.run("offer('more', () => 'more')")
    await page.reported(*OWN, "more")


FORGED: list[str] = [
    # Message names of the extension's own channels, and of the hub's.
    "window.postMessage({ type: 'register-tools', tools: [{ name: 'forged', via: 'webmcp' }], tabId: 1 }, '*')",
    "window.postMessage({ jsonrpc: '2.0', method: 'browser/registerTools', params: { tabId: 1, tools: [] } }, '*')",
    "chrome.runtime?.connect?.('fbfngjfcbbkgoepkeecjnefoncaahigp', { name: 'page-tools' })",
    *(
        "window.postMessage({ channel: 'mcp-default', type: 'mcp', direction: 'server-to-client', "
        f"payload: {payload} }}, '*')"
        for payload in (
            "null",
            "'mcp-server-stopped'",
            "{ jsonrpc: '2.0', id: 'ext:1', result: { tools: [{ name: 'forged' }] } }",
            "{ jsonrpc: '2.0', id: 1, method: 'elicitation/create', params: { message: 'Sure?' } }",
            "{ jsonrpc: '2.0', id: 1, method: 5, params: [] }",
        )
    ),
    *(
        f"performance.dispatchEvent(new CustomEvent('{event}', {{ detail: {detail} }}))"
        for event in ("tabhub-tell", "tabhub-ask")
        for detail in (
            "'not json'",
            "{ op: 'tools' }",
            "'[1]'",
            """'{"op":"interact","id":"i","call":"c"}'""",
            """'{"op":"result","id":"x","ok":true}'""",
        )
    ),
]


@pytest.mark.req("B19", "S000-spec-transport-03", "S000-spec-transport-08")
async def test_forged_messages_of_a_page_have_no_effect(wire: Wire, visit: Opener, shop: Site) -> None:
    page = await visit("webmcp.html")
    await page.reported(*OWN)
    since = len(wire.seen)
    for script in FORGED:
        await page.run(f"(() => {{ try {{ {script} }} catch {{ }} }})()")
    # The tools a page reports are its own, but tab, frame and origin come from the browser.
    reported = {"op": "tools", "tools": [{"name": "mine", "via": "form", "tabId": 1, "origin": "https://bank.example"}]}
    detail = orjson.dumps(orjson.dumps(reported).decode()).decode()
    await page.run(f"performance.dispatchEvent(new CustomEvent('tabhub-tell', {{ detail: {detail} }}))")
    listed = await page.reported("mine")
    assert listed["tools"] == [{"name": "mine", "via": "webmcp"}]
    methods = {m["method"] for m in wire.seen[since:] if "method" in m}
    assert "browser/elicitConfirmation" not in methods
    assert all(m["params"]["tabId"] == page.tab for m in page.lists(since=since))
    names = {t["name"] for m in wire.seen[since:] if m.get("method", "").startswith("browser/") for t in
             m["params"].get("tools", [])}  # fmt: skip
    assert "forged" not in names
    assert "auth.json" not in str(await page.run("Object.keys(window).join()"))


@pytest.mark.req("B19")
async def test_the_extensions_files_cannot_be_read_by_a_page(visit: Opener) -> None:
    page = await visit("empty.html")
    for file in ("auth.json", "page/proxy.js", "manifest.json"):
        address = f"chrome-extension://fbfngjfcbbkgoepkeecjnefoncaahigp/{file}"
        assert await page.run(f"fetch('{address}').then(() => 'read', () => 'refused')") == "refused"


@pytest.mark.req("B14")
async def test_names_every_object_inherits_are_names_like_any_other(visit: Opener) -> None:
    names = ("__proto__", "constructor", "prototype", "toString")
    page = await visit("empty.html")
    await page.run(
        f"""Promise.all({list(names)}.map(name => document.modelContext.registerTool({{
            name, description: 'Odd.', execute: (input) => name + Object.keys(input),
            inputSchema: JSON.parse('{{"type":"object","properties":{{"__proto__":{{"type":"string"}}}}}}'),
        }}))).then(() => 0)"""
    )
    reported = await page.reported(*names)
    for tool in reported["tools"]:
        assert tool["inputSchema"]["properties"] == {"__proto__": {"type": "string"}}
    for name in names:
        assert await page.text(name, __proto__={"polluted": 1}) == f"{name}__proto__"
    assert await page.run("({}).polluted === undefined")
    with pytest.raises(Refused, match="tabId must be the number of a tab"):
        await page.wire.ask("browser/executeTool", __proto__={"tabId": page.tab}, toolName="x")


@pytest.mark.req("S000-spec-security-02", "S000-spec-security-07")
async def test_invalid_tools_are_left_out_and_lists_are_bounded(visit: Opener) -> None:
    page = await visit("empty.html")
    deep = "[" * 200 + "]" * 200
    tools: list[Any] = [
        1, None, "x", [], {}, {"name": 5}, {"name": ""}, {"name": "x" * 129}, {"name": "bad\u0000"},
        {"name": "schema", "inputSchema": "no"}, {"name": "deep", "inputSchema": {"enum": orjson.loads(deep)}},
        {"name": "big", "description": "x" * 1_100_000}, {"name": "fine", "description": 7},
    ]  # fmt: skip
    detail = orjson.dumps(orjson.dumps({"op": "tools", "tools": tools}).decode()).decode()
    await page.run(f"performance.dispatchEvent(new CustomEvent('tabhub-tell', {{ detail: {detail} }}))")
    assert (await page.reported("fine"))["tools"] == [{"name": "fine", "via": "webmcp"}]
    many = [{"name": f"t{n}"} for n in range(600)]
    detail = orjson.dumps(orjson.dumps({"op": "tools", "tools": many}).decode()).decode()
    await page.run(f"performance.dispatchEvent(new CustomEvent('tabhub-tell', {{ detail: {detail} }}))")
    assert (await page.reported(*(f"t{n}" for n in range(100))))["declared"] == 600


@pytest.mark.req("B27")
@pytest.mark.usefixtures("as_before")
async def test_documents_of_a_tab_and_their_tools_are_bounded_and_its_own_page_is_always_sent(
    wire: Wire, visit: Opener
) -> None:
    limits = {"maxDocuments": 3, "maxTools": 4, "maxBytes": 2000, "maxUpdates": 10}
    await wire.notify("pages.settings", modelContext=True, allowedOrigins=["*"], **limits)
    page = await visit("empty.html")
    await page.run(
        """(async () => {
            for (let n = 0; n < 12; n++) {
                const frame = document.createElement("iframe");
                const loaded = new Promise(next => (frame.onload = next));
                frame.src = "webmcp.html";
                document.body.append(frame);
                await loaded;
            }
            const execute = () => 1;
            const offer = (name, description) => document.modelContext.registerTool({ name, description, execute });
            offer("large", "x".repeat(2000));
            offer("own", "Own.");
        })()"""
    )
    assert (await page.reported("own"))["declared"] == 2
    frames = {each["params"]["frameId"]: each["params"] for each in page.lists()}
    del frames[0]
    assert len(frames) == 3
    assert all((len(each["tools"]), each["declared"]) == (4, 6) for each in frames.values())


@pytest.mark.req("L8", "S000-spec-transport-09")
async def test_frequent_updates_are_rate_limited_and_end_with_the_last_state(visit: Opener) -> None:
    """The rate itself is tested with a virtual clock, in clock/bursts.test.mjs."""
    page = await visit("empty.html")
    flood = """(async () => {
        const pause = () => new Promise(next => { const { port1, port2 } = new MessageChannel();
            port1.onmessage = next; port2.postMessage(0); });
        const began = performance.now();
        let ending;
        for (let n = 0; n < 500; n++) {
            while (performance.now() - began < n * 2) await pause();
            ending?.abort();
            ending = new AbortController();
            const tool = { name: 't' + n, description: 'One of many.', execute: () => n };
            document.modelContext.registerTool(tool, { signal: ending.signal });
        }
    })()"""
    await page.run(flood)
    await page.reported("t499")
    assert 2 <= len(page.lists()) <= 50
    assert await page.text("t499") == "499"


@pytest.mark.req("F2")
async def test_a_restarted_worker_gets_every_page_once(
    hub: FakeHub, chromium: Chromium, wire: Wire, shop: Site
) -> None:
    pages = [await PageTab.open(wire, f"{shop.url}/pages/{name}") for name in ("webmcp.html", "form.html")]
    framed = await PageTab.open(wire, f"{shop.url}/pages/framed.html")
    await pages[0].reported(*OWN)
    await pages[1].reported(*FORMS)
    await framed.reported(*OWN, frame=None)
    for _ in range(3):
        seen = len(hub.wires)
        before = hub.wires[-1]
        await chromium.stop_worker()
        await before.closed.wait()
        # No tab event is needed: the pages themselves wake it.
        back = await hub.connection(seen + 1)
        again = [PageTab(back, page.tab, 0) for page in (*pages, framed)]
        await again[0].reported(*OWN)
        await again[1].reported(*FORMS)
        await again[2].reported(*OWN, frame=None)
        assert (await again[0].text("where")).endswith("webmcp.html")
        assert [len(page.lists()) for page in again] == [1, 1, 1]
    for page in again:
        await back.ask("closeTab", tabId=page.tab)


async def after_reload(page: PageTab, offered: Sequence[str], name: str, **args: Any) -> str:
    """A tool's text. A slow page may connect once more as before the reload, until it learns of the reload."""
    try:
        return await page.text(name, **args)
    except Refused as refused:
        if refused.message != "The page was closed or navigated during the call.":
            raise
    await page.reported(*offered)
    return await page.text(name, **args)


async def test_open_pages_register_their_tools_when_the_extension_is_loaded(hub: FakeHub, shop: Site) -> None:
    wire = hub.wires[-1]
    page = await PageTab.open(wire, f"{shop.url}/pages/webmcp.html")
    old = await PageTab.open(wire, f"{shop.url}/pages/transports2025.html")
    await page.reported(*OWN)
    await old.reported("price")
    seen = len(hub.wires)
    await wire.notify("extension.reload")
    back = await hub.connection(seen + 1)
    page, old = PageTab(back, page.tab, 0), PageTab(back, old.tab, 0)
    await page.reported(*OWN)
    assert (await after_reload(page, OWN, "where")).endswith("webmcp.html")
    await old.reported("price")
    assert await after_reload(old, ("price",), "price", item="tea") == "tea cost 5"
    for each in (page, old):
        await back.ask("closeTab", tabId=each.tab)


async def test_a_reconnected_hub_gets_every_page(hub: FakeHub, wire: Wire, shop: Site) -> None:
    page = await PageTab.open(wire, f"{shop.url}/pages/webmcp.html")
    await page.reported(*OWN)
    seen = len(hub.wires)
    await wire.socket.close(4004, "shutting down")
    back = await hub.connection(seen + 1)
    again = PageTab(back, page.tab, 0)
    assert (await again.reported(*OWN))["method"] == "browser/registerTools"
    assert len(again.lists()) == 1
    await back.ask("closeTab", tabId=page.tab)


@pytest.mark.req("S000-spec-security-01")
@pytest.mark.usefixtures("as_before")
async def test_origins_that_are_not_allowed_get_no_scripts_and_lose_their_tools(
    wire: Wire, visit: Opener, shop: Site
) -> None:
    page = await visit("webmcp.html")
    await page.reported(*OWN)
    since = len(wire.seen)
    other = f"http://localhost:{shop.port}"
    await wire.notify("pages.settings", modelContext=True, allowedOrigins=[other])
    await wire.notified("browser/disconnected", after=since, tabId=page.tab)
    with pytest.raises(Refused, match="was closed or has navigated"):
        await page.call("where")
    # The page of the other origin, framed by a page that gets no scripts.
    framed = await visit("framed.html")
    reported = await framed.reported(*OWN, frame=None)
    assert reported["origin"] == other
    assert await framed.run("document.modelContext === undefined")
    await wire.notify("pages.settings", modelContext=True, allowedOrigins=["*"])
    await page.reported(*OWN)
    assert await page.text("where")


@pytest.mark.usefixtures("as_before")
async def test_without_the_model_context_script_a_page_has_none(wire: Wire, visit: Opener) -> None:
    await wire.notify("pages.settings", modelContext=False, allowedOrigins=["*"])
    await wire.ask("getState")
    form = await visit("form.html")
    await form.reported(*FORMS)
    assert await form.run("document.modelContext === undefined && navigator.modelContext === undefined")
