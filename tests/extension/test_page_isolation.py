"""The connection between a page and its proxy, and the isolation of the page from everything else."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import orjson
import pytest

from tests.extension.conftest import Chromium
from tests.extension.fakehub import Wire
from tests.extension.pagesite import PageSite
from tests.extension.pagetab import PageTab

Opener = Callable[[str], Awaitable[PageTab]]
InWorker = Callable[[str], Awaitable[Any]]
OWN = ("add", "where", "fails", "hangs", "asks", "huge")
SERVED = ("price", "count", "waits", "order")

COUNT_PORTS = """
  self.portsOf ??= new Map();
  chrome.runtime.onConnect.addListener((port) => {
    const tab = port.sender.tab.id;
    const seen = self.portsOf.get(tab) ?? { opened: 0, ended: 0 };
    self.portsOf.set(tab, seen);
    seen.opened += 1;
    port.onDisconnect.addListener(() => (seen.ended += 1));
  });
"""
LISTEN = """
  window.seen = [];
  window.addEventListener("message", ({ data }) => window.seen.push(JSON.stringify(data)));
"""
EARS = """
  window.events = [];
  for (const name of ["message", "storage", "error", "hashchange"])
    window.addEventListener(name, (event) => window.events.push(`${name} ${JSON.stringify(event.data ?? event.key)}`));
  window.channel = new BroadcastChannel("tabhub");
  window.channel.onmessage = ({ data }) => window.events.push(`broadcast ${JSON.stringify(data)}`);
"""
REACH = """(() => {
  const apis = ["tabs", "debugger", "scripting", "storage", "windows", "webNavigation", "alarms", "tabGroups"];
  const there = (name) => globalThis.chrome?.[name] !== undefined || globalThis.browser?.[name] !== undefined;
  const found = apis.filter(there);
  const calls = ["connect", "sendMessage"].filter((name) => typeof globalThis.chrome?.runtime?.[name] === "function");
  return { found, calls, id: globalThis.chrome?.runtime?.id ?? null };
})()"""
NAMES = """JSON.stringify([
  Object.getOwnPropertyNames(globalThis).filter((name) => isNaN(name)).sort(),
  Object.getOwnPropertyNames(Document.prototype).sort(),
  Object.getOwnPropertyNames(Navigator.prototype).sort(),
])"""


@pytest.fixture
async def in_worker(chromium: Chromium) -> AsyncIterator[InWorker]:
    """Runs an expression in the extension's service worker."""
    targets = (await chromium.devtools("Target.getTargets"))["targetInfos"]
    worker = next(t for t in targets if t["type"] == "service_worker" and t["url"].endswith("/background.js"))
    session = (await chromium.devtools("Target.attachToTarget", targetId=worker["targetId"], flatten=True))["sessionId"]

    async def run(expression: str) -> Any:
        answer = await chromium.devtools(
            "Runtime.evaluate", session=session, expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    yield run
    await chromium.devtools("Target.detachFromTarget", sessionId=session)


async def listening(chromium: Chromium, wire: Wire, url: str, script: str) -> PageTab:
    """A page that runs our script before any of its own."""
    since = len(wire.seen)
    empty = f"data:text/html,<title>{since}</title>"
    tab = (await wire.ask("createTab", url=empty))["tabId"]
    targets = (await chromium.devtools("Target.getTargets"))["targetInfos"]
    (target,) = [each["targetId"] for each in targets if each["url"] == empty]
    session = (await chromium.devtools("Target.attachToTarget", targetId=target, flatten=True))["sessionId"]
    await chromium.devtools("Page.enable", session=session)
    await chromium.devtools("Page.addScriptToEvaluateOnNewDocument", session=session, source=script)
    await wire.ask("browser_navigate", tabId=tab, url=url)
    return PageTab(wire, tab, since)


@pytest.mark.req("S000-proxy-03", "S000-spec-transport-02")
async def test_a_page_has_one_session_with_its_proxy_and_one_port_that_lives_as_long_as_the_page(
    chromium: Chromium, wire: Wire, shop: PageSite, in_worker: InWorker
) -> None:
    await in_worker(COUNT_PORTS)
    page = await listening(chromium, wire, f"{shop.url}/pages/transports.html", LISTEN)
    await page.reported(*SERVED)
    for item in ("tea", "salt", "rice"):
        assert await page.text("price", item=item) == f"{item} costs 7"
    await page.run("void window.more()")
    await page.reported(*SERVED, "late")
    await page.run("history.pushState({}, '', '#elsewhere')")
    await page.reported(*SERVED, "late")
    assert await page.text("late") == "late"
    methods = [orjson.loads(text)["payload"] for text in await page.run("window.seen")]
    begun = [m for m in methods if isinstance(m, dict) and m.get("method") == "initialize"]
    assert len(begun) == 1
    assert await in_worker(f"self.portsOf.get({page.tab})") == {"opened": 1, "ended": 0}
    await wire.ask("closeTab", tabId=page.tab)
    await wire.notified("browser/disconnected", tabId=page.tab)
    assert await in_worker(f"self.portsOf.get({page.tab})") == {"opened": 1, "ended": 1}


@pytest.mark.req("S000-messages-07")
async def test_page_and_proxy_speak_base_mcp_and_nothing_else(chromium: Chromium, wire: Wire, shop: PageSite) -> None:
    page = await listening(chromium, wire, f"{shop.url}/pages/transports.html", LISTEN)
    await page.reported(*SERVED)
    assert await page.text("price", item="tea") == "tea costs 7"
    assert await page.text("count") == "three"
    number, reply = await page.start("waits")
    await page.until("window.began")
    await wire.notify("cancel", id=number)
    await reply
    await page.until("window.stopped")
    await page.run("void window.more()")
    await page.reported(*SERVED, "late")
    asked: dict[Any, str] = {}
    methods: set[str] = set()
    for text in await page.run("window.seen"):
        wrapped = orjson.loads(text)
        assert wrapped.keys() == {"channel", "type", "direction", "payload"}, wrapped
        assert (wrapped["channel"], wrapped["type"]) == ("mcp-default", "mcp")
        payload = wrapped["payload"]
        if payload in ("mcp-check-ready", "mcp-server-ready", "mcp-server-stopped"):
            continue  # how the transport finds its counterpart
        assert payload["jsonrpc"] == "2.0"
        if "method" in payload:
            methods.add(payload["method"])
            assert payload.keys() <= {"jsonrpc", "id", "method", "params"}
            asked[payload.get("id")] = payload["method"]
        else:
            assert payload.keys() <= {"jsonrpc", "id", "result", "error"}
            assert payload["id"] in asked
    assert methods == {
        "initialize",
        "notifications/initialized",
        "tools/list",
        "tools/call",
        "notifications/tools/list_changed",
        "notifications/progress",
        "notifications/cancelled",
    }


@pytest.mark.req("S000-principles-03", "S000-security-02")
async def test_calls_in_one_tab_are_not_visible_to_other_pages_and_do_not_identify_the_agent(
    chromium: Chromium, wire: Wire, shop: PageSite
) -> None:
    same = await listening(chromium, wire, f"{shop.url}/pages/webmcp.html", EARS)
    other = await listening(chromium, wire, f"http://localhost:{shop.port}/pages/webmcp.html", EARS)
    called = await listening(chromium, wire, f"{shop.url}/pages/webmcp.html", EARS)
    for page in (same, other, called):
        await page.reported(*OWN)
    await called.run(
        "void offer('tells', function (input, client) { return JSON.stringify({ input, given: arguments.length }); })"
    )
    await called.reported(*OWN, "tells")
    before = [await page.run("window.events") for page in (same, other)]
    answer = await wire.ask(
        "browser/executeTool",
        **called.params("tells", args={"a": 1}),
        _meta={"io.example/agent": "secret-agent"},
        extensions={"token": "secret-token"},
    )
    received = orjson.loads(answer["payload"]["content"][0]["text"])
    assert received["input"] == {"a": 1}
    assert "secret" not in orjson.dumps(answer).decode()
    assert await called.text("add", a=1, b=2) == '{"sum":3}'
    assert [await page.run("window.events") for page in (same, other)] == before
    for page in (same, other):
        assert await page.run("calls") == []
        listed = await page.run("document.modelContext.getTools().then((tools) => tools.map((tool) => tool.name))")
        assert sorted(listed) == sorted(OWN)


@pytest.mark.req("S000-spec-security-03")
async def test_a_page_finds_no_browser_api_and_its_tools_run_in_the_page(visit: Opener) -> None:
    page = await visit("webmcp.html")
    await page.reported(*OWN)
    assert await page.run(REACH) == {"found": [], "calls": [], "id": None}
    await page.run(f"void offer('reach', () => JSON.stringify({REACH}))")
    await page.reported(*OWN, "reach")
    assert orjson.loads(await page.text("reach")) == {"found": [], "calls": [], "id": None}
    await page.run("void offer('mark', () => { window.marked = location.origin; return window.marked; })")
    await page.reported(*OWN, "reach", "mark")
    assert await page.text("mark") == await page.run("window.marked")


@pytest.mark.req("S000-spec-security-03")
async def test_the_extension_adds_nothing_to_a_page_but_the_model_context(wire: Wire, visit: Opener) -> None:
    page = await visit("empty.html")
    with_us = orjson.loads(await page.run(NAMES))
    await wire.notify("pages.settings", modelContext=True, allowedOrigins=["https://nowhere.example"])
    try:
        await wire.ask("getState")
        await wire.ask("reloadTab", tabId=page.tab)
        without = orjson.loads(await page.run(NAMES))
    finally:
        await wire.notify("pages.settings", modelContext=True, allowedOrigins=["*"])
        await wire.ask("getState")
    added = [sorted(set(ours) - set(theirs)) for ours, theirs in zip(with_us, without, strict=True)]
    assert added[0] == []
    assert added[1] == ["modelContext"]
    assert added[2] in ([], ["modelContext"])


@pytest.mark.req("S000-proxy-04")
async def test_the_proxy_of_a_frame_reports_and_runs_only_its_own_tools(visit: Opener) -> None:
    page = await visit("framed.html")
    inner = await page.reported(*OWN, frame=None)
    since = len(page.wire.seen)
    await page.run(
        "void document.modelContext.registerTool("
        "{ name: 'outer', description: 'Of the page around.', execute: () => location.pathname })"
    )
    outer = await page.reported("outer")
    assert (outer["frameId"], outer["documentId"] != inner["documentId"]) == (0, True)
    assert [m["params"]["frameId"] for m in page.lists(since=since)] == [0], "the other frame was not reported again"
    assert await page.text("outer") == "/pages/framed.html"
    for name, frame in (("where", 0), ("outer", inner["frameId"])):
        answer = await page.call(name, frame)
        assert not answer["success"]
        assert f"no longer has a tool named {name}" in answer["payload"]
