"""The panel of a live hub's browser, opened as a person opens it."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
from playwright.async_api import BrowserContext, ConsoleMessage, Error, Page, Playwright, expect

from tests.e2e.live import EXTENSION, Caller, LiveHub
from tests.harness.waiting import eventually

_FORGET = """if (location.protocol === "chrome-extension:" && !sessionStorage.begun) {
  localStorage.clear();
  sessionStorage.begun = 1;
}"""
"""Each panel starts with empty storage, and keeps it when it is reloaded."""
_spare: weakref.WeakKeyDictionary[BrowserContext, list[Page]] = weakref.WeakKeyDictionary()
"""Empty, unused pages; pages of failed tests are not reused."""


@contextlib.asynccontextmanager
async def browser_of(playwright: Playwright, hub: LiveHub) -> AsyncIterator[BrowserContext]:
    """The hub's browser, as the person in front of it uses it."""
    port = (hub.home / "managed" / "profile" / "DevToolsActivePort").read_text().split("\n")[0]
    browser = await playwright.chromium.connect_over_cdp(f"http://127.0.0.1:{port}")
    context = browser.contexts[0]
    try:
        yield context
        if browser.is_connected():
            for page in _spare.get(context, ()):
                await page.close()
    finally:
        await browser.close()  # only disconnects: the browser is the hub's and continues to run


@contextlib.asynccontextmanager
async def opened(browser: BrowserContext, view: str = "home", *, remembering: bool = False) -> AsyncIterator[Page]:
    """A panel with one view open; any error in its console fails the test. Panels reuse the pages of a browser, which
    costs half of a new page each, but start with empty storage, unless this one is `remembering`."""
    spare = _spare.setdefault(browser, [])
    page = spare.pop() if spare and not remembering else await _new_page(browser, remembering=remembering)
    complaints: list[str] = []

    def failed(error: Error) -> None:
        complaints.append(str(error))

    def output(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            complaints.append(message.text)

    page.on("pageerror", failed)
    page.on("console", output)
    usable = False
    try:
        await page.bring_to_front()
        await page.goto(f"{EXTENSION}/panel/panel.html?full#{view}")
        await expect(page.locator("#bar")).to_contain_text("Connected")
        await expect(page.get_by_role("button", name="Pause agents")).to_be_visible()
        yield page
        assert complaints == []
        # A viewport size that was set cannot be unset.
        usable = not remembering and not page.is_closed() and page.viewport_size is None
    finally:
        page.remove_listener("pageerror", failed)
        page.remove_listener("console", output)
        if usable:
            await _empty(page)
            spare.append(page)
        else:
            await page.close()


@contextlib.asynccontextmanager
async def panel_of(browser: BrowserContext, request: pytest.FixtureRequest, view: str = "home") -> AsyncIterator[Page]:
    """The panel of a fixture, which does not know whether its test failed; its page is not reused."""
    failed = request.session.testsfailed
    async with opened(browser, view) as page:
        yield page
        if request.session.testsfailed != failed:
            await page.close()


async def _new_page(browser: BrowserContext, *, remembering: bool) -> Page:
    page = await browser.new_page()
    if not remembering:
        await page.add_init_script(_FORGET)
    return page


async def _empty(page: Page) -> None:
    """Reset a page to the state of a new one."""
    await page.evaluate("sessionStorage.clear()")
    await page.goto("about:blank")
    await page.emulate_media(color_scheme="null")


async def visit(browser: BrowserContext, agent: Caller, url: str) -> int:
    """Have an agent work in a page, in a tab that no other agent uses; returns the tab. The tabs are the person's, so
    that they outlive an agent; the next agent reuses them, which is cheaper than opening new ones."""
    tabs = _tabs.setdefault(browser, {})
    for tab_id in [tab_id for tab_id, user in tabs.items() if user.http.is_closed]:
        if not (await agent.call("browser_navigate_tab", url=url, tabId=tab_id)).get("isError"):
            tabs[tab_id] = agent
            return tab_id
        del tabs[tab_id]  # a test has left it in an unusable state
    address = f"about:blank?{uuid4()}"
    await _open_behind(browser, address)

    async def listed() -> int | None:
        there = (await agent.get("browser_list_tabs"))["tabs"]
        return next((int(tab["tabId"]) for tab in there if tab["url"] == address), None)

    tab_id = await eventually(listed)
    tabs[tab_id] = agent
    await agent.get("browser_navigate_tab", url=url, tabId=tab_id)
    return tab_id


async def _open_behind(browser: BrowserContext, address: str) -> None:
    """Open a tab that does not cover the panel, because covered pages are not painted. Playwright pauses every new tab
    until it has attached to it; one that is navigated meanwhile may never arrive."""
    assert browser.browser is not None
    devtools = await browser.browser.new_browser_cdp_session()
    async with browser.expect_page(lambda page: page.url == address):
        await devtools.send("Target.createTarget", {"url": address, "background": True})
    await devtools.detach()


_tabs: weakref.WeakKeyDictionary[BrowserContext, dict[int, Caller]] = weakref.WeakKeyDictionary()
"""The tabs of `visit`, and the last user of each."""


async def settled(page: Page) -> None:
    """Wait until a card accepts an answer: one that has just moved does not."""
    await expect(page.locator(".approvals:not([data-settling])")).to_be_visible()
