"""The extension's commands for the rest of the browser, in a real Chromium: groups, windows, history, bookmarks,
cookies, site data, notifications, and the extension itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.extension.conftest import EXTENSION_ID, Chromium, Site, in_worker
from tests.extension.fakehub import FakeHub, Refused, Wire

PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"
    "AAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.fixture
async def tabs(wire: Wire) -> AsyncIterator[list[int]]:
    """Two background tabs, closed afterwards."""
    made = [(await wire.ask("createTab"))["tabId"] for _ in range(2)]
    yield made
    left = {tab["tabId"] for tab in (await wire.ask("getTabs"))["tabs"]}
    for tab in left & set(made):
        await wire.ask("closeTab", tabId=tab)


async def tab_of(wire: Wire, tab: int) -> dict[str, Any]:
    return next(t for t in (await wire.ask("getTabs"))["tabs"] if t["tabId"] == tab)


async def test_new_tabs_of_one_key_share_a_group_and_another_key_has_its_own(wire: Wire) -> None:
    front = [t["tabId"] for t in (await wire.ask("getTabs"))["tabs"] if t["active"]]
    mine = {"key": "s1", "title": "Agent one"}
    first, second, other = await asyncio.gather(
        wire.ask("createTab", group=mine),
        wire.ask("createTab", group=mine),
        wire.ask("createTab", group={"key": "s2", "title": "Agent two"}),
    )
    assert first["groupId"] == second["groupId"] >= 0
    assert other["groupId"] not in (-1, first["groupId"])
    groups = {g["groupId"]: g for g in (await wire.ask("getGroups"))["groups"]}
    assert groups[first["groupId"]]["title"] == "Agent one"
    assert sorted(groups[first["groupId"]]["tabIds"]) == sorted([first["tabId"], second["tabId"]])
    assert groups[first["groupId"]]["color"] != "grey"
    assert [t["tabId"] for t in (await wire.ask("getTabs"))["tabs"] if t["active"]] == front
    for tab in (first, second, other):
        await wire.ask("closeTab", tabId=tab["tabId"])


async def test_a_dissolved_group_is_created_again_and_a_changed_one_stays_changed(wire: Wire) -> None:
    wish = {"key": "s3", "title": "Agent"}
    first = await wire.ask("createTab", group=wish)
    await wire.ask("updateGroup", groupId=first["groupId"], title="Mine", color="grey", collapsed=True)
    second = await wire.ask("createTab", group=wish)
    (group,) = [g for g in (await wire.ask("getGroups"))["groups"] if g["groupId"] == first["groupId"]]
    assert (group["title"], group["color"], group["collapsed"]) == ("Mine", "grey", True)
    assert second["tabId"] in group["tabIds"]
    await wire.ask("removeFromGroup", tabIds=[first["tabId"], second["tabId"]])
    third = await wire.ask("createTab", group=wish)
    assert third["groupId"] not in (-1, first["groupId"])
    for tab in (first, second, third):
        await wire.ask("closeTab", tabId=tab["tabId"])


async def test_a_groups_key_survives_a_stopped_worker(wire: Wire, hub: FakeHub, chromium: Chromium) -> None:
    wish = {"key": "s4", "title": "Agent"}
    first = await wire.ask("createTab", group=wish)
    seen = len(hub.wires)
    await chromium.stop_worker()
    await chromium.devtools("Target.createTarget", url="about:blank", background=True)
    back = await hub.connection(seen + 1)
    second = await back.ask("createTab", group=wish)
    assert second["groupId"] == first["groupId"]
    for tab in (first, second):
        await back.ask("closeTab", tabId=tab["tabId"])


async def test_a_tab_opens_in_the_requested_window(wire: Wire) -> None:
    wish = {"key": "s5", "title": "Agent"}
    first = await wire.ask("createTab", group=wish)
    made = await wire.ask("createWindow")
    window = made["window"]["windowId"]
    there = await wire.ask("createTab", group=wish, windowId=window)
    assert (there["windowId"], there["groupId"]) == (window, -1)
    here = await wire.ask("createTab", group=wish)
    assert (here["windowId"], here["groupId"]) == (first["windowId"], first["groupId"])
    await wire.ask("closeWindow", windowId=window)
    for tab in (first, here):
        await wire.ask("closeTab", tabId=tab["tabId"])


async def test_groups_are_made_filled_changed_and_emptied(wire: Wire, tabs: list[int]) -> None:
    one, two = tabs
    made = await wire.ask("createGroup", tabIds=[one], title="Work", color="cyan")
    assert (made["title"], made["color"], made["collapsed"], made["tabIds"]) == ("Work", "cyan", False, [one])
    grown = await wire.ask("addToGroup", groupId=made["groupId"], tabIds=[two])
    assert sorted(grown["tabIds"]) == sorted(tabs)
    renamed = await wire.ask("updateGroup", groupId=made["groupId"], title="Done")
    assert (renamed["title"], renamed["color"]) == ("Done", "cyan")
    assert await wire.ask("removeFromGroup", tabIds=[one]) == {}
    assert (await tab_of(wire, one))["groupId"] == -1
    with pytest.raises(Refused, match="-32001: No tab with id 999999"):
        await wire.ask("addToGroup", groupId=made["groupId"], tabIds=[999999])
    with pytest.raises(Refused, match="-32000: No group with id: 999999"):
        await wire.ask("addToGroup", groupId=999999, tabIds=[one])


async def test_windows_are_opened_behind_changed_and_closed(wire: Wire, site: Site) -> None:
    before = (await wire.ask("getWindows"))["windows"]
    made = await wire.ask("createWindow", url=f"{site.url}/", width=500, height=400, left=10, top=20)
    window, tab = made["window"], made["tab"]
    assert window["tabIds"] == [tab["tabId"]]
    assert (window["width"], window["height"]) == (500, 400)
    # All headless windows report that they are focused; what counts is that focus was requested for none.
    assert {w["windowId"] for w in (await wire.ask("getWindows"))["windows"]} == {
        *(w["windowId"] for w in before),
        window["windowId"],
    }
    moved = await wire.ask("updateWindow", windowId=window["windowId"], width=600)
    assert moved["width"] == 600
    assert (await wire.ask("updateWindow", windowId=window["windowId"], state="maximized"))["state"] == "maximized"
    assert await wire.ask("closeWindow", windowId=window["windowId"]) == {"closed": True}
    with pytest.raises(Refused, match="No window with id"):
        await wire.ask("closeWindow", windowId=window["windowId"])


async def test_an_incognito_window_needs_the_persons_permission(wire: Wire) -> None:
    with pytest.raises(Refused, match="Allow in Incognito"):
        await wire.ask("createWindow", incognito=True)


async def test_history_lists_visits(wire: Wire, tab: int, site: Site) -> None:
    await wire.ask("browser_navigate", tabId=tab, url=f"{site.url}/other")
    found = await wire.ask("searchHistory", query=f"{site.port}/other")
    (entry,) = found["entries"]
    assert (entry["url"], entry["title"]) == (f"{site.url}/other", "Other")
    assert entry["lastVisitTime"].startswith("20")
    visits = (await wire.ask("getVisits", url=f"{site.url}/other"))["visits"]
    assert visits[0]["visitTime"] <= entry["lastVisitTime"][:26]
    assert (await wire.ask("searchHistory", query=f"{site.port}/other", endTime=1))["entries"] == []


async def test_closed_tabs_are_restored_in_the_background(wire: Wire, site: Site) -> None:
    tab = await wire.ask("createTab")
    await wire.ask("browser_navigate", tabId=tab["tabId"], url=f"{site.url}/other")
    front = [t["tabId"] for t in (await wire.ask("getTabs"))["tabs"] if t["active"]]
    await wire.ask("closeTab", tabId=tab["tabId"])
    closed = (await wire.ask("getRecentlyClosed", maxResults=1))["closed"]
    assert (closed[0]["kind"], closed[0]["url"]) == ("tab", f"{site.url}/other")
    back = await wire.ask("restoreSession", sessionId=closed[0]["sessionId"])
    assert [t["url"] for t in back["tabs"]] == [f"{site.url}/other"]
    assert [t["tabId"] for t in (await wire.ask("getTabs"))["tabs"] if t["active"]] == front
    await wire.ask("closeTab", tabId=back["tabs"][0]["tabId"])
    with pytest.raises(Refused, match="-32000: Invalid session id"):
        await wire.ask("restoreSession", sessionId="999999")


async def test_bookmarks_are_created_found_and_listed(wire: Wire, site: Site) -> None:
    made = await wire.ask("createBookmark", title="Home of tests", url=f"{site.url}/")
    assert [b["id"] for b in (await wire.ask("searchBookmarks", query="home of tests"))["bookmarks"]] == [made["id"]]
    (listed,) = (await wire.ask("getBookmarkTree", parentId=made["parentId"]))["roots"]
    assert made["id"] in [child["id"] for child in listed["children"]]
    (root,) = (await wire.ask("getBookmarkTree", maxDepth=1))["roots"]
    assert all(folder["children"] == [] for folder in root["children"])
    assert any(folder.get("more") for folder in root["children"])
    with pytest.raises(Refused, match="-32000: Can't find"):
        await wire.ask("createBookmark", title="x", url=f"{site.url}/", parentId="999999")
    with pytest.raises(Refused, match="-32602: url must not have the scheme javascript"):
        await wire.ask("createBookmark", title="x", url="javascript:alert(1)")


async def test_cookies_are_set_read_and_deleted(wire: Wire, site: Site) -> None:
    made = await wire.ask("setCookie", url=f"{site.url}/", name="n", value="secret", httpOnly=True, path="/")
    assert (made["value"], made["httpOnly"], made["session"]) == ("secret", True, True)
    await wire.ask("setCookie", url=f"{site.url}/", name="m", value="", expirationDate=4102444800)
    assert {c["name"] for c in (await wire.ask("getCookies", url=f"{site.url}/"))["cookies"]} == {"n", "m"}
    assert await wire.ask("deleteCookies", url=f"{site.url}/", name="n") == {"deleted": 1}
    assert await wire.ask("deleteCookies", url=f"{site.url}/", name="n") == {"deleted": 0}
    assert [c["name"] for c in (await wire.ask("getCookies", url=f"{site.url}/"))["cookies"]] == ["m"]
    assert await wire.ask("clearSiteData", origin=site.url, cookies=True) == {
        "origin": site.url,
        "cleared": ["cookies"],
    }
    assert (await wire.ask("getCookies", url=f"{site.url}/"))["cookies"] == []
    with pytest.raises(Refused, match="-32602: url must be a complete http"):
        await wire.ask("getCookies", url="file:///etc")
    with pytest.raises(Refused, match="-32602: One of cookies, localStorage"):
        await wire.ask("clearSiteData", origin=site.url)


async def test_a_click_on_a_notification_opens_its_url_in_an_active_tab(
    wire: Wire, chromium: Chromium, site: Site
) -> None:
    plain = await wire.ask("showNotification", agent="ci", title="Done", message="All of it")
    shown = await wire.ask(
        "showNotification", agent="ci", title="Look", message="here", url=f"{site.url}/other", imageUrl=PIXEL
    )
    assert shown["allowed"] is True
    there = await in_worker(chromium, "chrome.notifications.getAll()")
    assert {plain["notificationId"], shown["notificationId"]} <= set(there)
    before = len(wire.seen)
    await in_worker(chromium, f"chrome.notifications.onClicked.dispatch({shown['notificationId']!r}), 1")
    opened = await wire.next(
        lambda m: m.get("method") == "tab.stateChanged" and m["params"].get("tab", {}).get("title") == "Other",
        after=before,
    )
    assert opened["params"]["tab"]["active"]
    await in_worker(chromium, f"chrome.notifications.onClicked.dispatch({plain['notificationId']!r}), 1")
    await wire.ask("closeTab", tabId=opened["params"]["tabId"])
    wrongs: list[dict[str, Any]] = [
        {"imageUrl": "https://example.com/x.png"},
        {"imageUrl": "data:image/svg+xml,x"},
        {"url": "file:///etc"},
    ]
    for wrong in wrongs:
        with pytest.raises(Refused, match=f"-32602: {next(iter(wrong))} must be"):
            await wire.ask("showNotification", agent="ci", title="t", message="m", **wrong)


async def test_the_extension_lists_its_log_its_open_pages_and_adapters(wire: Wire, chromium: Chromium) -> None:
    everything = await wire.ask("getLogs")
    assert {"worker", "link"} <= set(everything["sources"])
    assert "Connected to the hub" in " ".join(entry["message"] for entry in everything["entries"])
    await wire.notify("nonsense")
    (latest,) = (await wire.ask("getLogs", level="warning", source="link", limit=1))["entries"]
    assert latest["message"] == "Dropped a notification: nonsense"
    assert (await wire.ask("getLogs", since=4102444800000))["entries"] == []
    assert (await wire.ask("getPanels"))["open"] == []
    async with chromium.page(f"chrome-extension://{EXTENSION_ID}/panel/popup.html"):
        panels = await wire.ask("getPanels")
    assert [(p["kind"], p["page"]) for p in panels["open"]] == [("tab", "panel/popup.html")]
    assert panels["shows"]["headline"] == "Connected"
    assert await wire.ask("getAdapters") == {"adapters": []}


async def test_a_requested_reconnect_happens_at_once(wire: Wire, hub: FakeHub) -> None:
    seen = len(hub.wires)
    await wire.socket.close(4006, "connect anew")
    back = await hub.connection(seen + 1)
    assert back.protocols == wire.protocols


@pytest.mark.parametrize(
    ("command", "params", "field"),
    [
        ("createTab", {"group": {"title": "x"}}, "group"),
        ("createTab", {"group": {"key": 5}}, "key"),
        ("createGroup", {}, "tabIds"),
        ("createGroup", {"tabIds": []}, "tabIds"),
        ("addToGroup", {"groupId": 1, "tabIds": ["1"]}, "tabIds"),
        ("addToGroup", {"tabIds": [1]}, "groupId"),
        ("updateGroup", {"groupId": 1, "color": "mauve"}, "color"),
        ("updateGroup", {"groupId": 1, "collapsed": 1}, "collapsed"),
        ("createWindow", {"state": "locked-fullscreen"}, "state"),
        ("createWindow", {"width": 0}, "width"),
        ("updateWindow", {}, "windowId"),
        ("searchHistory", {"maxResults": 0}, "maxResults"),
        ("searchHistory", {"startTime": "now"}, "startTime"),
        ("getVisits", {}, "url"),
        ("restoreSession", {}, "sessionId"),
        ("createBookmark", {"title": "x"}, "url"),
        ("getBookmarkTree", {"maxDepth": 0}, "maxDepth"),
        ("downloadFile", {"url": "about:blank"}, "url"),
        ("downloadFile", {"url": "chrome://settings"}, "url"),
        ("getDownloads", {"state": "done"}, "state"),
        ("getDownload", {"downloadId": "1"}, "downloadId"),
        ("setCookie", {"url": "https://a.example/"}, "name"),
        ("setCookie", {"url": "https://a.example/", "name": "n", "value": 5}, "value"),
        ("deleteCookies", {"url": "https://a.example/"}, "name"),
        ("clearSiteData", {"origin": "https://a.example", "cookies": 1}, "cookies"),
        ("showNotification", {"agent": "ci", "message": "m"}, "title"),
        ("showNotification", {"title": "t", "message": "m"}, "agent"),
        ("getLogs", {"level": "loud"}, "level"),
    ],
)
async def test_a_wrong_parameter_is_refused_by_name(
    wire: Wire, command: str, params: dict[str, Any], field: str
) -> None:
    with pytest.raises(Refused, match=f"^-32602: {field} must"):
        await wire.ask(command, **params)
