"""Notification, extension and plugin tools in a real browser."""

from __future__ import annotations

from typing import Any

from tests.e2e.live import EXTENSION, Caller, DevTools, LiveHub
from tests.e2e.live_settings import without_approvals
from tests.e2e.site import Site
from tests.harness.waiting import becomes, eventually, until_outside


async def in_worker(devtools: DevTools, expression: str) -> Any:
    """Evaluate an expression in the extension's worker."""
    (target,) = await devtools.targets("service_worker", EXTENSION)
    async with devtools.connected() as wire:
        session = await wire.attach(target)
        answer = await wire.send(
            "Runtime.evaluate", session, expression=expression, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")


async def test_clicking_a_notification_opens_its_url(
    live_hub: LiveHub, agent: Caller, devtools: DevTools, site: Site
) -> None:
    shown = await agent.get(
        "browser_notify", title="Ready", message="Your report", contextMessage="June", url=f"{site.url}/clicked"
    )
    assert shown["allowed"] is True
    assert shown["notificationId"] in await in_worker(devtools, "chrome.notifications.getAll()")
    await in_worker(devtools, f"chrome.notifications.onClicked.dispatch({shown['notificationId']!r}), 1")
    await site.asked("/clicked")

    async def opened() -> list[dict[str, Any]]:
        listed = (await agent.get("browser_list_tabs"))["tabs"]
        return [tab for tab in listed if tab["url"] == f"{site.url}/clicked"]

    tabs = await eventually(opened)
    agent.opened += [tab["tabId"] for tab in tabs]
    assert [tab["active"] for tab in tabs] == [True]
    for wrong in ({"url": "file:///etc"}, {"iconUrl": "https://example.com/x.png"}, {"url": "javascript:1"}):
        assert (await agent.fail("browser_notify", title="t", message="m", **wrong))["outcome"] == "not_sent"


async def test_the_extension_reports_its_state_logs_and_panel(agent: Caller, devtools: DevTools, site: Site) -> None:
    tab_id = await agent.open(f"{site.url}/")
    await agent.run("return 1")
    (state,) = (await agent.get("extension_get_state"))["browsers"]
    assert state["browserName"] == "Chromium"
    assert tab_id in state["debuggedTabs"]
    assert state["tabs"] == len((await agent.get("browser_list_tabs"))["tabs"])
    logs = await agent.get("extension_get_logs")
    assert {"worker", "link"} <= set(logs["sources"])
    assert any("Connected to the hub" in entry["message"] for entry in logs["entries"])
    (last,) = (await agent.get("extension_get_logs", source="link", limit=1))["entries"]
    assert last["browserId"] == state["browserId"]
    assert (await agent.get("extension_get_logs", since="2099-01-01"))["entries"] == []
    panel = await agent.get("extension_get_side_panel")
    assert (panel["open"], panel["pages"], panel["shows"]["headline"]) == (False, [], "Connected")
    target = await devtools.open(f"{EXTENSION}/panel/popup.html")

    async def shown() -> tuple[bool, list[str]]:
        panel = await agent.get("extension_get_side_panel", browserId=state["browserId"])
        return panel["open"], [page["page"] for page in panel["pages"]]

    await becomes(shown, (True, ["panel/popup.html"]))
    await devtools.send("Target.closeTarget", targetId=target)


async def test_after_reconnect_and_reload_the_browser_keeps_its_tabs(
    live_hub: LiveHub, agent: Caller, site: Site
) -> None:
    tab_id = await agent.open(f"{site.url}/")
    await agent.run("window.mark = 5")
    browser = (await agent.get("browser_get_tab_info"))["browserId"]
    with without_approvals(live_hub):
        renewed = await agent.get("extension_force_reconnect", browserId=browser)
        assert renewed["browserId"] == browser
        assert isinstance(renewed["seconds"], float)
        assert await agent.run("return window.mark", tabId=tab_id) == 5
        (before,) = (await agent.get("extension_get_state"))["browsers"]
        again = await agent.get("extension_reload")
        assert again["browserId"] == browser
    (state,) = (await agent.get("extension_get_state"))["browsers"]
    assert state["startedAt"] > before["startedAt"]
    assert await agent.run("return window.mark", tabId=tab_id) == 5
    await until_outside(lambda: live_hub.ready)
    group = (await agent.get("browser_get_tab_info"))["groupId"]
    await agent.open(f"{site.url}/other")
    assert (await agent.get("browser_get_tab_info"))["groupId"] == group, "the session's group is found again"
    missing = await agent.fail("extension_reload", browserId="never-was")
    assert f"Connected: {browser}." in missing["text"]


async def test_plugin_tools_report_that_no_plugin_is_installed(agent: Caller) -> None:
    assert await agent.get("plugin_list_tabs") == {"plugins": []}
    for name in ("plugin_list_tabs", "extension_check_adapter"):
        error = await agent.fail(name, plugin="mail")
        assert "There is no plugin named 'mail'." in error["text"]
        assert (error["hint"], error["category"]) == ("No plugins are installed.", "not_found")
