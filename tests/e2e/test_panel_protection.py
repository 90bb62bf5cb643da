"""The panel belongs to the person: no agent can get into it, even in a tab that navigates there by itself."""

from __future__ import annotations

import asyncio

from tests.e2e.live import EXTENSION, Caller, DevTools
from tests.e2e.site import Site
from tests.harness.waiting import becomes, eventually

PANEL = f"{EXTENSION}/panel/panel.html?full#home"
BUTTON = "nav button, nav a"
APPEARS = f"""new Promise((done) => {{
  const look = () => (document.querySelector("{BUTTON}") ? done(true) : setTimeout(look, 20));
  look();
}})"""


async def test_a_pending_call_does_not_act_in_a_tab_that_became_the_panel(
    agent: Caller, devtools: DevTools, site: Site
) -> None:
    """An agent that could click there could approve its own calls."""
    target = await devtools.open(f"{site.url}/?alone")
    async with devtools.connected() as wire:
        session = await wire.attach(target)
        tab = None
        async with asyncio.timeout(30):
            while tab is None:  # until the browser has reported it to the hub
                tabs = (await agent.get("browser_list_tabs"))["tabs"]
                tab = next((each["tabId"] for each in tabs if each["url"] == f"{site.url}/?alone"), None)
        # It is listed before its page is loaded.
        await becomes(lambda: agent.run("return location.search", tabId=tab), "?alone")
        clicking = asyncio.create_task(agent.call("browser_click_element", tabId=tab, selector=BUTTON))
        await agent.run("return 1", tabId=tab)  # by then the click waits for its element
        await wire.send("Page.navigate", session, url=PANEL)

        async def result(expression: str) -> object:
            output = await wire.send("Runtime.evaluate", session, expression=expression, awaitPromise=True)
            return output["result"].get("value")

        assert await result(APPEARS)
        clicked = await clicking
        assert clicked["isError"], clicked
        assert await result("location.href") == PANEL
        for name, more in (("browser_snapshot", {}), ("browser_press_key", {"key": "Tab"})):
            assert "Tabhub's own panel" in (await agent.fail(name, tabId=tab, **more))["text"]
        # Nor from a page that has the panel one step back in its history.
        await wire.send("Page.navigate", session, url=site.url)

        async def arrived() -> bool:
            url: str = (await agent.get("browser_get_tab_info", tabId=tab))["url"]
            return url.startswith(site.url)

        await eventually(arrived)
        refused = await agent.fail("browser_click_element", tabId=tab, selector=BUTTON)
        assert "could go back to Tabhub's own panel" in refused["text"]
        await wire.send("Page.close", session)
