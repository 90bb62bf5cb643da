"""browser_click_element and browser_hover_element: the mouse on an actionable element."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tabhub.browser.actions import OUTPUT, TrackedAction, run_and_probe
from tabhub.browser.driver.worlds import literal
from tabhub.browser.elements import keys, pointer
from tabhub.browser.elements.element import TARGET, ActionableElement, wait_actionable
from tabhub.browser.elements.element_errors import problem_error
from tabhub.browser.tool_spec import Call, data_result, tool
from tabhub.core.tools import ToolResult

MODIFIERS = {"type": "array", "items": {"enum": list(keys.MODIFIERS)}}
_RETRIES = 2
_NOT_SEEN_NOTE = (
    "The page did not receive the click. The browser may be showing its own dialog over the tab (print, file, screen "
    "sharing), which only the person can answer; browser_navigate_tab leaves it."
)
_CLICKED = {1: "Clicked", 2: "Double-clicked", 3: "Triple-clicked"}


@tool(
    "browser_click_element",
    "Click",
    "Clicks an element, by ref, CSS selector, text, role or label; says what it opened.",
    params={
        **TARGET,
        "button?": {"enum": list(pointer.BUTTONS)},
        "count?": {"enum": [1, 2, 3]},
        "modifiers?": MODIFIERS,
    },
    output=OUTPUT,
    destructive=True,
    tells_changes=True,
)
async def click_element(call: Call) -> ToolResult:
    page, args = await call.page(), call.args
    button, count = str(args.get("button", "left")), int(args.get("count", 1))
    with call.box.activity.track_action(page) as action:
        held = keys.modifier_bits(args["modifiers"]) if "modifiers" in args else 0
        target, landed = await click_until_it_lands(action, args, button=button, count=count, modifiers=held)
        did = _CLICKED[count] if button == "left" else f"{_CLICKED[count]} ({button})"
        landed = landed or {}
        if landed.get("download") and button == "left":
            action.downloading = not action.downloads
        if target.kind == "file" and button == "left":
            await action.wait_until(lambda: action.chooser is not None, page.browsers.limits.action_settle)
        return data_result(
            await action.result(
                f"{did} {target.element.label}",
                before=target.facts.get("url"),
                now=landed.get("url") if target.element.frame.parent is None else None,
                checked=landed.get("checked"),
                note=landed.get("note"),
            )
        )


async def click_until_it_lands(
    action: TrackedAction,
    args: Mapping[str, Any],
    *,
    need: str = "click",
    target: ActionableElement | None = None,
    button: str = "left",
    count: int = 1,
    modifiers: int = 0,
) -> tuple[ActionableElement, dict[str, Any] | None]:
    """Click until the element receives it: a click that another element intercepts is blocked and retried.

    Returns what the page saw of the click; None if the click left the page.
    """
    page, attempt = action.page, 0
    target = target or await wait_actionable(page, args, need)
    while True:
        frame = target.element.frame
        events = pointer.click(*target.input_point, button=button, count=count, modifiers=modifiers)
        sending = action.tolerate_navigation(pointer.send_events(page, events, frame.session_id), frame)
        landed = None
        if button == "left":
            landed = await run_and_probe(sending, _click_landed(action, target, count))
        else:
            await sending
        if landed is None and not action.page_left:
            landed = await action.unless_navigating(_click_landed(action, target, 0))
        if action.page_left or not isinstance(landed, dict):
            return target, None
        if landed.get("verdict") != "missed":
            note = _NOT_SEEN_NOTE if landed.get("unseen") else None
            if landed.get("leads"):
                note = note or await action.unsent_form_note(frame)
            return target, {**landed, "note": note}
        if attempt == _RETRIES:
            raise problem_error(target.element, {"why": "covered", "detail": landed.get("cover")})
        attempt += 1
        target = await wait_actionable(page, args, need, patient=True)


async def _click_landed(action: TrackedAction, target: ActionableElement, clicks: int) -> Any:
    """Ask the page what it saw of the click; it replies once it has seen this many clicks."""
    frame, query = target.element.frame, {"ref": target.element.ref, "clicks": clicks}
    work = frame.run_code(f"return kit.clickLanded({literal(query)});")
    return await action.tolerate_navigation(work, frame)


@tool(
    "browser_hover_element",
    "Hover",
    "Moves the mouse onto an element, e.g. to open a menu or tooltip.",
    params=TARGET,
    output=OUTPUT,
    idempotent=True,
    tells_changes=True,
)
async def hover_element(call: Call) -> ToolResult:
    page = await call.page()
    with call.box.activity.track_action(page) as action:
        target = await wait_actionable(page, call.args, "hover")
        move = pointer.mouse_event("mouseMoved", *target.input_point)
        await action.tolerate_navigation(pointer.send_events(page, [move], target.element.frame.session_id))
        return data_result(await action.result(f"Moved the mouse onto {target.element.label}"))
