"""The element of a pending approval as the person sees it: a picture of it in its page, and the tab itself.

Owns the panel's methods for that. Nothing of a site that the agent is kept off is shown.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from tabhub.browser.driver.cdp_values import parse_number, parse_object
from tabhub.browser.elements.element import Element
from tabhub.browser.screenshots import capture
from tabhub.calls.approvals.element_lookup import ElementLookup
from tabhub.calls.approvals.inbox import ApprovalInbox
from tabhub.core.agent_colours import COLOURS, AgentColours
from tabhub.core.sessions import Session
from tabhub.errors import NotFound
from tabhub.links.extension import ExtensionLink, Handler
from tabhub.server.panel.tab_marks import TabMarks
from tabhub.wire.panel import OneApproval

_WIDTH, _HEIGHT = 420.0, 200.0
"""CSS pixels of the page around an element; more if the element is larger, which is then shown smaller."""
_MARGIN = 24.0
_QUALITY = 60


@dataclass(frozen=True, slots=True)
class Previews:
    """The previews of one hub."""

    inbox: ApprovalInbox
    lookup: ElementLookup
    marks: TabMarks
    colours: AgentColours

    def methods(self) -> dict[str, Handler]:
        return {"approvals.picture": self._picture, "approvals.show": self._show}

    async def _picture(self, _link: ExtensionLink, wanted: OneApproval) -> dict[str, Any]:
        """A JPEG of the element in its page as base64, and the part of it that the element fills; null if it is too
        large."""
        element = self._open(wanted.id)[2]
        if element is None:
            return {"picture": None}
        box, limits = self.lookup.box, self.inbox.limits
        async with asyncio.timeout(limits.call_timeout):
            with box.awake.awake(element.page):
                clip, place = await _clip(element)
                params = {"format": "jpeg", "quality": _QUALITY, "clip": clip, "captureBeyondViewport": True}
                encoded = await capture(element.page, box.emulation, params, [], None)
        if len(encoded) > limits.approval_picture:
            return {"picture": None}
        return {"picture": encoded.decode(), "place": place}

    async def _show(self, _link: ExtensionLink, wanted: OneApproval) -> dict[str, Any]:
        """Bring the tab to the front, scroll to the element and outline it."""
        session, tab_id, element = self._open(wanted.id)
        if tab_id is None:
            raise NotFound("This call is not about a tab.")
        page = element.page if element is not None else self.lookup.page(session, tab_id)
        await page.command("activateTab", {"focusWindow": True})
        if element is not None:
            await element.call("show_element")
            area = await element.box()
            color = COLOURS[self.colours.of(session)]
            self.marks.outline_area(page.tab_id, (area.x, area.y, area.width, area.height), color, long=True)
        return {"ok": True}

    def _open(self, request_id: str) -> tuple[Session, int | None, Element | None]:
        found = self.inbox.open_request(request_id)
        if found is None:
            raise NotFound("This approval is no longer pending.")
        return found


async def _clip(element: Element) -> tuple[dict[str, float], dict[str, float]]:
    """The part of the page to capture, and where in it the element is, in shares of its width and height."""
    area, metrics = await asyncio.gather(element.box(), element.page.cdp("Page.getLayoutMetrics"))
    view = parse_object(metrics.get("cssLayoutViewport"))
    content = parse_object(metrics.get("cssContentSize"))
    page_x, page_y = parse_number(view.get("pageX")), parse_number(view.get("pageY"))
    across, down = max(parse_number(content.get("width")), 1.0), max(parse_number(content.get("height")), 1.0)
    width = min(max(_WIDTH, area.width + 2 * _MARGIN), across)
    height = min(max(_HEIGHT, area.height + 2 * _MARGIN), down, width)
    left = min(max(area.x + page_x + area.width / 2 - width / 2, 0.0), across - width)
    top = min(max(area.y + page_y + min(area.height, height) / 2 - height / 2, 0.0), down - height)
    scale = min(1.0, _WIDTH / width)
    place = {
        "x": (area.x + page_x - left) / width,
        "y": (area.y + page_y - top) / height,
        "width": area.width / width,
        "height": area.height / height,
        "ratio": width / height,
    }
    return {"x": left, "y": top, "width": width, "height": height, "scale": scale}, place
