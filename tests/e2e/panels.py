"""The panel of a live hub's own browser, opened as a person opens it."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from playwright.async_api import BrowserContext, Page, Playwright, expect

from tests.e2e.live import EXTENSION, Caller, LiveHub
from tests.harness.waiting import until_outside


@contextlib.asynccontextmanager
async def browser_of(playwright: Playwright, hub: LiveHub) -> AsyncIterator[BrowserContext]:
    """The hub's own browser, as a person sits in front of it."""
    port = (hub.home / "managed" / "profile" / "DevToolsActivePort").read_text().split("\n")[0]
    browser = await playwright.chromium.connect_over_cdp(f"http://127.0.0.1:{port}")
    try:
        yield browser.contexts[0]
    finally:
        await browser.close()  # disconnects; the browser is the hub's and runs on


@contextlib.asynccontextmanager
async def opened(browser: BrowserContext, view: str = "home") -> AsyncIterator[Page]:
    """A panel with one view open; anything the page complains of fails the test."""
    page = await browser.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
    await page.goto(f"{EXTENSION}/panel/panel.html?full#{view}")
    await expect(page.locator("#bar")).to_contain_text("Connected")
    await expect(page.get_by_role("button", name="Pause the agents")).to_be_visible()
    yield page
    assert complaints == []
    await page.close()


async def visit(browser: BrowserContext, agent: Caller, url: str) -> int:
    """Have an agent open a page, and give its tab.

    Playwright holds every new tab until it knows it; one that is sent to an address meanwhile may never get there.
    """
    known = len(browser.pages)
    tab_id = await agent.open("about:blank")
    await until_outside(lambda: len(browser.pages) > known)
    await agent.get("browser_navigate_tab", url=url, tabId=tab_id)
    return tab_id


async def settled(page: Page) -> None:
    """Wait until a card may be answered: one that has just moved is not."""
    await expect(page.locator(".approvals:not([data-settling])")).to_be_visible()
