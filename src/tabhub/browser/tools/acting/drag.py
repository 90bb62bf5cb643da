"""browser_drag: drags with mouse events, or with the browser's native drag and drop."""

from __future__ import annotations

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
from tabhub.browser.schemas import object_schema
from tabhub.browser.tool_spec import Call, data_result, tool
from tabhub.core.tools import ToolResult
from tabhub.errors import InvalidArguments

_COORDINATE = {"type": "number", "minimum": 0, "maximum": 100_000}
_END_SCHEMA = {
    "type": ["string", "object"],
    "properties": object_schema({**TARGET, "x?": _COORDINATE, "y?": _COORDINATE})["properties"],
    "additionalProperties": False,
    "minLength": 1,
    "maxLength": 2000,
}
_STEPS = 8
_NATIVE_DRAG_TIMEOUT = 2.0
"""Seconds to wait for the browser to report a native drag."""


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
)
async def browser_drag(call: Call) -> ToolResult:
    box, page, args = call.box, await call.page(), call.args
    start, end = _parse_end("from", args["from"]), _parse_end("to", args["to"])
    with box.activity.track_action(page) as action:
        if page.frames_matter:
            await _require_end_permitted(page, end)  # before the button is pressed
        first = await _resolve_end(page, start)
        page.cdp_nowait("Input.setInterceptDrags", {"enabled": True})
        x, y = at = first.input_point
        try:
            if first.frame is not None:
                await first.frame.evaluate("watch_drag", {})
            press = pointer.click(x, y)[:-1]
            # A few pixels make a press a drag.
            press += [_drag_move(x + step, y + step) for step in (3, 6, 9)]
            await pointer.send_events(page, press, first.session_id)
            # The browser reports a native drag that began in another process only later.
            if first.frame is not None and parse_object(await first.frame.evaluate("watch_drag", {})).get("began"):
                await action.wait_until(lambda: action.drag is not None, _NATIVE_DRAG_TIMEOUT)
            last = await _resolve_end(page, end)
            at = first.in_own_coordinates(last)
            if action.drag is not None:
                await _drop(action, last.x, last.y)
            else:
                await pointer.send_events(page, _path((x + 9, y + 9), at), first.session_id)
        finally:
            page.cdp_nowait(*pointer.mouse_event("mouseReleased", *at, button="left", count=1), first.session_id)
            page.cdp_nowait("Input.setInterceptDrags", {"enabled": False})
        await action.round_trip()
        return data_result(await action.result(f"Dragged {first.label} to {last.label}"))


async def _drop(action: TrackedAction, x: float, y: float) -> None:
    """Finish a native drag with the data the page put into it."""
    events: list[pointer.Event] = [
        ("Input.dispatchDragEvent", {"type": kind, "x": x, "y": y, "data": action.drag})
        for kind in ("dragEnter", "dragOver", "dragOver", "drop")
    ]
    await action.tolerate_navigation(pointer.send_events(action.page, events))


def _drag_move(x: float, y: float) -> pointer.Event:
    return pointer.mouse_event("mouseMoved", x, y, button="left", pressed=True)


def _path(start: tuple[float, float], end: tuple[float, float]) -> list[pointer.Event]:
    steps = [(step + 1) / _STEPS for step in range(_STEPS)]
    return [
        _drag_move(start[0] + (end[0] - start[0]) * part, start[1] + (end[1] - start[1]) * part) for part in (*steps, 1)
    ]


def _parse_end(side: str, given: Any) -> dict[str, Any]:
    if isinstance(given, str):
        return {"ref" if REF.fullmatch(given) else "selector": given}
    if ("x" in given and "y" in given) or names_element(given):
        return dict(given)
    raise InvalidArguments(
        f"`{side}` names no element or point. Nothing was done.", hint="Give a ref, selector, text, label, or x and y."
    )


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
