"""browser_mouse: mouse events at a viewport point, for canvases, maps and games."""

from __future__ import annotations

from typing import Any

from tabhub.browser.actions import OUTPUT, TrackedAction
from tabhub.browser.driver.cdp_values import parse_number, parse_object
from tabhub.browser.driver.frames import child_frame, main_frame
from tabhub.browser.driver.worlds import call_source
from tabhub.browser.elements import keys, pointer
from tabhub.browser.elements.input_frames import require_point_permitted
from tabhub.browser.reactions import send_after, send_watched
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
    tells_changes=True,
)
async def browser_mouse(call: Call) -> ToolResult:
    box, args = call.box, call.args
    kind, x, y = str(args["action"]), float(args["x"]), float(args["y"])
    page = await call.page(settle=kind != "move")  # a mouse that moves waits for nothing
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
            turned = await action.unless_navigating(_turn_wheel(action, x, y, {"modifiers": modifiers, **delta}))
            note = _outside_note(await action.round_trip(_VIEW), x, y)
            return data_result(await action.result(f"{_DONE[kind]} {x:g}, {y:g}", **_scroll_facts(turned, note)))
        await action.unless_navigating(action.tolerate_navigation(send_watched(page, events)))
        note = _outside_note(await action.round_trip(_VIEW), x, y)
        return data_result(await action.result(f"{_DONE[kind]} {x:g}, {y:g}", note=note))


async def _turn_wheel(action: TrackedAction, x: float, y: float, how: dict[str, Any]) -> dict[str, Any]:
    """Turn the wheel, in the frame at the point; what it has scrolled, or nothing if that is not known."""
    page, frame = action.page, await main_frame(action.page)
    at = sent_at = (x, y)
    while True:
        event = (pointer.MOUSE, {"type": "mouseWheel", "x": sent_at[0], "y": sent_at[1], **how})
        watch = call_source("watch_wheel", {"x": at[0], "y": at[1]})
        work = send_after(frame, watch, [event], call_source("wheel_turned", {}))
        found, turned = await action.tolerate_navigation(work, frame) or (None, None)
        if not isinstance(found, dict) or "frame" not in found:
            return parse_object(turned)
        inner = await child_frame(frame, str(found["frame"]))
        if inner is None:
            await action.tolerate_navigation(send_watched(page, [event]))
            return {}
        origin = parse_object(await frame.evaluate("frame_origin", {"ref": found["frame"]}))
        at = at[0] - parse_number(origin.get("x")), at[1] - parse_number(origin.get("y"))
        sent_at = sent_at if inner.session_id == frame.session_id else at
        frame = inner


def _scroll_facts(turned: dict[str, Any] | None, note: str | None) -> dict[str, Any]:
    if not turned:
        return {"note": note}
    facts = {name: turned[name] for name in ("x", "y", "maxX", "maxY") if type(turned.get(name)) is int}
    if turned.get("moved"):
        return {"scrolled": str(turned.get("what"))[:300], **facts, "note": note}
    return {**facts, "note": note or "Nothing scrolled; the page may have used the wheel for something else."}


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
