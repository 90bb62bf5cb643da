"""The extension's handshake, tab commands and events, in a real Chromium."""

from __future__ import annotations

import asyncio
import socket
import time
from typing import Any

import orjson
import pytest

from tests.extension.conftest import EXTENSION, EXTENSION_ID, SECRET, Site
from tests.extension.fakehub import Refused, Wire

TAB_FIELDS = {
    "tabId", "url", "title", "active", "windowId", "windowFocused", "index", "status", "pinned", "incognito", "groupId",
    "discarded", "audible", "stopped", "lastAccessed",
}  # fmt: skip


async def tab_of(wire: Wire, tab: int) -> dict[str, Any]:
    tabs = (await wire.ask("getTabs"))["tabs"]
    return next(t for t in tabs if t["tabId"] == tab)


async def test_the_handshake_carries_protocol_secret_and_browser_id_from_the_fixed_origin(wire: Wire) -> None:
    name, secret, browser = wire.protocols
    assert (name, secret, len(browser)) == ("tabhub", SECRET, 36)
    assert wire.origin == f"chrome-extension://{EXTENSION_ID}"
    assert wire.path == "/ws"
    assert wire.socket.subprotocol == "tabhub"


async def test_hello_is_followed_by_all_tabs(wire: Wire) -> None:
    assert wire.seen[0]["method"] == "extension.hello"
    hello = await wire.notified("extension.hello")
    assert hello["browserId"] == wire.protocols[2]
    assert (hello["browserName"], hello["platform"], hello["managed"]) == ("Chromium", "linux", False)
    assert hello["extensionVersion"] == orjson.loads((EXTENSION / "manifest.json").read_bytes())["version"]
    sync = await wire.notified("tab.syncAll")
    assert (sync["plugins"], sync["debugger"]) == ({}, {"attached": []})
    assert set(sync["tabs"][0]) - {"openerTabId"} == TAB_FIELDS


async def test_get_state_counts_tabs_and_windows(wire: Wire) -> None:
    state = await wire.ask("getState")
    assert state["tabs"] == len((await wire.ask("getTabs"))["tabs"])
    assert (state["windows"], state["debugger"]) == (1, {"attached": []})
    assert state["startedAt"] <= time.time() * 1000
    assert "lastError" not in state


async def test_a_tab_is_created_in_the_background_unless_requested_in_front(wire: Wire, site: Site) -> None:
    behind = await wire.ask("createTab", url=f"{site.url}/")
    assert not behind["active"]
    front = await wire.ask("createTab", active=True, index=0, openerTabId=behind["tabId"])
    assert front["active"]
    assert front["index"] == 0
    assert front["openerTabId"] == behind["tabId"]
    data = await wire.ask("createTab", url="data:text/html,<title>Made</title>")
    await wire.next(lambda m: _titled(m, data["tabId"], "Made"))
    for made in (behind, front, data):
        assert await wire.ask("closeTab", tabId=made["tabId"]) == {"closed": True}
    assert not {behind["tabId"], front["tabId"]} & {t["tabId"] for t in (await wire.ask("getTabs"))["tabs"]}


async def test_select_changes_nothing_but_activate_brings_the_tab_to_the_front(wire: Wire, tab: int) -> None:
    assert not (await wire.ask("selectTab", tabId=tab))["active"]
    assert not (await tab_of(wire, tab))["active"]
    assert (await wire.ask("activateTab", tabId=tab, focusWindow=True))["active"]
    assert (await tab_of(wire, tab))["active"]


TAB_COMMANDS: list[tuple[str, dict[str, Any]]] = [
    ("selectTab", {}),
    ("activateTab", {}),
    ("closeTab", {}),
    ("goBack", {}),
    ("goForward", {}),
    ("reloadTab", {}),
    ("browser_navigate", {"url": "about:blank"}),
    ("forwardCDPCommand", {"method": "Runtime.evaluate", "params": {"expression": "1"}}),
    ("subscribeCDPEvents", {"events": ["Network."]}),
]


@pytest.mark.parametrize(("command", "params"), TAB_COMMANDS)
async def test_a_missing_tab_is_named(wire: Wire, command: str, params: dict[str, Any]) -> None:
    with pytest.raises(Refused, match="No tab with id 999999") as refused:
        await wire.ask(command, tabId=999999, **params)
    assert refused.value.code == -32001


@pytest.mark.parametrize(("command", "params"), TAB_COMMANDS)
@pytest.mark.parametrize("tab_id", ["1", 1.5, -1, True, [1], None, 2**40])
async def test_a_wrong_tab_id_is_refused_by_name(
    wire: Wire, command: str, params: dict[str, Any], tab_id: object
) -> None:
    with pytest.raises(Refused, match="tabId must be") as refused:
        await wire.ask(command, tabId=tab_id, **params)
    assert refused.value.code == -32602


@pytest.mark.parametrize(
    ("command", "params", "field"),
    [
        ("createTab", {"active": "yes"}, "active"),
        ("createTab", {"index": -1}, "index"),
        ("createTab", {"url": 5}, "url"),
        ("browser_navigate", {"tabId": 1}, "url"),
        ("browser_navigate", {"tabId": 1, "url": "about:blank", "waitUntil": "idle"}, "waitUntil"),
        ("browser_navigate", {"tabId": 1, "url": "about:blank", "timeoutMs": 0}, "timeoutMs"),
        ("forwardCDPCommand", {"tabId": 1, "method": "X.y", "params": []}, "params"),
        ("forwardCDPCommand", {"tabId": 1}, "method"),
        ("subscribeCDPEvents", {"tabId": 1, "events": [1]}, "events"),
        ("subscribeCDPEvents", {"tabId": 1, "events": "Network."}, "events"),
    ],
)
async def test_a_wrong_parameter_is_refused_by_name(
    wire: Wire, command: str, params: dict[str, Any], field: str
) -> None:
    with pytest.raises(Refused, match=f"^-32602: {field} must"):
        await wire.ask(command, **params)


@pytest.mark.parametrize("url", ["javascript:alert(1)", " java\nscript:1", "chrome://settings", "no address", "blob:x"])
async def test_forbidden_urls_are_refused(wire: Wire, tab: int, url: str) -> None:
    for command in ("browser_navigate", "createTab"):
        with pytest.raises(Refused, match=r"^-32602: url must"):
            await wire.ask(command, tabId=tab, url=url)


async def test_navigation_resolves_when_the_page_is_loaded(wire: Wire, tab: int, site: Site) -> None:
    arrived = await wire.ask("browser_navigate", tabId=tab, url=f"{site.url}/other")
    there = {
        "tabId": tab,
        "url": f"{site.url}/other",
        "title": "Other",
        "status": "complete",
        "ok": True,
        "httpStatus": 200,
    }
    assert arrived == there
    assert await wire.ask("browser_navigate", tabId=tab, url=f"{site.url}/other") == there
    within = await wire.ask("browser_navigate", tabId=tab, url=f"{site.url}/other#part")
    assert within == {**there, "url": f"{site.url}/other#part"}
    assert (await wire.ask("browser_navigate", tabId=tab, url="about:blank"))["url"] == "about:blank"
    with pytest.raises(Refused, match="only in a new tab"):
        await wire.ask("browser_navigate", tabId=tab, url="data:text/html,<title>D</title>")


async def test_navigation_can_wait_for_less(wire: Wire, tab: int, site: Site) -> None:
    url = f"{site.url}/slow-image"
    committed = await wire.ask("browser_navigate", tabId=tab, url=url, waitUntil="commit")
    assert (committed["url"], committed["status"]) == (url, "loading")
    impatient = await wire.ask("browser_navigate", tabId=tab, url=url, timeoutMs=300)
    assert (impatient["ok"], impatient["status"]) == (False, "loading")
    assert "300 ms" in impatient["error"]
    begun = await wire.ask("browser_navigate", tabId=tab, url=f"{site.url}/never", waitUntil="none")
    assert (begun["ok"], begun["url"]) == (True, f"{site.url}/never")


def unused_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


async def test_a_failed_navigation_reports_the_reason(wire: Wire, tab: int, site: Site) -> None:
    with pytest.raises(Refused, match=r"-32000: net::ERR_CONNECTION_REFUSED at http://127\.0\.0\.1:"):
        await wire.ask("browser_navigate", tabId=tab, url=f"http://127.0.0.1:{unused_port()}/")
    with pytest.raises(Refused, match="-32000: net::ERR_UNSAFE_PORT"):
        await wire.ask("browser_navigate", tabId=tab, url="http://127.0.0.1:9/")
    with pytest.raises(Refused, match="gave no page"):
        await wire.ask("browser_navigate", tabId=tab, url=f"{site.url}/empty")
    with pytest.raises(Refused, match="did not answer within 200 ms"):
        await wire.ask("browser_navigate", tabId=tab, url=f"{site.url}/never", timeoutMs=200)
    assert (await wire.ask("browser_navigate", tabId=tab, url=f"{site.url}/"))["title"] == "Home"


async def test_a_newer_navigation_replaces_the_previous_one(wire: Wire, tab: int, site: Site) -> None:
    _, first = await wire.start("browser_navigate", tabId=tab, url=f"{site.url}/never")
    await wire.ask("browser_navigate", tabId=tab, url=f"{site.url}/other")
    assert "newer navigation" in (await first)["error"]["message"]


async def test_back_forward_and_reload(wire: Wire, tab: int, site: Site) -> None:
    home, other = f"{site.url}/", f"{site.url}/other"
    await wire.ask("browser_navigate", tabId=tab, url=home)
    await wire.ask("browser_navigate", tabId=tab, url=other)
    assert (await wire.ask("goBack", tabId=tab))["url"] == home
    assert await wire.ask("goForward", tabId=tab) == {
        "tabId": tab,
        "url": other,
        "title": "Other",
        "status": "complete",
    }
    with pytest.raises(Refused, match="-32000: The tab's history has no page after"):
        await wire.ask("goForward", tabId=tab)
    assert (await wire.ask("reloadTab", tabId=tab, ignoreCache=True))["title"] == "Other"


@pytest.mark.req("F9")
async def test_closing_a_tab_ends_its_navigation_at_once(wire: Wire, tab: int, site: Site) -> None:
    site.asked_never.clear()
    _, moving = await wire.start("browser_navigate", tabId=tab, url=f"{site.url}/never")
    await site.asked_never.wait()
    await wire.ask("closeTab", tabId=tab)
    assert (await asyncio.wait_for(moving, 30))["error"]["code"] == -32001


async def test_a_cancelled_navigation_stops_waiting(wire: Wire, tab: int, site: Site) -> None:
    site.asked_never.clear()
    number, moving = await wire.start("browser_navigate", tabId=tab, url=f"{site.url}/never")
    await site.asked_never.wait()
    await wire.notify("cancel", id=number)
    assert (await asyncio.wait_for(moving, 30))["error"] == {"code": -32010, "message": "cancelled"}
    await wire.notify("cancel", id=number)
    assert (await wire.ask("browser_navigate", tabId=tab, url=f"{site.url}/"))["ok"]


async def test_changes_of_tabs_are_reported(wire: Wire, site: Site) -> None:
    before = len(wire.seen)
    made = (await wire.ask("createTab"))["tabId"]
    created = await wire.notified("tab.stateChanged", after=before, tabId=made, change="created")
    assert created["tab"]["tabId"] == made
    await wire.ask("browser_navigate", tabId=made, url=f"{site.url}/other")
    await wire.next(lambda m: _titled(m, made, "Other"), after=before)
    old_front = next(t["tabId"] for t in (await wire.ask("getTabs"))["tabs"] if t["active"])
    await wire.ask("activateTab", tabId=made)
    activated = await wire.notified("tab.stateChanged", after=before, tabId=made, change="activated")
    assert activated["tab"]["active"]
    await wire.next(lambda m: _is_update(m, old_front) and not m["params"]["tab"]["active"], after=before)
    await wire.ask("closeTab", tabId=made)
    await wire.notified("tab.stateChanged", after=before, tabId=made, change="removed")


def _is_update(message: dict[str, Any], tab: int) -> bool:
    params = message.get("params", {})
    return bool(
        message.get("method") == "tab.stateChanged" and params["tabId"] == tab and params["change"] == "updated"
    )


def _titled(message: dict[str, Any], tab: int, title: str) -> bool:
    return _is_update(message, tab) and bool(message["params"]["tab"]["title"] == title)


@pytest.mark.req("L8")
async def test_a_burst_of_changes_is_rate_limited_and_ends_with_the_last_state(
    wire: Wire, tab: int, site: Site
) -> None:
    # In front, because a browser throttles the timers of background pages.
    await wire.ask("activateTab", tabId=tab)
    await wire.ask("browser_navigate", tabId=tab, url=f"{site.url}/")
    before = len(wire.seen)
    script = "new Promise(end => { let n = 0; const t = setInterval(() => { document.title = 't' + ++n; if (n == 300)"
    await wire.cdp(
        tab, "Runtime.evaluate", expression=script + " { clearInterval(t); end(n); } }, 2) })", awaitPromise=True
    )
    await wire.next(lambda m: _titled(m, tab, "t300"), after=before)
    updates = sum(_is_update(m, tab) for m in wire.seen[before:])
    assert updates <= 150  # The rate itself is tested with a virtual clock, in clock/bursts.test.mjs.
