"""The panel is the person's alone: no way leads an agent into it, nor a tab that goes there by itself."""

from __future__ import annotations

import asyncio

from tests.e2e.live import EXTENSION, Caller, DevTools
from tests.e2e.site import Site

PANEL = f"{EXTENSION}/panel/panel.html?full#home"
BUTTON = "nav button, nav a"
APPEARS = f"""new Promise((done) => {{
  const look = () => (document.querySelector("{BUTTON}") ? done(true) : setTimeout(look, 20));
  look();
}})"""


async def test_what_waits_in_a_tab_that_goes_back_to_the_panel_does_nothing_there(
    agent: Caller, devtools: DevTools, site: Site
) -> None:
    """An agent that could click there would approve its own calls."""
    target = await devtools.open(PANEL)
    async with devtools.connected() as wire:
        session = await wire.attach(target)

        async def told(expression: str) -> object:
            said = await wire.send("Runtime.evaluate", session, expression=expression, awaitPromise=True)
            return said["result"].get("value")

        assert await told(APPEARS)
        tabs = (await agent.get("browser_list_tabs"))["tabs"]
        tab = next(each["tabId"] for each in tabs if each["url"].startswith(EXTENSION))
        for name, more in (("browser_snapshot", {}), ("browser_execute_script", {"code": "return 1"})):
            assert "Tabhub's own panel" in (await agent.fail(name, tabId=tab, **more))["text"]
        # The person goes on in that tab, and the panel is one step back.
        await wire.send("Page.navigate", session, url=site.url)
        async with asyncio.timeout(10):
            while not (await agent.get("browser_get_tab_info", tabId=tab))["url"].startswith(site.url):
                pass  # the hub is told of it by the browser
        assert await agent.run("return location.href", tabId=tab) == f"{site.url}/"
        clicking = asyncio.create_task(agent.call("browser_click_element", tabId=tab, selector=BUTTON))
        await agent.call("browser_go_back", tabId=tab)
        assert (await clicking)["isError"]
        async with asyncio.timeout(10):
            while not str(await told("location.href")).startswith(EXTENSION):
                pass  # it is on its way
        assert await told(APPEARS)
        assert await told("location.href") == PANEL
        assert "Tabhub's own panel" in (await agent.fail("browser_press_key", tabId=tab, key="Tab"))["text"]
        await wire.send("Page.close", session)
