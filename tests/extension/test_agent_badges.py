"""The badge in a tab that an agent works in: visible to the person, invisible to page and agent."""

from __future__ import annotations

import base64
from typing import Any

from tests.e2e import png
from tests.extension.conftest import Chromium, Site
from tests.extension.fakehub import FakeHub, Wire
from tests.extension.pagetab import PageTab

MARK = "getComputedStyle(document.documentElement, '::after').content"
SHOWN = '\'"Claude" / ""\''


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


async def test_without_a_hub_there_is_no_badge(wire: Wire, tab: int, hub: FakeHub, site: Site) -> None:
    page = PageTab(wire, tab, 0)
    await wire.ask("browser_navigate", tabId=tab, url=f"{site.url}/other")
    await wire.notify("agents.marks", tabs=[mark(tab)])
    await page.until(f"{MARK} === {SHOWN}")
    count = len(hub.wires)
    await wire.socket.close(4006)
    again = PageTab(await hub.connection(count + 1), tab, 0)
    await again.until(f"{MARK} !== {SHOWN}")
