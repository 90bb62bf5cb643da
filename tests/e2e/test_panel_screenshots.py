"""Every view of the panel matches its stored screenshots, in both themes: the real extension with a fixed state.

Intended changes are stored with `TABHUB_RENEW_SCREENSHOTS=1 pytest tests/e2e/test_panel_screenshots.py`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, async_playwright, expect

from tests.e2e.pictures import MOST, Desk
from tests.extension.conftest import EXTENSION_ID, Chromium
from tests.extension.fakehub import FakeHub
from tests.extension.panelpage import THEMES, VIEWS, Theme, go

PANEL = f"chrome-extension://{EXTENSION_ID}/panel/panel.html"
FAKES = Path(__file__).parents[1] / "extension"
NOON = 1_800_000_000_000
SIZES = {"side": (400, 900), "full": (1200, 800)}
WIDE = ("home", "chat", "tools")
"""The views that are also taken at the size of a full page."""
_SETTLE = """async () => {
  await document.fonts.ready;
  const port = (node) => {
    if (node.nodeType === 3) node.nodeValue = node.nodeValue.replace(/127\\.0\\.0\\.1:\\d{4,5}\\b/, "127.0.0.1:9515");
    else node.childNodes.forEach(port);
  };
  document.querySelectorAll(".connection-text").forEach(port);
  document.activeElement?.blur();
  document.querySelector("main").scrollTo(0, 0);
}"""

_ADOPT = """(style) => {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(style);
  document.adoptedStyleSheets = [sheet];
}"""


@pytest.fixture(scope="module")
def anyio_backend() -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": True}


@pytest.fixture(scope="module")
async def panel(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Page, Desk]]:
    """The panel at a fixed time, and the means to compare screenshots."""
    hub = FakeHub()
    await hub.listen()
    chromium = Chromium(tmp_path_factory.mktemp("pictures"), hub)
    await chromium.start()
    try:
        wire = await hub.connection(1, within=40)
        async with async_playwright() as playwright:
            browser = await playwright.chromium.connect_over_cdp(chromium._address)
            (context,) = browser.contexts
            aside = await context.new_page()
            page = await context.new_page()
            await page.clock.set_fixed_time(NOON)
            await page.goto("about:blank")
            for name in ("panel_state.js", "panel_conversations.js"):
                await page.evaluate(f"(() => {{ {(FAKES / name).read_text()} }})()")
            output: list[Any] = await page.evaluate("[panelState, panelConversations, panelConversation]")
            state, talks, talk = output
            wire.answers |= {"config.getState": state, "agent.list": {"conversations": talks}, "agent.resume": talk}
            wire.answers |= {"audit.list": {"entries": state["activity"]}}
            await page.emulate_media(reduced_motion="reduce")
            await page.goto(f"{PANEL}#home")
            await page.evaluate("([key, value]) => localStorage.setItem(key, value)", ["conversation", talks[0]["id"]])
            yield page, await Desk.ready(aside, tmp_path_factory.mktemp("differences"))
    finally:
        await chromium.stop()
        await hub.stop()


async def load(page: Page, size: str, theme: Theme) -> None:
    width, height = SIZES[size]
    await page.emulate_media(color_scheme=theme, reduced_motion="reduce")
    await page.set_viewport_size({"width": width, "height": height})
    await page.goto("about:blank")
    await page.goto(f"{PANEL}{'?full' if size == 'full' else ''}#home")
    await expect(page.get_by_role("button", name="Pause agents")).to_be_visible()


async def picture(page: Page, view: str) -> bytes:
    """A screenshot of a view once nothing moves."""
    await go(page, view)
    if view in ("home", "approvals"):
        await expect(page.locator(".approvals:not([data-settling])")).to_be_visible()
    if view == "chat":
        await expect(page.locator(".message.model")).to_have_count(3)
    if view == "tools":
        closed = page.locator(".source button[aria-expanded=false]")
        count = await closed.count()
        await closed.first.click()
        await expect(closed).to_have_count(count - 1)
        await page.mouse.move(0, 0)  # a row that slid under the pointer would look different
    await page.evaluate(_SETTLE)
    return await page.screenshot(animations="disabled", caret="hide")


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("size", SIZES)
async def test_the_views_match_their_stored_screenshots(panel: tuple[Page, Desk], size: str, theme: Theme) -> None:
    page, desk = panel
    await load(page, size, theme)
    views = VIEWS if size == "side" else WIDE
    found = [await desk.problem(f"{view}-{size}-{theme}", await picture(page, view)) for view in views]
    assert [problem for problem in found if problem] == []


async def test_the_comparison_detects_changes_but_tolerates_font_rendering(panel: tuple[Page, Desk]) -> None:
    """In a view where no line of text is so long that other letters wrap it differently."""
    page, desk = panel
    await load(page, "side", "light")
    before = await picture(page, "agents")
    smoothed = await styled(page, "body { text-rendering: geometricPrecision }")
    assert smoothed != before
    assert (await desk.compare(before, smoothed))["share"] <= MOST
    coloured = await styled(page, ".card { background: rgb(170 0 120) !important }")
    assert (await desk.compare(before, coloured))["share"] > MOST
    assert (await desk.compare(before, await styled(page, "")))["share"] == 0
    await load(page, "side", "dark")
    assert (await desk.compare(before, await picture(page, "agents")))["colours"] > 0.5


async def styled(page: Page, style: str) -> bytes:
    """A screenshot with a style that the page has only while it is taken."""
    await page.evaluate(_ADOPT, style)
    try:
        return await page.screenshot(animations="disabled", caret="hide")
    finally:
        await page.evaluate("document.adoptedStyleSheets = []")
