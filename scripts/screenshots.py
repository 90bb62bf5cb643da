#!/usr/bin/env python
"""Takes the pictures of the panel in docs/images, from the real extension and a real hub.

Run it with `.venv/bin/python scripts/screenshots.py`. It starts its own hub and Chromium, lets two agents work in the
example shop, talks to the assistant (whose model is scripted here), holds one call for approval, and takes every view
in both themes, narrow and wide.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from playwright.async_api import Page, async_playwright, expect

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tabhub.cli.demo.shop import serve_shop  # noqa: E402 - after the path is set
from tests.agent.scripted import Turn, scripted  # noqa: E402
from tests.e2e import live  # noqa: E402
from tests.e2e.live import EXTENSION, Caller, LiveHub  # noqa: E402
from tests.extension.panelpage import THEMES, VIEWS, go  # noqa: E402
from tests.harness.agent import client as http_client  # noqa: E402

IMAGES = ROOT / "docs" / "images"
SIZES = {"side": (400, 720), "full": (1200, 760)}
BESIDE = ("home", "chat", "approvals", "tools", "activity")
"""The views that are also taken at the width of the side panel."""


@asynccontextmanager
async def agent(hub: LiveHub, name: str) -> AsyncIterator[Caller]:
    """A named agent."""
    async with http_client(hub, **{"Tabhub-Session": name.replace(" ", "-"), "Tabhub-Client": name}) as http:
        yield Caller(hub, http)


async def work(claude: Caller, cursor: Caller, shop: str) -> asyncio.Future[Any]:
    """A short history, and one call that waits for approval."""
    await claude.open(shop)
    await claude.get("browser_snapshot")
    await claude.call("browser_click_element", selector="button")
    await claude.get("browser_get_tab_content")
    await cursor.open(f"{shop}#about")
    await cursor.get("browser_get_tab_info")
    await cursor.call("browser_wait_for_element", selector="#nowhere", timeout=300)
    await claude.get("browser_list_tabs")
    return asyncio.ensure_future(claude.call("browser_press_key", key="Enter"))


def model(shop: str) -> tuple[Turn, ...]:
    """The scripted answers of the assistant's model."""
    search = ("browser_find", {"text": "lantern"})
    return (
        Turn(
            "I open the shop and look around.", (("browser_open_tab", {"url": shop}), ("browser_get_tab_content", {}))
        ),
        Turn("", (search,)),
        Turn(
            "The shop has two lanterns:\n\n1. **Storm lantern**, 39 €, runs on paraffin\n2. *Pocket lantern*, 24 €, "
            "charges by USB\n\nFor a tent the second is the better one: there is no flame."
        ),
    )


async def talk(page: Page) -> None:
    """A conversation with the assistant, to its end."""
    await go(page, "chat")
    await page.get_by_role("textbox", name="Message to the assistant").fill("Which lantern is best for a tent?")
    await page.keyboard.press("Enter")
    await expect(page.locator(".ended")).to_contain_text("3 steps", timeout=30_000)


async def take(page: Page) -> None:
    """Every view, in every theme and size."""
    for theme in THEMES:
        await page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        for size, (width, height) in SIZES.items():
            await page.set_viewport_size({"width": width, "height": height})
            for view in VIEWS if size == "full" else BESIDE:
                await go(page, view)
                if view == "tools" and not await page.locator(".source.open").count():
                    await page.locator(".source button[aria-expanded=false]").first.click()
                if view != "chat":
                    await page.locator("#main").evaluate("(main) => main.scrollTo(0, 0)")
                await page.screenshot(path=IMAGES / f"panel-{view}-{size}-{theme}.png", animations="disabled")


async def main() -> None:
    """Start everything, take the pictures, end everything."""
    IMAGES.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as name,
        serve_shop(ROOT / "examples" / "shop") as shop,
        scripted(*model(shop)) as server,
    ):
        folder = Path(name)
        (folder / "home").mkdir(mode=0o700)
        plugin = str(ROOT / "examples" / "plugins" / "opentabs-plugin-notes")
        asks = {"browser": {"tools": {"browser_press_key": "ask", "browser_delete_cookies": "off"}}}
        config = {
            "localPlugins": [plugin],
            "permissions": asks,
            "settings": {"notes": {"site": shop}},
            "suggestSites": False,
            "agent": {"baseUrl": server.url, "model": "qwen3-coder:30b"},
        }
        (folder / "home" / "config.json").write_text(json.dumps(config))
        hub = live.start(folder)
        try:
            async with (
                async_playwright() as playwright,
                agent(hub, "Claude Code") as claude,
                agent(hub, "Cursor") as cursor,
            ):
                port = (hub.home / "managed" / "profile" / "DevToolsActivePort").read_text().split("\n")[0]
                browser = await playwright.chromium.connect_over_cdp(f"http://127.0.0.1:{port}")
                page = await browser.contexts[0].new_page()
                await page.goto(f"{EXTENSION}/panel/panel.html?full")
                await talk(page)
                await go(page, "home")
                held = await work(claude, cursor, shop)
                await expect(page.locator("[data-approval]")).to_have_count(1)
                await expect(page.locator(".approvals:not([data-settling])")).to_be_visible()
                await take(page)
                await page.get_by_role("link", name="Home").click()
                await page.get_by_role("button", name="Allow once").click()
                await held
        finally:
            live.stop(hub)
    sys.stdout.write(f"{len(list(IMAGES.glob('panel-*.png')))} pictures in {IMAGES.relative_to(ROOT)}\n")


if __name__ == "__main__":
    asyncio.run(main())
