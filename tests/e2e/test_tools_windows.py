"""The window tools in a real browser."""

from __future__ import annotations

from typing import Any

from tests.e2e import live
from tests.e2e.live import Caller, LiveHub
from tests.e2e.site import Site


async def windows(agent: Caller) -> dict[int, dict[str, Any]]:
    return {window["windowId"]: window for window in (await agent.get("browser_list_windows"))["windows"]}


async def test_a_window_is_opened_changed_and_closed(agent: Caller, site: Site) -> None:
    before = await windows(agent)
    made = await agent.get("browser_create_window", url=f"{site.url}/", width=640, height=480, left=30, top=40)
    window = made["window"]
    assert (made["title"], made["ok"], window["tabIds"]) == ("Plain page", True, [made["tabId"]])
    assert (window["width"], window["height"], window["left"], window["top"]) == (640, 480, 30, 40)
    # The session continues in the new window's tab.
    assert await agent.run("return [innerWidth < 700, location.pathname]") == [True, "/"]
    now = await windows(agent)
    assert now.keys() - before.keys() == {window["windowId"]}
    assert now[window["windowId"]]["activeTabId"] == made["tabId"]
    number = window["windowId"]
    wider = await agent.get("browser_update_window", windowId=number, width=800)
    assert (wider["width"], wider["height"]) == (800, 480)
    assert (await agent.get("browser_update_window", windowId=number, state="maximized"))["state"] == "maximized"
    assert (await agent.get("browser_update_window", windowId=number, state="normal", focused=True))["focused"] is True
    closed = await agent.get("browser_close_window", windowId=number)
    assert closed == {"windowId": number, "closed": True, "tabIds": [made["tabId"]]}
    assert number not in await windows(agent)
    assert made["tabId"] not in [tab["tabId"] for tab in (await agent.get("browser_list_tabs"))["tabs"]]


async def test_a_data_url_opens_with_the_window_which_stays_open_on_failure(agent: Caller, site: Site) -> None:
    data = await agent.get("browser_create_window", url="data:text/html,<title>Inside</title>")
    await agent.get("browser_close_window", windowId=data["window"]["windowId"])
    error = await agent.fail("browser_create_window", url="http://nowhere.invalid/")
    assert "ERR_NAME_NOT_RESOLVED" in error["text"]
    assert f"Tab {error['tabId']} stays open." in error["text"]
    agent.opened.append(error["tabId"])
    refused = await agent.fail("browser_create_window", url="javascript:alert(1)")
    assert refused["outcome"] == "not_sent"


async def test_incognito_needs_the_persons_permission(agent: Caller) -> None:
    error = await agent.fail("browser_create_window", incognito=True)
    assert "Allow in Incognito" in error["text"]


async def test_conflicting_arguments_and_unknown_windows_are_refused(agent: Caller) -> None:
    there = next(iter(await windows(agent)))
    together = await agent.fail("browser_update_window", windowId=there, state="maximized", width=500)
    assert "A window that is maximized cannot have width." in together["text"]
    assert "Nothing to change." in (await agent.fail("browser_update_window", windowId=there))["text"]
    for name, more in (("browser_update_window", {"focused": True}), ("browser_close_window", {})):
        error = await agent.fail(name, windowId=999_999, **more)
        assert "There is no windowId 999999." in error["text"]
        assert f"{there} (normal, " in error["text"]


async def test_the_only_window_and_one_with_another_sessions_tab_stay_open(
    live_hub: LiveHub, agent: Caller, site: Site
) -> None:
    (only,) = await windows(agent)
    assert "the only one of its browser" in (await agent.fail("browser_close_window", windowId=only))["text"]
    async with live.caller(live_hub) as other:
        made = await other.get("browser_create_window", url=f"{site.url}/")
        number = made["window"]["windowId"]
        error = await agent.fail("browser_close_window", windowId=number)
        assert f"Tab {made['tabId']} is held by another session" in error["text"]
        assert number in await windows(agent)
        await other.get("browser_close_window", windowId=number)
