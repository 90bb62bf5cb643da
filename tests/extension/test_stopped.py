"""The browser's own Cancel button takes a tab from all agents, until the person returns it.

No test can press the button: the worker is sent the event that the browser sends for it.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.extension.conftest import Chromium, Site, in_worker
from tests.extension.fakehub import FakeHub, Refused, Wire
from tests.harness.waiting import eventually

STOPPED = {"code": -32017, "message": "The person stopped you in this tab."}
REFUSED = "-32017: The person stopped you in this tab."
COMMANDS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("forwardCDPCommand", {"method": "Runtime.evaluate", "params": {"expression": "1"}}),
    ("subscribeCDPEvents", {"events": ["Page."]}),
    ("browser_navigate", {"url": "https://example.com/"}),
    ("click", {"x": 1, "y": 1}),
    ("reloadTab", {}),
    ("closeTab", {}),
    ("selectTab", {}),
)


async def cancels(chromium: Chromium, tab: int) -> None:
    """The person presses Cancel: the browser detaches the debugger and says why."""
    await in_worker(
        chromium,
        f"chrome.debugger.detach({{ tabId: {tab} }}).then(() => "
        f"chrome.debugger.onDetach.dispatch({{ tabId: {tab} }}, 'canceled_by_user'))",
    )


@pytest.mark.req("F22")
async def test_every_command_in_the_tab_fails_until_the_person_returns_it(
    chromium: Chromium, wire: Wire, tab: int, site: Site
) -> None:
    await wire.ask("browser_navigate", tabId=tab, url=f"{site.url}/")
    endless = {"expression": "new Promise(() => {})", "awaitPromise": True}
    since = len(wire.seen)
    _, running = await wire.start("forwardCDPCommand", tabId=tab, method="Runtime.evaluate", params=endless)
    await wire.notified("debugger.changed", after=since, attached=[tab])
    await cancels(chromium, tab)
    assert (await running)["error"] == {**STOPPED, "data": {"tabId": tab}}
    assert (await wire.notified("cdp.detached", after=since, tabId=tab))["reason"] == "canceled_by_user"
    for command, params in COMMANDS:
        with pytest.raises(Refused, match=REFUSED):
            await wire.ask(command, tabId=tab, **params)
    with pytest.raises(Refused, match=REFUSED):
        await wire.ask("createGroup", tabIds=[tab])
    assert [each["tabId"] for each in (await wire.ask("getTabs"))["tabs"] if each["stopped"]] == [tab]
    returned = await wire.ask("resumeTab", tabId=tab)
    assert (returned["tabId"], returned["stopped"]) == (tab, False)
    assert (await wire.cdp(tab, "Runtime.evaluate", expression="1"))["result"]["value"] == 1


@pytest.mark.req("F22")
async def test_tab_stays_stopped_when_the_worker_restarts_until_it_is_closed(
    hub: FakeHub, chromium: Chromium, wire: Wire, tab: int
) -> None:
    await wire.cdp(tab, "Runtime.evaluate", expression="1")
    await cancels(chromium, tab)
    seen = len(hub.wires)
    await chromium.stop_worker()
    await wire.closed.wait()
    made = await chromium.devtools("Target.createTarget", url="about:blank", background=True)
    back = await hub.connection(seen + 1)
    with pytest.raises(Refused, match=REFUSED):
        await back.cdp(tab, "Page.enable")
    stopped = await in_worker(chromium, "chrome.storage.local.get('stoppedTabs')")
    assert stopped == {"stoppedTabs": [tab]}
    await in_worker(chromium, f"chrome.tabs.remove({tab})")
    await back.notified("tab.stateChanged", tabId=tab, change="removed")
    assert not [each for each in (await back.ask("getTabs"))["tabs"] if each["stopped"]]
    await chromium.devtools("Target.closeTarget", targetId=made["targetId"])


async def test_command_for_one_site_does_not_run_in_another(wire: Wire, tab: int, site: Site) -> None:
    await wire.ask("browser_navigate", tabId=tab, url=f"{site.url}/")
    press = {"type": "keyDown", "key": "a"}
    script = {"expression": "document.title = 'hit'"}

    async def run(where: str, method: str, params: dict[str, str]) -> Any:
        return await wire.ask("forwardCDPCommand", tabId=tab, site=where, method=method, params=params)

    await run(site.url, "Input.dispatchKeyEvent", press)
    for method, params in (("Input.dispatchKeyEvent", press), ("Runtime.evaluate", script)):
        with pytest.raises(Refused, match="navigated to another site before the command ran"):
            await run("https://bank.example", method, params)
    assert (await run(site.url, "Runtime.evaluate", script))["result"]["value"] == "hit"


async def test_commands_of_one_gesture_do_not_query_the_tab(
    chromium: Chromium, wire: Wire, tab: int, site: Site
) -> None:
    """What the tab shows is known from events, so that a navigation within the gesture is noticed."""
    await wire.ask("browser_navigate", tabId=tab, url=f"{site.url}/")

    async def press() -> None:
        params = {"type": "char", "text": "x"}
        await wire.ask("forwardCDPCommand", tabId=tab, site=site.url, method="Input.dispatchKeyEvent", params=params)

    await press()
    count = "globalThis.queried = 0; globalThis.get = chrome.tabs.get; chrome.tabs.get = (id) => (queried++, get(id));"
    await in_worker(chromium, count)
    try:
        for _ in range(10):
            await press()
        assert await in_worker(chromium, "queried") == 0
        await in_worker(chromium, f"chrome.tabs.update({tab}, {{url: 'http://localhost:{site.port}/other'}})")

        async def moved_on() -> bool:
            tabs = (await wire.ask("getTabs"))["tabs"]
            return any(each["tabId"] == tab and each["url"].endswith("/other") for each in tabs)

        assert await eventually(moved_on)
        with pytest.raises(Refused, match="navigated to another site before the command ran"):
            await press()
    finally:
        await in_worker(chromium, "chrome.tabs.get = get")
