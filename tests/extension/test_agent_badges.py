"""The badge in a tab that an agent works in: visible to the person, invisible to page and agent."""

from __future__ import annotations

import base64
from typing import Any

from tests.e2e import png
from tests.extension.conftest import Chromium, Site, in_worker
from tests.extension.fakehub import FakeHub, Refused, Wire
from tests.extension.pagetab import PageTab
from tests.harness.waiting import becomes

MARK = "getComputedStyle(document.documentElement, '::after').content"
SHOWN = '\'"■ Stop │ Claude" / ""\''


def mark(tab: int, label: str = "Claude", color: str = "blue") -> dict[str, Any]:
    return {"tabId": tab, "label": label, "color": color}


async def test_a_badge_is_shown_kept_across_navigation_changed_and_removed(wire: Wire, tab: int, site: Site) -> None:
    page = PageTab(wire, tab, 0)
    await wire.ask("browser_navigate", tabId=tab, url=f"{site.url}/strict")
    elements = await page.run("document.documentElement.outerHTML")
    await wire.notify("agents.marks", tabs=[mark(tab), mark(999_999), {"tabId": "x"}, None])
    await page.until(f"{MARK} === {SHOWN}")
    # The document is unchanged, for the page and for an agent's snapshot.
    assert await page.run("document.documentElement.outerHTML") == elements
    assert await page.run("getComputedStyle(document.documentElement, '::after').pointerEvents") == "none"
    assert "Claude" not in str(await wire.cdp(tab, "Accessibility.getFullAXTree"))
    await wire.ask("browser_navigate", tabId=tab, url=f"{site.url}/other")
    await page.until(f"{MARK} === {SHOWN}")
    await wire.notify("agents.marks", tabs=[mark(tab, '"; } * { display: none } \\', "#b4531f")])
    await page.until(f"{MARK}.includes('display')")
    assert await page.run("getComputedStyle(document.body).display") == "block"
    assert await page.run("getComputedStyle(document.documentElement, '::after').backgroundColor") == "rgb(180, 83, 31)"
    await wire.notify("agents.marks", tabs=[])
    await page.until(f"{MARK} === 'none' || {MARK} === 'normal'")


async def test_an_agents_screenshot_does_not_show_the_badge(
    wire: Wire, tab: int, chromium: Chromium, site: Site
) -> None:
    page = PageTab(wire, tab, 0)
    await wire.ask("browser_navigate", tabId=tab, url=f"{site.url}/red")
    await wire.ask("activateTab", tabId=tab)
    await wire.notify("agents.marks", tabs=[mark(tab)])
    await page.until(f"{MARK} === {SHOWN}")

    def colours(data: str) -> set[tuple[int, int, int]]:
        picture = png.read(base64.b64decode(data))
        return {picture.at(x, y) for x in range(picture.width) for y in range(picture.height)}

    assert colours((await wire.cdp(tab, "Page.captureScreenshot", format="png"))["data"]) == {(255, 0, 0)}
    await page.until(f"{MARK} === {SHOWN}")
    targets = (await chromium.devtools("Target.getTargets"))["targetInfos"]
    (target,) = [target["targetId"] for target in targets if target["url"] == f"{site.url}/red"]
    session = (await chromium.devtools("Target.attachToTarget", targetId=target, flatten=True))["sessionId"]
    assert len(colours((await chromium.devtools("Page.captureScreenshot", session=session))["data"])) > 2
    await wire.notify("agents.marks", tabs=[])


async def test_the_stop_button_takes_the_tab_from_the_agent_unseen_by_the_page(
    wire: Wire, tab: int, chromium: Chromium, site: Site
) -> None:
    page = PageTab(wire, tab, 0)
    await wire.ask("browser_navigate", tabId=tab, url=f"{site.url}/strict")
    await wire.ask("activateTab", tabId=tab)
    await page.run("globalThis.clicks = 0; addEventListener('click', () => clicks += 1); 1")
    await wire.notify("agents.marks", tabs=[{**mark(tab), "doing": 'clicking "Pay now"'}])
    await page.until(f"{MARK}.includes('Claude: clicking')")
    width = "parseFloat(getComputedStyle(document.documentElement, '::after').width)"
    x, y = await page.run(f"[document.documentElement.clientWidth - 8 - {width} + 20, innerHeight - 18]")
    press = {"x": x, "y": y, "button": "left", "clickCount": 1}
    # A click of the agent in that place is not the person's: it reaches the page, and stops nobody.
    for kind in ("mousePressed", "mouseReleased"):
        await wire.cdp(tab, "Input.dispatchMouseEvent", type=kind, **press)
    await page.until("clicks === 1")
    await page.until(f"{MARK}.includes('Claude: clicking')")
    # One that does not come from the agent is.
    targets = (await chromium.devtools("Target.getTargets"))["targetInfos"]
    (target,) = [target["targetId"] for target in targets if target["url"] == f"{site.url}/strict"]
    session = (await chromium.devtools("Target.attachToTarget", targetId=target, flatten=True))["sessionId"]
    for kind in ("mousePressed", "mouseReleased"):
        await chromium.devtools("Input.dispatchMouseEvent", session=session, type=kind, **press)

    async def stopped() -> bool:
        try:
            await wire.cdp(tab, "Runtime.evaluate", expression="1")
        except Refused as error:
            return "The person stopped you" in str(error)
        return False

    await becomes(stopped, True)
    clicks = await chromium.devtools("Runtime.evaluate", session=session, expression="clicks")
    assert clicks["result"]["value"] == 1
    await wire.ask("resumeTab", tabId=tab)
    await wire.notify("agents.marks", tabs=[])


RECORD = """(() => {
  globalThis.insertStyle = chrome.scripting.insertCSS;
  const insert = insertStyle.bind(chrome.scripting);
  globalThis.styles = [];
  chrome.scripting.insertCSS = (style) => (styles.push(style.css), insert(style));
  return 1;
})()"""


async def test_an_outline_is_shown_for_a_moment_around_the_element(
    wire: Wire, tab: int, chromium: Chromium, site: Site
) -> None:
    page = PageTab(wire, tab, 0)
    await wire.ask("browser_navigate", tabId=tab, url=f"{site.url}/strict")
    elements = await page.run("document.documentElement.outerHTML")
    await in_worker(chromium, RECORD)
    box = {"x": 30, "y": 40, "width": 100, "height": 20, "color": "#18733a"}
    await wire.notify("agents.outline", tabId=tab, **box)
    await becomes(lambda: in_worker(chromium, "styles.length"), 1)
    style = await in_worker(chromium, "chrome.scripting.insertCSS = globalThis.insertStyle, styles[0]")
    for rule in (":root::before", "left: 27px", "top: 37px", "width: 106px", "#18733a", "pointer-events: none"):
        assert rule in style
    assert await page.run("document.documentElement.outerHTML") == elements
    before = "getComputedStyle(document.documentElement, '::before').content"
    await page.until(f"{before} === 'none' || {before} === 'normal'")


async def test_without_a_hub_there_is_no_badge(wire: Wire, tab: int, hub: FakeHub, site: Site) -> None:
    page = PageTab(wire, tab, 0)
    await wire.ask("browser_navigate", tabId=tab, url=f"{site.url}/other")
    await wire.notify("agents.marks", tabs=[mark(tab)])
    await page.until(f"{MARK} === {SHOWN}")
    count = len(hub.wires)
    await wire.socket.close(4006)
    again = PageTab(await hub.connection(count + 1), tab, 0)
    await again.until(f"{MARK} !== {SHOWN}")
