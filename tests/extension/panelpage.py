"""The panel's page in a separate Chromium with a scripted worker: for appearance, states and keyboard use.

The panel's effects on a hub are tested in tests/e2e/test_panel.py.
"""

from __future__ import annotations

import contextlib
import functools
import http.server
import shutil
import threading
import weakref
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Literal

from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Error, Page, async_playwright, expect

expect.set_options(timeout=30_000)

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or "chromium"
AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
VIEWS = ("home", "chat", "approvals", "agents", "activity", "tools", "sites", "plugins", "servers", "settings")
_FORGET = "if (!sessionStorage.begun) { localStorage.clear(); sessionStorage.begun = 1; }"
"""Each page starts with empty storage, and keeps it when it is reloaded."""
Theme = Literal["light", "dark"]
THEMES: tuple[Theme, ...] = ("light", "dark")


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_request(self, code: Any = "-", size: Any = "-") -> None:
        """Log nothing."""


@contextlib.contextmanager
def files(folder: Path) -> Iterator[str]:
    """The files of a folder, at a URL."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@contextlib.asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """A headless browser."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        await browser.close()


@contextlib.asynccontextmanager
async def panel(
    browser: Browser,
    address: str,
    view: str = "home",
    *,
    kind: str = "full",
    theme: Theme = "light",
    width: int = 400,
    apart: bool = False,
) -> AsyncIterator[Page]:
    """The panel with one view open; any error in its console fails the test. All panels of a browser share one context
    and reuse its pages, which is much cheaper than a page each, but not their storage. A test that changes something
    all pages of a context share, such as the clock, is `apart`."""
    shared = browser.contexts[0] if browser.contexts else await _scripted_context(browser)
    context = await _scripted_context(browser) if apart else shared
    spare = _spare.setdefault(context, [])
    page = spare.pop() if spare else await context.new_page()
    complaints: list[str] = []

    def failed(error: Error) -> None:
        complaints.append(str(error))

    def on_console(message: ConsoleMessage) -> None:
        if message.type == "error":
            complaints.append(message.text)

    page.on("pageerror", failed)
    page.on("console", on_console)
    usable = False
    try:
        await page.set_viewport_size({"width": width, "height": 900})
        await page.emulate_media(color_scheme=theme)
        await page.goto(f"{address}/panel/panel.html?fake={kind}{'&full' if width > 800 else ''}#{view}")
        await page.locator(".link-state.good, .link-state.bad, .link-state.warn").wait_for()
        yield page
        assert complaints == []
        usable = not apart and not page.is_closed()
    finally:
        page.remove_listener("pageerror", failed)
        page.remove_listener("console", on_console)
        if usable and await _emptied(page):
            spare.append(page)
        else:
            await page.close()
        if apart:
            await context.close()


_spare: weakref.WeakKeyDictionary[BrowserContext, list[Page]] = weakref.WeakKeyDictionary()
"""Unused pages by context; pages of failed tests are not reused."""


async def _emptied(page: Page) -> bool:
    """Reset a page to the state of a new one; False for one that crashed."""
    try:
        await page.evaluate("localStorage.clear(), sessionStorage.clear()")
        await page.goto("about:blank")
        await page.mouse.move(-1, -1)
    except Error:
        return False
    return True


async def _scripted_context(browser: Browser) -> BrowserContext:
    """A context whose pages have a scripted worker in place of the extension's."""
    context = await browser.new_context()
    await context.add_init_script(_FORGET)
    for name in ("panel_state.js", "panel_conversations.js", "panel_fake.js"):
        await context.add_init_script("{\n" + (HERE / name).read_text() + "\n}")
    return context


async def open_all(page: Page) -> None:
    """Expand everything, including nested elements."""
    await page.evaluate("""async () => {
      const closed = () => document.querySelectorAll("main [aria-expanded=false], main details:not([open]) > summary");
      while (closed().length > 0) {
        for (const each of closed()) each.click();
        await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
      }
    }""")


async def go(page: Page, view: str) -> None:
    """Open another view."""
    await page.evaluate(f"location.hash = '{view}'")
    await page.locator(f"body[data-view={view}]").wait_for()


FINISH_ANIMATIONS = """
for (const animation of document.getAnimations()) {
  if (Number.isFinite(animation.effect.getComputedTiming().endTime)) animation.finish();
}
"""
"""Elements have too little contrast while they fade in."""


async def violations(page: Page) -> list[str]:
    """The violations that axe finds in a page once its animations have ended, each with reason and element."""
    if not await page.evaluate("'axe' in globalThis"):
        await page.evaluate(AXE.read_text())
    await page.evaluate(FINISH_ANIMATIONS)
    result = await page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{found['id']}: {node['target']} {node['failureSummary']}"
        for found in result["violations"]
        for node in found["nodes"]
    ]


async def asked(page: Page, method: str) -> list[dict[str, Any]]:
    """The panel's requests to the hub with one method."""
    all_asked = await page.evaluate("panelFake.asked")
    return [params for name, params in all_asked if name == method]


async def request(page: Page, facts: str) -> None:
    """Send an approval request of an agent."""
    await page.evaluate(f"panelFake.event('confirmation.request', {facts})")


async def settled(page: Page) -> None:
    """Wait until a card accepts an answer: one that has just moved does not."""
    await expect(page.locator(".approvals:not([data-settling])")).to_be_visible()
