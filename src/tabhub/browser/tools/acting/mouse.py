"""browser_mouse: mouse events at a viewport point, for canvases, maps and games."""

from __future__ import annotations

from typing import Any

from tabhub.browser.actions import OUTPUT
from tabhub.browser.elements import keys, pointer
from tabhub.browser.elements.input_frames import require_point_permitted
from tabhub.browser.tool_spec import Call, data_result, tool
from tabhub.core.tools import ToolResult

_COORDINATE = {"type": "number", "minimum": 0, "maximum": 100_000}
_DELTA = {"type": "number", "minimum": -100_000, "maximum": 100_000}
_VIEW = "[innerWidth, innerHeight]"
_DONE = {
    "move": "Moved the mouse to",
    "down": "Pressed at",
    "up": "Released at",
    "click": "Clicked at",
    "wheel": "Scrolled the wheel at",
}


@tool(
    "browser_mouse",
    "Use the mouse",
    "Moves, presses, releases, clicks or scrolls the wheel at a viewport point in CSS pixels. Prefer "
    "browser_click_element where there is an element.",
    params={
        "action": {"enum": list(_DONE)},
        "x": _COORDINATE,
        "y": _COORDINATE,
        "button?": {"enum": list(pointer.BUTTONS), "description": "Default left."},
        "count?": {"type": "integer", "minimum": 1, "maximum": 3},
        "deltaX?": _DELTA,
        "deltaY?": {**_DELTA, "description": "For wheel; positive is down."},
        "modifiers?": {"type": "array", "items": {"enum": list(keys.MODIFIERS)}},
    },
    output=OUTPUT,
    destructive=True,
)
async def browser_mouse(call: Call) -> ToolResult:
    box, page, args = call.box, await call.page(), call.args
    kind, x, y = str(args["action"]), float(args["x"]), float(args["y"])
    button, count = str(args.get("button", "left")), int(args.get("count", 1))
    modifiers = keys.modifier_bits(args.get("modifiers", ()))
    how: dict[str, Any] = {"count": count, "modifiers": modifiers}
    await require_point_permitted(page, x, y)
    with box.activity.track_action(page) as action:
        held = box.activity.set_pressed_button(page, button if kind == "down" else "")
        if kind == "move":
            box.activity.set_pressed_button(page, held)
            events = [pointer.mouse_event("mouseMoved", x, y, button=held, pressed=True, modifiers=modifiers)]
        elif kind == "down":
            events = [pointer.mouse_event("mousePressed", x, y, button=button, pressed=True, **how)]
        elif kind == "up":
            events = [pointer.mouse_event("mouseReleased", x, y, button=held or button, **how)]
        elif kind == "click":
            events = pointer.click(x, y, button=button, **how)
        else:
            delta = {"deltaX": args.get("deltaX", 0), "deltaY": args.get("deltaY", 0 if "deltaX" in args else 100)}
            events = [(pointer.MOUSE, {"type": "mouseWheel", "x": x, "y": y, "modifiers": modifiers, **delta})]
        await action.tolerate_navigation(pointer.send_events(page, events))
        note = _outside_note(await action.round_trip(_VIEW), x, y)
        return data_result(await action.result(f"{_DONE[kind]} {x:g}, {y:g}", note=note))


def _outside_note(answer: Any, x: float, y: float) -> str | None:
    """A note if the point is outside the viewport; `answer` is its size as the page reports it."""
    view = answer.get("result", {}).get("value") if isinstance(answer, dict) else None
    sides = [side for side in view if type(side) in (int, float)] if isinstance(view, list) else []
    if len(sides) != 2 or (x < sides[0] and y < sides[1]):
        return None
    return (
        f"The point is outside the viewport ({sides[0]:g} x {sides[1]:g}) and hit nothing: scroll first, or give a "
        "point inside."
    )
