"""The panel of a live hub's own browser, opened as a person opens it."""

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
"""Each panel begins with nothing stored, and keeps what it stores when it is loaded again."""
_spare: weakref.WeakKeyDictionary[BrowserContext, list[Page]] = weakref.WeakKeyDictionary()
"""Empty pages that nobody uses; none in which a test has failed."""


@contextlib.asynccontextmanager
async def browser_of(playwright: Playwright, hub: LiveHub) -> AsyncIterator[BrowserContext]:
    """The hub's own browser, as a person sits in front of it."""
    port = (hub.home / "managed" / "profile" / "DevToolsActivePort").read_text().split("\n")[0]
    browser = await playwright.chromium.connect_over_cdp(f"http://127.0.0.1:{port}")
    context = browser.contexts[0]
    try:
        yield context
        if browser.is_connected():
            for page in _spare.get(context, ()):
                await page.close()
    finally:
        await browser.close()  # disconnects; the browser is the hub's and runs on


@contextlib.asynccontextmanager
async def opened(browser: BrowserContext, view: str = "home", *, remembering: bool = False) -> AsyncIterator[Page]:
    """A panel with one view open; anything the page complains of fails the test.

    Panels use the pages of a browser one after the other, which costs half of a new page each, but find nothing that
    another has stored, unless this one is `remembering`.
    """
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
        # A size that was set cannot be taken back.
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
    """The panel of a fixture, which is not told that its test has failed: nobody else uses the page then."""
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
    """Leave a page as a new one is."""
    await page.evaluate("sessionStorage.clear()")
    await page.goto("about:blank")
    await page.emulate_media(color_scheme="null")


async def visit(browser: BrowserContext, agent: Caller, url: str) -> int:
    """Have an agent work in a page, in a tab that no other does, and give the tab.

    The tabs are the person's, so that they outlive an agent; the next one takes them over, which costs less than to
    open one.
    """
    tabs = _tabs.setdefault(browser, {})
    for tab_id in [tab_id for tab_id, user in tabs.items() if user.http.is_closed]:
        if not (await agent.call("browser_navigate_tab", url=url, tabId=tab_id)).get("isError"):
            tabs[tab_id] = agent
            return tab_id
        del tabs[tab_id]  # a test has left it in a state that nobody can use
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
    """Open a tab that does not cover the panel, for a page that nobody sees draws nothing.

    Playwright holds every new tab until it knows it; one that is sent to an address meanwhile may never get there.
    """
    assert browser.browser is not None
    devtools = await browser.browser.new_browser_cdp_session()
    async with browser.expect_page(lambda page: page.url == address):
        await devtools.send("Target.createTarget", {"url": address, "background": True})
    await devtools.detach()


_tabs: weakref.WeakKeyDictionary[BrowserContext, dict[int, Caller]] = weakref.WeakKeyDictionary()
"""The tabs of `visit`, each with who used it last."""


async def settled(page: Page) -> None:
    """Wait until a card may be answered: one that has just moved is not."""
    await expect(page.locator(".approvals:not([data-settling])")).to_be_visible()
