"""Agents cannot use the extension's own pages: no command navigates there, and no injected script runs there."""

from __future__ import annotations

import pytest

from tests.extension.conftest import EXTENSION_ID, Chromium, Site
from tests.extension.fakehub import FakeHub, Refused, Wire

OWN = f"chrome-extension://{EXTENSION_ID}/panel/panel.html?full"
APPEARS = """new Promise((done) => {
  const look = () => (document.querySelector("nav a") ? done(true) : setTimeout(look, 20));
  look();
})"""
ADDRESSES = [OWN, OWN.replace("chrome-", "CHROME-"), f" {OWN}", OWN.replace("-ext", "-\next"), f"view-source:{OWN}"]


@pytest.fixture
async def tab(wire: Wire, site: Site) -> int:
    made: int = (await wire.ask("createTab", url=f"{site.url}/", waitUntil="load"))["tabId"]
    return made


@pytest.mark.parametrize("url", ADDRESSES)
async def test_no_command_navigates_to_a_page_of_the_extension(wire: Wire, tab: int, url: str) -> None:
    go = {"method": "Page.navigate", "params": {"url": url}}
    look = {"method": "Page.getFrameTree", "params": {}}
    for given in ({**go}, {**look, "ahead": [go]}, {**look, "follow": [go]}):
        with pytest.raises(Refused, match="would show Tabhub's own panel"):
            await wire.ask("forwardCDPCommand", tabId=tab, **given)
    with pytest.raises(Refused):
        await wire.ask("browser_navigate", tabId=tab, url=url)


async def test_persistent_scripts_are_refused(wire: Wire, tab: int) -> None:
    """A script registered for a tab would run in the panel when a person opens it there, with all of the extension's
    privileges."""
    for method, params in (
        ("Page.addScriptToEvaluateOnNewDocument", {"source": "1"}),
        ("Page.addScriptToEvaluateOnLoad", {"scriptSource": "1"}),
        ("Debugger.setBreakpointByUrl", {"lineNumber": 1, "urlRegex": ".*", "condition": "1"}),
        ("Page.reload", {"scriptToEvaluateOnLoad": "1"}),
    ):
        with pytest.raises(Refused, match="pages without permission"):
            await wire.cdp(tab, method, **params)
    await wire.cdp(tab, "Page.reload")


async def test_a_tab_that_navigates_to_the_panel_is_detached_and_stays_so(
    hub: FakeHub, chromium: Chromium, wire: Wire, site: Site
) -> None:
    async with chromium.page(f"{site.url}/other") as command:
        (tab,) = [each["tabId"] for each in (await wire.ask("getTabs"))["tabs"] if each["url"] == f"{site.url}/other"]
        await wire.cdp(tab, "Fetch.enable", patterns=[{"urlPattern": "chrome-extension://*"}])
        await wire.ask("subscribeCDPEvents", tabId=tab, events=["Fetch."])
        since = len(wire.seen)
        await command("Page.navigate", url=OWN)
        assert (await wire.notified("cdp.detached", after=since))["tabId"] == tab
        # Its files belong to it: the code that would have replied for them is gone.
        assert (await command("Runtime.evaluate", expression=APPEARS, awaitPromise=True))["result"]["value"] is True
        assert not [each for each in wire.seen[since:] if each.get("method") == "cdp.event"]
        with pytest.raises(Refused, match="shows Tabhub's own panel"):
            await wire.cdp(tab, "Runtime.evaluate", expression="1")
        since = len(wire.seen)
        await command("Page.navigate", url=f"{site.url}/")
        await wire.next(
            lambda each: f"{site.url}/" in str(each.get("params", {}).get("tab", {}).get("url")), after=since
        )
        with pytest.raises(Refused, match="could go back to Tabhub's own panel"):
            await wire.cdp(tab, "Runtime.evaluate", expression="1")
