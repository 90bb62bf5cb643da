"""The panel's page in a Chromium of its own, with a scripted worker behind it: for looks, states and keyboards.

What the panel does to a hub is shown in tests/e2e/test_panel.py.
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
"""Each page begins with nothing stored, and keeps what it stores when it is loaded again."""
Theme = Literal["light", "dark"]
THEMES: tuple[Theme, ...] = ("light", "dark")


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_request(self, code: Any = "-", size: Any = "-") -> None:
        """Say nothing."""


@contextlib.contextmanager
def files(folder: Path) -> Iterator[str]:
    """The files of a folder, at an address."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@contextlib.asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """A browser without a window."""
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
    """The panel with one view open; any error in its console fails the test.

    All panels of a browser share one context, and one after the other its pages, which is much cheaper than a page
    each, but not what they store. A test that changes what all pages of a context have, like the clock, is `apart`.
    """
    shared = browser.contexts[0] if browser.contexts else await _scripted_context(browser)
    context = await _scripted_context(browser) if apart else shared
    spare = _spare.setdefault(context, [])
    page = spare.pop() if spare else await context.new_page()
    complaints: list[str] = []

    def failed(error: Error) -> None:
        complaints.append(str(error))

    def said(message: ConsoleMessage) -> None:
        if message.type == "error":
            complaints.append(message.text)

    page.on("pageerror", failed)
    page.on("console", said)
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
        page.remove_listener("console", said)
        if usable and await _emptied(page):
            spare.append(page)
        else:
            await page.close()
        if apart:
            await context.close()


_spare: weakref.WeakKeyDictionary[BrowserContext, list[Page]] = weakref.WeakKeyDictionary()
"""Pages that nobody uses, by their context; none in which a test has failed."""


async def _emptied(page: Page) -> bool:
    """Leave a page as a new one is: with nothing shown or stored, and no mouse over it; False for one that crashed."""
    try:
        await page.evaluate("localStorage.clear(), sessionStorage.clear()")
        await page.goto("about:blank")
        await page.mouse.move(-1, -1)
    except Error:
        return False
    return True


async def _scripted_context(browser: Browser) -> BrowserContext:
    """A context whose pages find a scripted worker in place of the extension's."""
    context = await browser.new_context()
    await context.add_init_script(_FORGET)
    for name in ("panel_state.js", "panel_conversations.js", "panel_fake.js"):
        await context.add_init_script("{\n" + (HERE / name).read_text() + "\n}")
    return context


async def open_all(page: Page) -> None:
    """Open everything that opens, also what is inside."""
    await page.evaluate("""async () => {
      const closed = () => document.querySelectorAll("main [aria-expanded=false], main details:not([open]) > summary");
      while (closed().length > 0) {
        for (const each of closed()) each.click();
        await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
      }
    }""")


async def go(page: Page, view: str) -> None:
    """Show another view."""
    await page.evaluate(f"location.hash = '{view}'")
    await page.locator(f"body[data-view={view}]").wait_for()


FINISH_ANIMATIONS = """
for (const animation of document.getAnimations()) {
  if (Number.isFinite(animation.effect.getComputedTiming().endTime)) animation.finish();
}
"""
"""An element that is fading in has too little contrast, for a moment."""


async def violations(page: Page) -> list[str]:
    """What axe finds wrong with a page once its animations have ended, each with where and why."""
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
    """What the panel asked the hub of one kind."""
    all_asked = await page.evaluate("panelFake.asked")
    return [params for name, params in all_asked if name == method]


async def request(page: Page, facts: str) -> None:
    """An agent asks."""
    await page.evaluate(f"panelFake.event('confirmation.request', {facts})")


async def settled(page: Page) -> None:
    """Wait until a card may be answered: one that has just moved is not."""
    await expect(page.locator(".approvals:not([data-settling])")).to_be_visible()
