"""browser_drag: drags with mouse events, or with the browser's native drag and drop."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tabhub.browser.actions import OUTPUT, TrackedAction
from tabhub.browser.driver.cdp_values import parse_object
from tabhub.browser.driver.frames import Frame
from tabhub.browser.driver.page import Page
from tabhub.browser.elements import pointer
from tabhub.browser.elements.element import REF, TARGET, find_element, names_element, wait_actionable
from tabhub.browser.elements.input_frames import require_point_permitted
from tabhub.browser.reactions import send_and_settle, send_watched
from tabhub.browser.schemas import object_schema
from tabhub.browser.tool_spec import Call, data_result, tool
from tabhub.core.tools import ToolResult
from tabhub.errors import CommandFailed, InvalidArguments

_COORDINATE = {"type": "number", "minimum": 0, "maximum": 100_000}
_END_SCHEMA = {
    "type": ["string", "object"],
    "properties": object_schema({**TARGET, "x?": _COORDINATE, "y?": _COORDINATE})["properties"],
    "additionalProperties": False,
    "minLength": 1,
    "maxLength": 2000,
}
_STEPS = 10
_OVERSHOOT = 3
"""Pixels that the mouse goes past its goal before it comes back."""
_FIRST = 9.0
_LEAST = 4.0
"""Pixels across and down of the first moves, and the fewest that every page takes for a drag."""
_NATIVE_DRAG_TIMEOUT = 2.0
"""Seconds to wait for the browser to report a native drag."""
_Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class _DragEnd:
    """One end of a drag."""

    x: float
    """In CSS pixels of the tab's viewport."""
    y: float
    input_point: tuple[float, float]
    """The same point in the coordinates of the process that renders it."""
    label: str
    frame: Frame | None = None
    """Its frame, if another process renders it."""

    @property
    def session_id(self) -> str | None:
        """The CDP session for mouse events at `input_point`."""
        return self.frame.session_id if self.frame is not None else None

    def in_own_coordinates(self, other: _DragEnd) -> tuple[float, float]:
        """Another end in the coordinates of this end's process."""
        if other.session_id == self.session_id:
            return other.input_point
        return self.input_point[0] + other.x - self.x, self.input_point[1] + other.y - self.y


@tool(
    "browser_drag",
    "Drag and drop",
    "Drags from one element or point to another.",
    params={
        "from": {
            **_END_SCHEMA,
            "description": "A ref or selector, or {selector|ref|text|role|label}, or {x, y} in the viewport.",
        },
        "to": {**_END_SCHEMA, "description": "The same."},
    },
    output=OUTPUT,
    destructive=True,
    tells_changes=True,
)
async def browser_drag(call: Call) -> ToolResult:
    box, page, args = call.box, await call.page(), call.args
    start, end = _parse_end("from", args["from"]), _parse_end("to", args["to"])
    with box.activity.track_action(page) as action:
        if page.frames_matter:
            await _require_end_permitted(page, end)  # before the button is pressed
        end = await _identify(page, end)
        first = await _resolve_end(page, start)
        page.cdp_nowait("Input.setInterceptDrags", {"enabled": True})
        x, y = at = first.input_point
        try:
            if first.frame is not None:
                await first.frame.evaluate("watch_drag", {})
            press = pointer.click(x, y)[:-1]
            # A few pixels make a press a drag; they go where the rest goes, as lists make room on the way.
            start_point = (first.x, first.y)
            across, down = _first_pixels(start_point, await _place(page, end))
            press += [_drag_move(x + across * part / 3, y + down * part / 3) for part in (1, 2, 3)]
            await pointer.send_events(page, press, first.session_id)
            # The browser reports a native drag that began in another process only later.
            if first.frame is not None and parse_object(await first.frame.evaluate("watch_drag", {})).get("began"):
                await action.wait_until(lambda: action.drag is not None, _NATIVE_DRAG_TIMEOUT)
            last = await _resolve_end(page, end)
            at = first.in_own_coordinates(last)
            if action.drag is not None:
                await _drag_natively(action, start_point, (last.x, last.y))
            else:
                await _move(action, (x + across, y + down), at, first.frame)
        finally:
            page.cdp_nowait(*pointer.mouse_event("mouseReleased", *at, button="left", count=1), first.session_id)
            page.cdp_nowait("Input.setInterceptDrags", {"enabled": False})
        await action.round_trip()
        return data_result(await action.result(f"Dragged {first.label} to {last.label}"))


async def _move(action: TrackedAction, start: _Point, end: _Point, frame: Frame | None) -> None:
    """Move step by step, so that the page handles every move, and let drop targets react before the release."""
    for point in _path(start, end):
        await action.tolerate_navigation(send_watched(action.page, [_drag_move(*point)], frame))
    # Lists make room for an item that is past the middle of another, and some targets open only under a mouse that has
    # come to rest and moves again.
    for point in (_beyond(start, end), end):
        await action.tolerate_navigation(send_and_settle(action.page, [_drag_move(*point)], frame))


async def _drag_natively(action: TrackedAction, start: _Point, end: _Point) -> None:
    """Finish a native drag with the data the page put into it, over everything on its way."""

    def event(kind: str, point: _Point) -> list[pointer.Event]:
        return [("Input.dispatchDragEvent", {"type": kind, "x": point[0], "y": point[1], "data": action.drag})]

    await action.tolerate_navigation(send_watched(action.page, event("dragEnter", start)))
    for point in _path(start, end):
        await action.tolerate_navigation(send_watched(action.page, event("dragOver", point)))
    # A browser repeats the event while the mouse rests: what still moved at the first one reacts to a later one.
    for point in (end, _beyond(start, end), end):
        await action.tolerate_navigation(send_and_settle(action.page, event("dragOver", point)))
    await action.tolerate_navigation(send_watched(action.page, event("drop", end)))


def _first_pixels(start: _Point, end: _Point | None) -> _Point:
    """How far the first moves go: towards the end, where that is known, and no further."""
    if end is None or start == end:
        return _FIRST, _FIRST
    across, down = end[0] - start[0], end[1] - start[1]
    distance = math.hypot(across, down)
    part = min(_FIRST * math.sqrt(2), max(_LEAST, distance)) / distance
    return across * part, down * part


async def _place(page: Page, end: Mapping[str, Any]) -> _Point | None:
    """Where an end is before the drag begins; None for one that is not there yet."""
    if "x" in end and "y" in end:
        return float(end["x"]), float(end["y"])
    try:
        box = await (await find_element(page, end)).box()
    except CommandFailed:
        return None
    return box.x + box.width / 2, box.y + box.height / 2


def _drag_move(x: float, y: float) -> pointer.Event:
    return pointer.mouse_event("mouseMoved", x, y, button="left", pressed=True)


def _beyond(start: _Point, end: _Point) -> _Point:
    """A few pixels further in the same direction."""
    across, down = end[0] - start[0], end[1] - start[1]
    part = _OVERSHOOT / (math.hypot(across, down) or 1.0)
    return max(0.0, end[0] + across * part), max(0.0, end[1] + down * part)


def _path(start: _Point, end: _Point) -> list[_Point]:
    parts = [step / _STEPS for step in range(1, _STEPS + 1)]
    return [(start[0] + (end[0] - start[0]) * part, start[1] + (end[1] - start[1]) * part) for part in parts]


def _parse_end(side: str, given: Any) -> dict[str, Any]:
    if isinstance(given, str):
        return {"ref" if REF.fullmatch(given) else "selector": given}
    if ("x" in given and "y" in given) or names_element(given):
        return dict(given)
    raise InvalidArguments(
        f"`{side}` names no element or point. Nothing was done.", hint="Give a ref, selector, text, label, or x and y."
    )


async def _identify(page: Page, given: dict[str, Any]) -> dict[str, Any]:
    """The same end by its ref, if it is there already: in a list that is being sorted, selectors find other items."""
    if "x" in given and "y" in given:
        return given
    try:
        return {"ref": (await find_element(page, given)).ref}
    except CommandFailed:
        return given  # it may appear during the drag


async def _require_end_permitted(page: Page, given: Mapping[str, Any]) -> None:
    if "x" in given and "y" in given:
        await require_point_permitted(page, float(given["x"]), float(given["y"]))
    else:
        await find_element(page, given, wait=page.link.limits.element_appear)


async def _resolve_end(page: Page, given: Mapping[str, Any]) -> _DragEnd:
    if "x" in given and "y" in given:
        x, y = float(given["x"]), float(given["y"])
        await require_point_permitted(page, x, y)
        return _DragEnd(x, y, (x, y), f"{x:g}, {y:g}")
    target = await wait_actionable(page, given, "hover")
    frame = target.element.frame if target.element.frame.session_id is not None else None
    return _DragEnd(target.x, target.y, target.input_point, target.element.label, frame)
