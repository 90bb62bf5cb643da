"""What agents over a relay get at the levels `block` and `read`, and which rule decides: a real Chromium and relay."""

from __future__ import annotations

import asyncio
import base64
import json
import random
from typing import Any, cast

import pytest

from tabhub.config.sites import SiteLevel, SitePattern
from tabhub.errors import SetupError
from tabhub.trust.site_rules import SiteRule, SiteRules
from tabhub.wire.browser_commands import COMMANDS
from tests.extension.conftest import Site
from tests.extension.fakehub import Wire
from tests.extension.test_relay import Ask, answered, connected, panel, relay, state
from tests.harness.waiting import LONG, eventually, until
from tests.relay.engines.httpworld import http_relay
from tests.relay.independent import IndependentAgent
from tests.relay.world import RunningRelay, token

__all__ = ["panel", "relay"]

SECRETS = ["hunter2-SECRET", "4111111111111111", "734921", "LSTOKEN-123", "COOKIE-777"]
SECRET_PAGE = """
document.title = "Login";
document.body.innerHTML = `
  <input id=password type=password value="hunter2-SECRET">
  <input id=card autocomplete="section-a cc-number" value="4111111111111111">
  <input id=code autocomplete=one-time-code value="734921"><div id=host></div>`;
for (const field of document.querySelectorAll("input")) field.value = field.getAttribute("value");
const root = document.getElementById("host").attachShadow({ mode: "closed" });
root.innerHTML = "<input type=password value=hunter2-SECRET><input name=user_otp value=734921>";
const fields = [...document.querySelectorAll("input"), ...root.children];
window.fill = (text) => fields.forEach((field) => (field.value = text));
localStorage.token = "LSTOKEN-123";
document.cookie = "sid=COOKIE-777";
"""
FIELDS = (
    "[...document.querySelectorAll('input')].map((field) => field.value).join() + localStorage.token + document.cookie"
)


def cdp(method: str, **params: Any) -> tuple[str, dict[str, Any]]:
    return "forwardCDPCommand", {"method": method, "params": params}


READS: list[tuple[str, dict[str, Any]]] = [
    cdp("Runtime.evaluate", expression=FIELDS, throwOnSideEffect=True, returnByValue=True),
    cdp("Runtime.evaluate", expression=FIELDS, returnByValue=True),
    cdp("Runtime.callFunctionOn", functionDeclaration=f"() => {FIELDS}", throwOnSideEffect=True),
    cdp("Runtime.getProperties", objectId="1"),
    cdp("DOM.getDocument", depth=-1, pierce=True),
    cdp("DOM.getFlattenedDocument", depth=-1, pierce=True),
    cdp("DOM.querySelector", nodeId=1, selector="input[value^=hunter2]"),
    cdp("DOM.querySelectorAll", nodeId=1, selector="input[value^=hunter2]"),
    cdp("DOM.performSearch", query="hunter2-SECRET", includeUserAgentShadowDOM=True),
    *(cdp(f"DOM.{name}", backendNodeId=number) for name in ("describeNode", "getOuterHTML") for number in range(1, 30)),
    *(cdp("DOM.getAttributes", nodeId=number) for number in range(1, 30)),
    *(cdp("Accessibility.getPartialAXTree", backendNodeId=number) for number in range(1, 30)),
    cdp("DOM.resolveNode", backendNodeId=8),
    cdp("DOMSnapshot.captureSnapshot", computedStyles=[]),
    cdp("Accessibility.getFullAXTree"),
    cdp("Accessibility.getRootAXNode"),
    cdp("Accessibility.queryAXTree", role="textbox"),
    cdp("DOMStorage.getDOMStorageItems", storageId={"isLocalStorage": True, "securityOrigin": "{site}"}),
    cdp("Storage.getCookies"),
    cdp("Network.getCookies"),
    cdp("Network.getAllCookies"),
    cdp("Page.getResourceContent", frameId="{frame}", url="{site}/"),
    cdp("Page.captureSnapshot"),
    cdp("Page.printToPDF"),
    cdp("Page.startScreencast"),
    ("getCookies", {"url": "{site}/"}),
    ("searchHistory", {"text": ""}),
    ("subscribeCDPEvents", {"events": ["DOM.attributeModified"]}),
    ("subscribeCDPEvents", {"events": ["Accessibility.nodesUpdated"]}),
    ("subscribeCDPEvents", {"events": ["Runtime.consoleAPICalled"]}),
    ("subscribeCDPEvents", {"events": ["Network."]}),
    ("forwardCDPCommand", {"method": "Page.enable", "ahead": [{"method": "Page.startScreencast", "params": {}}]}),
]
LOOKS = [
    ("getTabs", {}),
    cdp("Page.getLayoutMetrics"),
    cdp("Page.captureScreenshot"),
    ("screenshot", {}),
    ("subscribeCDPEvents", {"events": ["Page.frameNavigated"]}),
]


def filled(value: Any, url: str) -> Any:
    return json.loads(json.dumps(value).replace("{site}", url))


async def opened(wire: Wire, url: str, script: str = "1") -> int:
    made: int = (await wire.ask("createTab", url=url, waitUntil="load"))["tabId"]
    await wire.cdp(made, "Runtime.evaluate", expression=script)
    return made


async def test_looking_gives_neither_fields_nor_storage(
    relay: RunningRelay, panel: Ask, wire: Wire, site: Site
) -> None:
    made = await opened(wire, f"{site.url}/", SECRET_PAGE)
    await connected(panel, relay, level="read")
    async with IndependentAgent(relay.url, token()) as agent:
        await agent.ready()
        for method, params in READS:
            refused = await agent.error(method, {"tabId": made, **filled(params, site.url)})
            assert "may only look" in refused["message"], (method, params)
        for method, params in LOOKS:
            async with asyncio.timeout(LONG):
                assert await agent.result(method, {"tabId": made, **params}) is not None
        assert "Login" in str(agent.received)
        assert not [secret for secret in SECRETS if secret in str(agent.received)]
    await panel("relay.set", level="ask")
    async with IndependentAgent(relay.url, token()) as agent:
        await agent.ready()
        method, params = READS[0]
        reading = await agent.begin(method, {"tabId": made, **params})
        assert (await answered(panel, allow=False))["site"] == site.url
        assert "did not allow" in (await reading)["error"]["message"]
    await wire.ask("closeTab", tabId=made)


@pytest.mark.parametrize("method", ["screenshot", "Page.captureScreenshot"])
async def test_pictures_show_secret_fields_only_to_agents_that_may_act(
    relay: RunningRelay, panel: Ask, wire: Wire, site: Site, method: str
) -> None:
    made = await opened(wire, f"{site.url}/", SECRET_PAGE)
    await wire.ask("activateTab", tabId=made)  # a tab in the background draws nothing
    await connected(panel, relay, level="read")
    command = (method, {}) if method == "screenshot" else cdp(method)

    async def pictures(agent: IndependentAgent) -> list[str]:
        taken = []
        for text in ("hunter2-SECRET", "1"):
            await wire.cdp(made, "Runtime.evaluate", expression=f"fill('{text}')")
            taken.append((await agent.result(command[0], {"tabId": made, **command[1]}))["data"])
        return taken

    async with IndependentAgent(relay.url, token()) as agent:
        await agent.ready()
        one, other = await pictures(agent)
        assert base64.b64decode(one).startswith((b"\x89PNG", b"\xff\xd8"))
        assert one == other
        await panel("relay.set", level="act")
        one, other = await pictures(agent)
        assert one != other
        await panel("relay.set", level="ask")
        script, params = cdp("Runtime.evaluate", expression="1")
        acting = await agent.begin(script, {"tabId": made, **params})
        one, other = await pictures(agent)  # the person has not decided yet
        assert one == other
        await answered(panel, allow=True)
        assert "result" in await acting
        one, other = await pictures(agent)
        assert one != other
    await wire.ask("closeTab", tabId=made)


HIDDEN = "The person keeps agents over a relay off this site."
TRIES: list[tuple[str, dict[str, Any]]] = [
    ("screenshot", {}),
    ("selectTab", {}),
    ("activateTab", {}),
    ("closeTab", {}),
    ("reloadTab", {}),
    ("goBack", {}),
    ("goForward", {}),
    ("click", {"x": 5, "y": 5}),
    ("hover", {"x": 5, "y": 5}),
    ("type", {"text": "a"}),
    ("tool.dispatch", {"plugin": "a", "tool": "b", "input": {}, "dispatchId": "1"}),
    ("browser_navigate", {"url": "{site}/"}),
    ("browser/executeTool", {"name": "x", "args": {}}),
    ("subscribeCDPEvents", {"events": ["Page.frameNavigated"]}),
    ("subscribeCDPEvents", {"events": ["Network."]}),
    *(cdp(f"Page.{name}") for name in ("captureScreenshot", "getFrameTree", "getNavigationHistory", "reload")),
    cdp("Runtime.evaluate", expression="document.title"),
    cdp("DOM.getDocument"),
    cdp("Accessibility.getFullAXTree"),
    cdp("Network.getCookies"),
    cdp("Input.insertText", text="a"),
]
"""Commands on a tab of a hidden site."""
NAMED: list[tuple[str, dict[str, Any]]] = [
    ("createTab", {"url": "{bank}/other"}),
    ("createWindow", {"url": "{bank}/other"}),
    ("browser_navigate", {"url": "{bank}/other"}),
    ("downloadFile", {"url": "{bank}/other"}),
    ("getVisits", {"url": "{bank}/other"}),
    ("createBookmark", {"url": "{bank}/other", "title": "x"}),
    ("getCookies", {"url": "{bank}/"}),
    ("setCookie", {"url": "{bank}/", "name": "a", "value": "b"}),
    ("deleteCookies", {"url": "{bank}/", "name": "a"}),
    ("clearSiteData", {"origin": "{bank}", "cookies": True}),
    cdp("Page.navigate", url="{bank}/other"),
    cdp("Page.navigate", url="blob:{bank}/b2c3a0ae-8f4b-4c4c-8a0c-1d2e3f405060"),
    cdp("Page.navigate", url="view-source:{bank}/other"),
    cdp("Network.setExtraHTTPHeaders", headers={"Referer": "{bank}/"}),
    (
        "forwardCDPCommand",
        {"method": "Page.enable", "ahead": [{"method": "Page.navigate", "params": {"url": "{bank}/"}}]},
    ),
]
"""Commands elsewhere that name a hidden site."""
BEYOND: list[tuple[str, dict[str, Any]]] = [
    cdp("Network.getAllCookies"),
    cdp("Network.clearBrowserCookies"),
    cdp("Network.getCookies", urls=["{bank}/"]),
    cdp("Network.loadNetworkResource", url="{bank}/other", options={"disableCache": True, "includeCredentials": True}),
    cdp("DOMStorage.getDOMStorageItems", storageId={"isLocalStorage": True, "securityOrigin": "{bank}"}),
    cdp("Storage.getCookies"),
    cdp("Debugger.setBreakpointByUrl", lineNumber=0, urlRegex=".*", condition="document.title = 'acted'"),
    ("subscribeCDPEvents", {"events": ["Fetch.requestPaused"]}),
    ("subscribeCDPEvents", {"events": [], "children": [{"method": "Runtime.evaluate", "params": {"expression": "1"}}]}),
]


LISTS: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in ("getState", "getTabs", "getGroups", "getWindows", "getRecentlyClosed", "searchHistory")),
    *(
        (name, {})
        for name in ("searchBookmarks", "getBookmarkTree", "getDownloads", "getLogs", "getPanels", "getAdapters")
    ),
    ("getDownload", {"downloadId": 1}),
    ("showNotification", {"agent": "a", "title": "x"}),
    ("updateGroup", {"groupId": 1, "title": "x"}),
    ("plugin.uninstall", {"name": "none"}),
]
"""Commands on the browser, whose answers leave out hidden sites."""
REACHING = {"createGroup", "addToGroup", "removeFromGroup", "closeWindow", "restoreSession"}
"""Commands on other tabs than the one they name as `tabId`."""
HARMLESS = {"updateWindow"}
HUBS = {"resumeTab", "discardDownload"}
"""Commands that only the hub on the same machine may send."""


def test_every_command_is_tried_at_a_hidden_site() -> None:
    tried = {name for name, _ in (*TRIES, *NAMED, *BEYOND, *LISTS)}
    assert tried | REACHING | HARMLESS | HUBS == COMMANDS.keys()


def at_bank(value: Any, site: Site) -> Any:
    return json.loads(json.dumps(value).replace("{bank}", f"http://localhost:{site.port}").replace("{site}", site.url))


async def test_agents_get_nothing_of_a_hidden_site(relay: RunningRelay, panel: Ask, wire: Wire, site: Site) -> None:
    bank = f"http://localhost:{site.port}"
    await wire.ask("closeTab", tabId=await opened(wire, f"{bank}/other?closed", "document.title = 'Balance 1,000'"))
    closed = (await wire.ask("getRecentlyClosed"))["closed"][0]
    assert closed["url"] == f"{bank}/other?closed"
    secret = await opened(wire, f"{bank}/other", "document.title = 'Balance 3,000'; document.cookie = 'sid=COOKIE-777'")
    blob = "open(URL.createObjectURL(new Blob(['<title>Statement</title>'], {type: 'text/html'})))"
    written = "open('about:blank').document.title = 'Written by the bank'"
    before = {tab["tabId"] for tab in (await wire.ask("getTabs"))["tabs"]}
    for script in (written, f"{blob}; 1"):
        await wire.cdp(secret, "Runtime.evaluate", expression=script, userGesture=True)

    async def made_by_the_bank() -> list[int]:
        tabs = (await wire.ask("getTabs"))["tabs"]
        titles = {tab["tabId"]: tab["title"] for tab in tabs if tab["tabId"] not in before}
        return sorted(titles) if sorted(titles.values()) == ["Statement", "Written by the bank"] else []

    popup_ids = await eventually(made_by_the_bank)
    framed = await opened(wire, f"{site.url}/framed")
    plain = await opened(wire, f"{site.url}/")
    hidden = [secret, framed, *popup_ids]
    await connected(panel, relay, level="act", sites=[{"site": "localhost", "level": "block"}])
    async with IndependentAgent(relay.url, token()) as agent:
        await agent.ready()
        listed = {tab["tabId"]: tab for tab in (await agent.result("getTabs"))["tabs"]}
        assert (listed[plain]["url"], listed[plain]["title"]) == (f"{site.url}/", "Home")
        assert {(listed[each]["url"], listed[each]["title"]) for each in hidden} == {("", "")}
        for tab_id in hidden:
            for method, params in TRIES if tab_id in (secret, framed) else TRIES[:1]:
                refused = await agent.error(method, {"tabId": tab_id, **at_bank(params, site)})
                assert refused["message"] == HIDDEN, (method, params)
        for method, params in NAMED:
            refused = await agent.error(method, {"tabId": plain, **at_bank(params, site)})
            assert refused["message"] == HIDDEN, (method, params)
        for method, params in BEYOND:
            refused = await agent.error(method, {"tabId": plain, **at_bank(params, site)})
            assert "reach beyond a page are refused" in refused["message"], (method, params)
        reaching: list[tuple[str, dict[str, Any]]] = [
            *((name, {"tabIds": [plain, secret]}) for name in ("createGroup", "removeFromGroup")),
            ("addToGroup", {"groupId": 1, "tabIds": [framed]}),
            ("closeWindow", {"windowId": listed[secret]["windowId"]}),
            ("restoreSession", {"sessionId": closed["sessionId"]}),
        ]
        assert {name for name, _ in reaching} == REACHING
        for method, params in reaching:
            assert (await agent.error(method, params))["message"] == HIDDEN, method
        for method in HUBS:
            assert (await agent.error(method, {"tabId": plain}))["code"] == -32601, method
        for method, params in LISTS:
            await agent.ask(method, params)
        assert (await agent.result("searchHistory", {"text": ""}))["entries"]
        # The person navigates a tab that the agent listens to.
        await agent.result("subscribeCDPEvents", {"tabId": plain, "events": ["Network.", "Page.", "Runtime."]})
        for domain in ("Network", "Page", "Runtime"):
            await agent.result("forwardCDPCommand", {"tabId": plain, "method": f"{domain}.enable"})
        await wire.ask("browser_navigate", tabId=plain, url=f"{bank}/other", waitUntil="load")
        await wire.cdp(plain, "Runtime.evaluate", expression="document.title = 'Balance 4,000'; console.log('Balance')")
        assert (await agent.error("screenshot", {"tabId": plain}))["message"] == HIDDEN
        await wire.ask("browser_navigate", tabId=plain, url=f"{site.url}/", waitUntil="load")
        # Its own navigation that ends there: the page sends it on.
        script = f"setTimeout(() => location.href = '{bank}/other', 0)"
        await agent.ask("forwardCDPCommand", {"tabId": plain, **cdp("Runtime.evaluate", expression=script)[1]})

        async def arrived() -> bool:
            tabs = (await wire.ask("getTabs"))["tabs"]
            return any(tab["tabId"] == plain and tab["url"] == f"{bank}/other" for tab in tabs)

        await eventually(arrived)
        assert (await agent.error("closeTab", {"tabId": plain}))["message"] == HIDDEN
        received = json.dumps(agent.received)
        for text in (f"localhost:{site.port}", "Balance", "Statement", "Written by", "COOKIE-777", '"title": "Other"'):
            found = received.find(text)
            assert found < 0, received[max(0, found - 300) : found + 200]
        assert '"cdp.event"' in received
    for tab_id in (*hidden, plain):
        await wire.ask("closeTab", tabId=tab_id)


async def test_agents_over_mcp_at_the_relay_get_nothing_of_a_hidden_site(panel: Ask, wire: Wire, site: Site) -> None:
    bank = f"http://localhost:{site.port}"
    secret = await opened(wire, f"{bank}/other", "document.title = 'Balance 3,000'")
    async with http_relay() as relay, relay.agent() as agent:
        await connected(panel, relay.relay, level="act", sites=[{"site": bank, "level": "block"}])
        (engine,) = relay.engines()
        await until(lambda: any(tab.chrome_id == secret for tab in engine.browsers.book))
        (tab_id,) = [tab.tab_id for tab in engine.browsers.book if tab.chrome_id == secret]
        answers = [await agent.call("browser_list_tabs")]
        for name in ("browser_snapshot", "browser_screenshot_tab", "browser_get_page_html", "browser_close_tab"):
            answers.append(await agent.call(name, {"tabId": tab_id}))
            assert answers[-1]["result"]["isError"], name
        for name in ("browser_open_tab", "browser_get_cookies"):
            answers.append(await agent.call(name, {"url": f"{bank}/"}))
            assert HIDDEN in str(answers[-1]["result"]["content"]), name
        assert "Balance" not in str(answers)
        assert bank not in str(answers[:-2])  # the last two name it as the agent did
        await panel("relay.set", url="", token="")
    await wire.ask("closeTab", tabId=secret)


async def test_without_access_by_default_only_sites_with_a_level_are_seen(
    relay: RunningRelay, panel: Ask, wire: Wire, site: Site
) -> None:
    shown, other = await opened(wire, f"{site.url}/"), await opened(wire, f"http://localhost:{site.port}/other")
    await connected(panel, relay, level="block", sites=[{"site": site.url, "level": "ask"}])
    async with IndependentAgent(relay.url, token()) as agent:
        await agent.ready()
        tabs = (await agent.result("getTabs"))["tabs"]
        assert {tab["url"] for tab in tabs} == {f"{site.url}/", ""}
        for method, params in (("searchHistory", {"text": ""}), ("screenshot", {"tabId": other}), ("createTab", {})):
            assert (await agent.error(method, params))["message"] == HIDDEN
        assert (await agent.result("screenshot", {"tabId": shown}))["data"]
        running = await agent.begin("forwardCDPCommand", {"tabId": shown, **cdp("Runtime.evaluate", expression="1")[1]})
        assert (await answered(panel, allow=True))["site"] == site.url
        assert "result" in await running
        # What agents have seen before a site is hidden, they do not keep: they start again.
        await panel("relay.set", sites=[])
        await agent.notified("disconnected")
    await state(panel, lambda facts: facts["phase"] == "connected")
    async with IndependentAgent(relay.url, token()) as agent:
        await agent.handshake()
        await agent.join((await agent.listed(1))[0]["id"])
        assert not [tab for tab in (await agent.result("getTabs"))["tabs"] if tab["url"] or tab["title"]]
    for tab_id in (shown, other):
        await wire.ask("closeTab", tabId=tab_id)


RULES = """import(chrome.runtime.getURL("link/site_rules.js")).then(({ SiteRules, parsePattern, patternText }) => {
  const parse = (text) => { try { return parsePattern(text); } catch { return null; } };
  const parsed = %s.map(parse);
  const rules = parsed.flatMap((pattern, level) => (pattern ? [{ pattern, level }] : []));
  const decide = (origin) => new SiteRules(rules).level(origin) ?? null;
  return [parsed.map((pattern) => pattern && patternText(pattern)), %s.map(decide)];
})"""
PATTERNS = [
    *(
        "Bank.example.",
        "https://news.bank.example",
        "*.shop.bank.example",
        "https://*.mail.example:8443",
        "intern:8080",
    ),
    *(
        "bücher.example",
        "[::1]:80",
        "http://*",
        "*:8443",
        "*.bank.example",
        "https://bank.example/",
        "WSS://a.bank.example",
    ),
    *("2130706433", "0x7f.1:99", "*.localhost", "*", "bank.example:", "_dmarc.bank.example", "faß.example"),
    *(
        "",
        "https://",
        "https://bank.example/path",
        "bank.example?x",
        "me@bank.example",
        "ftp://bank.example",
        "file:///a",
    ),
    *(
        "bank.example:0",
        "bank.example:65536",
        "bank.example:http",
        "*.127.0.0.1",
        "*.[::1]",
        "a b.example",
        "%62ank.example",
    ),
    *(
        "-bank.example",
        "bank..example",
        "*bank.example",
        "*.*.example",
        "[::1",
        "[fe80::1%25eth0]",
        "1.2.3.256",
        "\t",
        "a\nb",
    ),
]
HOSTS = ["bank.example", "www.bank.example", "shop.bank.example", "a.shop.bank.example", "notbank.example", "localhost"]
ORIGINS = [
    *(
        "https://bank.example.",
        "https://bank.example.evil.example",
        "https://news.bank.example",
        "http://[::1]",
        "",
        "about:",
    ),
    *("https://a.mail.example:8443", "https://a.mail.example", "http://intern:8080", "http://intern", "file:", "data:"),
    *("https://xn--bcher-kva.example", "http://127.0.0.1:99", "https://127.0.0.1", "https://a.localhost", "chrome:"),
    *(
        f"{scheme}://{host}{port}"
        for scheme in ("http", "https", "ws")
        for host in HOSTS
        for port in ("", ":81", ":8443")
    ),
]


async def test_the_extension_reads_patterns_of_sites_and_decides_as_the_hub_does(panel: Ask) -> None:
    chosen = random.Random(14)
    parts = (["", "http://", "https://"], ["", "*."], HOSTS[:5], ["", ":80", ":443", ":8443"])
    made = {"".join(map(chosen.choice, parts)) for _ in range(60)}
    groups = [PATTERNS, *(chosen.sample(sorted(made), 12) for _ in range(20))]
    for patterns in groups:
        parsed = [_pattern(text) for text in patterns]
        rules = SiteRules(
            SiteRule(pattern, None, cast("SiteLevel", number)) for number, pattern in enumerate(parsed) if pattern
        )
        found = await panel.evaluate(RULES % (json.dumps(patterns), json.dumps(ORIGINS)))
        assert found[0] == [str(pattern) if pattern else None for pattern in parsed]
        # Two spellings of one pattern: the first counts.
        assert found[1] == [rules.level("file:///" if origin == "file:" else origin, None) for origin in ORIGINS]


def _pattern(text: str) -> SitePattern | None:
    try:
        return SitePattern.parse(text)
    except SetupError:
        return None


async def test_levels_are_checked_and_kept(panel: Ask) -> None:
    for wrong in (
        {"level": "none"},
        {"sites": "bank.example"},
        {"sites": [{"site": "bank.example", "level": "allow"}]},
        {"sites": [{"site": "https://bank.example/path", "level": "read"}]},
        {"sites": [{"site": "", "level": "read"}]},
        {"sites": [None]},
        {"sites": [{"site": f"{number}.example", "level": "read"} for number in range(501)]},
    ):
        assert "error" in await panel("relay.set", **wrong), wrong
    facts = (await panel("relay.set", sites=[{"site": " HTTPS://Bank.example/", "level": "block"}]))["result"]
    assert facts["sites"] == [{"site": "https://bank.example", "level": "block"}]
    assert (await panel("relay.set", level="read"))["result"]["sites"] == facts["sites"]


OLD = {
    "url": "wss://relay.example",
    "token": "",
    "acting": "off",
    "sites": [
        {"site": "bank.example", "level": "nothing"},
        {"site": "https://news.bank.example", "level": "ask"},
        {"site": "https://*.mail.example:8443", "level": "nothing"},
        {"site": "shop.bank.example", "level": "auto"},
        {"site": "intern:8080", "level": "auto"},
        {"site": "[::1]:80", "level": "nothing"},
    ],
    "instead": True,
}
NEW = [
    {"site": "*.bank.example", "level": "block"},
    {"site": "https://news.bank.example:443", "level": "ask"},
    {"site": "https://*.mail.example:8443", "level": "block"},
    {"site": "*.shop.bank.example", "level": "act"},
    {"site": "*.intern:8080", "level": "act"},
    {"site": "[::1]:80", "level": "block"},
]
MEANING = {
    "https://bank.example": "block",
    "http://www.bank.example:81": "block",
    "https://news.bank.example": "ask",
    "https://news.bank.example:8443": "block",
    "https://a.news.bank.example": "block",
    "https://a.shop.bank.example": "act",
    "https://a.mail.example": "read",
    "http://intern:8080": "act",
    "http://[::1]": "block",
    "https://other.example": "read",
    "": "read",
}
RESTART = """import(chrome.runtime.getURL("link/relay.js")).then(async ({ Relay }) => {
  const notes = [];
  const ignored = { methods: new Map(), notifications: new Map(), agentsChanged() {}, changed() {} };
  const start = async () => {
    const relay = new Relay({ ...ignored, note: (text) => notes.push(text) });
    await relay.start();
    return relay;
  };
  await chrome.storage.local.set({ relay: %s });
  const [first, second] = [await start(), await start()];
  const found = [first.state(), second.state(), %s.map((origin) => second.levels.of(origin)), notes];
  await second.change({});
  return [...found, (await start()).state().migrated];
})"""


async def test_settings_of_version_0_1_keep_their_meaning_and_the_person_is_told(panel: Ask) -> None:
    first, second, levels, notes, later = await panel.evaluate(RESTART % (json.dumps(OLD), json.dumps(list(MEANING))))
    assert first == second
    assert {name: second[name] for name in ("url", "level", "sites", "instead", "migrated")} == {
        "url": "wss://relay.example",
        "level": "read",
        "sites": NEW,
        "instead": True,
        "migrated": True,
    }
    assert dict(zip(MEANING, levels, strict=True)) == MEANING
    assert [("rewritten" in note) for note in notes] == [True]
    assert later is False
