"""An approval for one site never applies to another, whatever an agent over a relay sends: a real Chromium and relay.

A page can keep its thread busy while its tab navigates: the agent's commands then wait, and the browser runs them in
the next page. A command can name a tab that it does not act in, and the DevTools Protocol reaches further than a page.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.extension.conftest import Site
from tests.extension.fakehub import Wire
from tests.extension.test_relay import Ask, answered, connected, panel, relay, state
from tests.harness.waiting import eventually
from tests.relay.independent import IndependentAgent
from tests.relay.world import RunningRelay, token

__all__ = ["panel", "relay"]

FIELD = "<input id=field autofocus style='position:fixed;inset:0;width:100vw;height:100vh'>"
HEARD = "for (const what of ['mousedown', 'keydown']) addEventListener(what, () => { document.title = 'acted' }, true)"
BANK = f"<title>Bank</title>{FIELD}<script>{HEARD}</script>"
NAVIGATED = "The tab navigated to another site before the command ran."
DENIED = "The person at the browser did not allow it."
SLOWLY = 0.6
"""Seconds until the next page loads: time for a command to be sent to the previous one."""
LONGER = 3.0
"""Seconds that a page is busy: until after the next one has loaded."""
BUSY = "setTimeout(() => { const r = new XMLHttpRequest(); r.open('GET', '{bank}/busy', false); r.send(); }, 20)"
"""Blocks the page's thread like a loop, but without using the processor."""


def cdp(method: str, **params: Any) -> tuple[str, dict[str, Any]]:
    return "forwardCDPCommand", {"method": method, "params": params}


@asynccontextmanager
async def bank() -> AsyncIterator[str]:
    """A site that the agent is not approved for; it responds slowly, and at one URL even more slowly."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            busy = (await reader.readuntil(b"\r\n\r\n")).startswith(b"GET /busy ")
            await asyncio.sleep(LONGER if busy else SLOWLY)
            head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(BANK)}\r\n"
            writer.write(f"{head}Set-Cookie: session=secret\r\nConnection: close\r\n\r\n{BANK}".encode())
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the browser opens more connections than it uses
        finally:
            writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield f"http://localhost:{server.sockets[0].getsockname()[1]}"


async def tab(wire: Wire, tab_id: int) -> dict[str, Any]:
    tabs = (await wire.ask("getTabs"))["tabs"]
    found: dict[str, Any] = next(each for each in tabs if each["tabId"] == tab_id)
    return found


@asynccontextmanager
async def allowed(
    relay: RunningRelay, panel: Ask, wire: Wire, site: Site, script: str = "1", level: str = "ask"
) -> AsyncIterator[tuple[IndependentAgent, int]]:
    """An agent that may act on a tab's site, and has run a script there."""
    made = (await wire.ask("createTab", url=f"{site.url}/", waitUntil="load"))["tabId"]
    await connected(panel, relay, level=level)
    async with acting(relay, panel, site, made, script, level) as agent:
        yield agent, made
    await wire.ask("closeTab", tabId=made)


@asynccontextmanager
async def acting(
    relay: RunningRelay, panel: Ask, site: Site, made: int, script: str = "1", level: str = "ask"
) -> AsyncIterator[IndependentAgent]:
    """Another agent that may act on the tab's site, at a relay that the browser is connected to."""
    async with IndependentAgent(relay.url, token()) as agent:
        await agent.ready()
        method, params = cdp("Runtime.evaluate", expression=script)
        calling = await agent.begin(method, {"tabId": made, **params})
        if level == "ask":
            assert (await answered(panel, allow=True))["site"] == site.url
        assert "result" in await calling
        yield agent


ACTS = {
    "a script": cdp("Runtime.evaluate", expression="window.acted = location.href"),
    "a strict script": cdp("Runtime.evaluate", expression="'use strict'; globalThis.acted = location.href"),
    "a click by selector": ("click", {"selector": "#field"}),
    "a click by place": ("click", {"x": 20, "y": 20}),
    "typing": ("type", {"text": "abc"}),
    "a key": cdp("Input.dispatchKeyEvent", type="keyDown", key="a", text="a"),
}


@pytest.mark.parametrize("what", ACTS)
async def test_a_script_for_one_site_does_not_run_on_the_next(
    relay: RunningRelay, panel: Ask, wire: Wire, site: Site, what: str
) -> None:
    async with (
        bank() as elsewhere,
        allowed(relay, panel, wire, site, BUSY.replace("{bank}", elsewhere)) as (agent, made),
    ):
        method, params = cdp("Page.navigate", url=f"{elsewhere}/")
        await agent.begin(method, {"tabId": made, **params})
        method, params = ACTS[what]
        answer = await (await agent.begin(method, {"tabId": made, **params}))

        async def arrived() -> bool:
            there = await tab(wire, made)
            return (there["url"], there["status"]) == (f"{elsewhere}/", "complete")

        await eventually(arrived)
        look: dict[str, Any] = {"method": "Runtime.evaluate", "params": {"expression": "String(window.acted)"}}
        assert (await wire.ask("forwardCDPCommand", tabId=made, **look))["result"]["value"] == "undefined", answer
        assert (await tab(wire, made))["title"] == "Bank", answer


FURTHER: list[tuple[str, dict[str, Any], str]] = [
    ("getCookies", {"url": "{bank}/"}, "{bank}"),
    ("setCookie", {"url": "{bank}/", "name": "a", "value": "b"}, "{bank}"),
    ("deleteCookies", {"url": "{bank}/", "name": "session"}, "{bank}"),
    ("clearSiteData", {"origin": "{bank}", "cookies": True}, "{bank}"),
    ("searchHistory", {"text": ""}, ""),
    ("searchBookmarks", {"query": "a"}, ""),
    ("getDownloads", {}, ""),
    (*cdp("Network.getCookies", urls=["{bank}/"]), ""),
    (*cdp("Network.getAllCookies"), ""),
    (*cdp("Network.setCookie", url="{bank}/", name="a", value="b"), ""),
    (*cdp("Storage.clearDataForOrigin", origin="{bank}", storageTypes="all"), ""),
    (*cdp("Network.loadNetworkResource", url="{bank}/", options={"disableCache": True}), ""),
    (*cdp("Fetch.enable"), ""),
    (*cdp("Page.setDocumentContent", frameId="x", html="<p>"), ""),
    ("forwardCDPCommand", {"method": "Page.enable", "ahead": [{"method": "Fetch.enable", "params": {}}]}, ""),
    ("subscribeCDPEvents", {"events": ["Fetch.requestPaused"]}, ""),
    (
        "subscribeCDPEvents",
        {"events": [], "children": [{"method": "Runtime.evaluate", "params": {"expression": "1"}}]},
        "",
    ),
]
"""Commands that name the tab but reach further, and the site whose approval they need."""


async def test_permission_for_one_tab_does_not_extend_to_others(
    relay: RunningRelay, panel: Ask, wire: Wire, site: Site
) -> None:
    other = "http://localhost:1"
    made = (await wire.ask("createTab", url=f"{site.url}/", waitUntil="load"))["tabId"]
    await connected(panel, relay, level="ask")
    for method, params, asked in FURTHER:
        await panel("relay.set", level="ask")  # a person who has denied often is asked again
        async with acting(relay, panel, site, made) as agent:
            calling = await agent.begin(method, {"tabId": made, **filled(params, other)})
            assert (await answered(panel, allow=False))["site"] == asked.format(bank=other), (method, params)
            assert DENIED in (await calling)["error"]["message"], (method, params)
    await wire.ask("closeTab", tabId=made)


def filled(value: Any, other: str) -> Any:
    """The command with the other site's URL filled in."""
    if isinstance(value, str):
        return value.replace("{bank}", other)
    if isinstance(value, dict):
        return {key: filled(each, other) for key, each in value.items()}
    return [filled(each, other) for each in value] if isinstance(value, list) else value


async def test_the_cookies_of_a_page_are_not_those_of_the_sites_it_shows_inside(
    relay: RunningRelay, panel: Ask, wire: Wire, site: Site
) -> None:
    frame = "const f = document.createElement('iframe'); f.src = '{bank}/'; document.body.append(f);"
    loaded = "new Promise((done) => { f.onload = () => done(document.cookie = 'own=1') })"
    async with bank() as elsewhere, allowed(relay, panel, wire, site) as (agent, made):
        script = frame.replace("{bank}", elsewhere) + loaded
        method, params = cdp("Runtime.evaluate", expression=script, awaitPromise=True)
        assert (await agent.result(method, {"tabId": made, **params}))["result"]["value"] == "own=1"
        method, params = cdp("Network.getCookies")
        found = await agent.result(method, {"tabId": made, **params})
        assert [cookie["name"] for cookie in found["cookies"]] == ["own"]


async def test_scripts_that_stay_on_their_site_return_their_results(
    relay: RunningRelay, panel: Ask, wire: Wire, site: Site
) -> None:
    async with allowed(relay, panel, wire, site) as (agent, made):
        for script, expected in (
            ("1 + 1", 2),
            ("({a: 1}).a", 1),
            ("let x = 5; x", 5),
            ("'use strict'; (function () { return this === undefined })()", True),
            (' "use strict" ;(function () { return this === undefined })()', True),
            ("(function () { return this === undefined })()", False),
            ("throw 7", 7),
        ):
            method, params = cdp("Runtime.evaluate", expression=script, returnByValue=True)
            answer = await agent.result(method, {"tabId": made, **params})
            assert answer.get("exceptionDetails", {}).get("exception", answer["result"]).get("value") == expected, (
                script
            )
        assert not (await state(panel, lambda facts: True))["questions"]


@pytest.mark.parametrize("level", ["ask", "act"])
async def test_events_for_one_site_have_no_cookies_of_the_next(
    relay: RunningRelay, panel: Ask, wire: Wire, site: Site, level: str
) -> None:
    names = ["Network.requestWillBeSentExtraInfo", "Network.responseReceivedExtraInfo", "Network.requestWillBeSent"]
    async with bank() as elsewhere, allowed(relay, panel, wire, site, level=level) as (agent, made):
        for _ in range(2):  # the second time the browser sends the cookie that was set the first time
            await wire.ask("browser_navigate", tabId=made, url=f"{elsewhere}/", waitUntil="load")
        await wire.ask("browser_navigate", tabId=made, url=f"{site.url}/", waitUntil="load")
        await agent.result("subscribeCDPEvents", {"tabId": made, "events": names})
        for method, params in (cdp("Network.enable"), cdp("Page.navigate", url=f"{elsewhere}/")):
            assert "result" in await (await agent.begin(method, {"tabId": made, **params}))
        async with asyncio.timeout(30):
            events = list[dict[str, Any]]()
            while not events or events[-1]["method"] != "Network.responseReceivedExtraInfo":
                event = await agent.notified("cdp.event")
                events += [event] if event["method"] in names else []
        assert {event["method"] for event in events} == set(names)
        assert ("secret" in str(events)) is (level == "act")
