"""Which frame mouse and keyboard input reaches, where it is aimed at a point or goes to whatever has the focus.

Owns finding that frame and having the call checked for it; frames that the agent must not know of are refused. Where no
rule tells frames apart, nothing is asked of the browser. Tools that look for an element know its frame already.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from tabhub.browser.driver.cdp_values import parse_number, parse_object
from tabhub.browser.driver.frames import Frame, list_frames
from tabhub.browser.driver.page import Page
from tabhub.browser.elements.hidden_frames import require_focus_outside, require_outside
from tabhub.errors import CommandFailed

_NO_NODE = "No node found"
_GROUP = "tabhub focus"
_ACTIVE = (
    "(() => { let at = document.activeElement;"
    " while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement; return at; })()"
)


async def require_point_permitted(page: Page, x: float, y: float) -> None:
    """Raise PermissionDenied unless the call may act at a point of the tab's viewport."""
    await require_outside(page, (x, y))
    if frames := await _frames_to_tell_apart(page):
        await (await _frame_at(frames, x, y)).require_permitted()


async def require_focus_permitted(page: Page) -> None:
    """Raise PermissionDenied unless the call may act where keys go now."""
    await require_focus_outside(page)
    if frames := await _frames_to_tell_apart(page):
        await (await _focused_frame(frames)).require_permitted()


async def _frames_to_tell_apart(page: Page) -> list[Frame]:
    """All frames of the page; empty if it makes no difference which of them is acted in."""
    if not page.frames_matter or page.dialog is not None:
        return []
    frames = await list_frames(page)
    return frames if any(frame.site != page.tab.site for frame in frames) else []


async def _frame_at(frames: Sequence[Frame], x: float, y: float) -> Frame:
    """The innermost frame at a point. The browser looks through the frames of one process at a time."""
    by_id, frame = {each.frame_id: each for each in frames}, frames[0]
    while True:
        (left, top), scrolled = await asyncio.gather(frame.offset(), frame.evaluate("scroll_position", {}))
        place = parse_object(scrolled)
        point = {
            "x": round(x - left + parse_number(place.get("x"))),
            "y": round(y - top + parse_number(place.get("y"))),
        }
        found = await _node_at(frame, point)
        if found is None:
            return frame
        frame, holds = by_id.get(found[0], frame), found[1]
        if holds in (None, frame.frame_id):  # the document's own element names its frame, too
            return frame
        frame = _known(by_id, str(holds), f"at {x:g}, {y:g}")


async def _node_at(frame: Frame, point: dict[str, int]) -> tuple[str, Any] | None:
    """The frame that the node at a point is in, and the frame that it is the element of, if it is one."""
    page, session = frame.page, frame.session_id
    try:
        found = await page.cdp("DOM.getNodeForLocation", point, session)
        node = await page.cdp("DOM.describeNode", {"backendNodeId": found["backendNodeId"]}, session)
    except CommandFailed as error:
        if _NO_NODE in error.message:
            return None
        raise
    return str(found.get("frameId")), parse_object(node.get("node")).get("frameId")


def _known(by_id: Mapping[str, Frame], frame_id: str, where: str) -> Frame:
    """A frame that did not answer is not known, and so cannot be judged."""
    if (frame := by_id.get(frame_id)) is None:
        raise CommandFailed(
            f"The frame {where} does not answer; nothing was sent.", hint="It may be busy: try again, or wait."
        )
    return frame


async def _focused_frame(frames: Sequence[Frame]) -> Frame:
    """The innermost frame that has the focus: each document knows which of its elements has it."""
    inside = [frame for frame in frames if frame.parent is not None]
    has_focus = await asyncio.gather(*map(_has_focus, inside))
    below = {id(frame.parent): frame for frame, has in zip(inside, has_focus, strict=True) if has}
    found = frames[0]
    while (inner := below.get(id(found))) is not None:
        found = inner
    active = await _active_frame_id(found)
    return found if active is None else _known({each.frame_id: each for each in frames}, active, "with the focus")


async def _active_frame_id(frame: Frame) -> str | None:
    """The frame whose element has the focus of a document; None if it is no frame's."""
    page, session, world = frame.page, frame.session_id, await frame.world()
    params = {"expression": _ACTIVE, "contextId": world.context_id, "objectGroup": _GROUP}
    handle = (await page.cdp("Runtime.evaluate", params, session)).get("result", {}).get("objectId")
    if not isinstance(handle, str):
        return None
    node = await page.cdp("DOM.describeNode", {"objectId": handle}, session)
    page.cdp_nowait("Runtime.releaseObjectGroup", {"objectGroup": _GROUP}, session)
    active = parse_object(node.get("node")).get("frameId")
    return active if isinstance(active, str) and active != frame.frame_id else None


async def _has_focus(frame: Frame) -> bool:
    """Whether the frame's element has the focus of the document that it is in."""
    parent = frame.parent
    if parent is None:
        return True
    try:
        state = await parent.evaluate("frame_owner", {"ref": await frame.owner_ref()})
    except CommandFailed:  # it was removed meanwhile
        return False
    return parse_object(state).get("active") is True
