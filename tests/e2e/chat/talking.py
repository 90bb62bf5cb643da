"""The chat of a live hub's panel: a hub that has a model, its panel with nothing said yet, and how one talks to it."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from playwright.async_api import Locator, Page, Playwright, expect

from tests.agent.scripted import KEY, Scripted
from tests.e2e import live
from tests.e2e.agenthome import prepared
from tests.e2e.live import EXTENSION, LiveHub
from tests.e2e.panels import browser_of, opened

_models = itertools.count(1)


@contextlib.contextmanager
def chatting(folder: Path) -> Iterator[LiveHub]:
    """A hub whose assistant has the key of a scripted model."""
    prepared(folder)
    hub = live.start(folder, MODEL_KEY=KEY)
    yield hub
    live.stop(hub)


@contextlib.asynccontextmanager
async def new_chat(playwright: Playwright, hub: LiveHub) -> AsyncIterator[Page]:
    """The chat, with nothing said yet."""
    async with browser_of(playwright, hub) as browser:
        popup = await browser.new_page()
        await popup.goto(f"{EXTENSION}/panel/popup.html")
        await popup.evaluate("localStorage.clear()")  # which conversation was open
        await popup.close()
        async with opened(browser, "chat") as page:
            await expect(page.get_by_role("heading", level=2).first).to_have_text("New conversation")
            yield page


async def thinks_with(hub: LiveHub, server: Scripted, page: Page) -> None:
    """Give it a model; the panel shows its name once the hub has taken it."""
    name = f"m{next(_models)}"
    for key, value in (("baseUrl", server.url), ("model", name)):
        assert (await asyncio.to_thread(hub.tabhub, "config", "set", f"agent.{key}", value)).returncode == 0
    await expect(page.locator(".composer-about")).to_contain_text(f"{name} · ")


def message(page: Page) -> Locator:
    return page.get_by_role("textbox", name="Message to the assistant")


async def say(page: Page, text: str) -> None:
    await message(page).fill(text)
    await message(page).press("Enter")


def step(page: Page, tool: str) -> Locator:
    return page.locator(f"[data-step='{tool}']").last
