"""Waiting until an element is actionable: attached, visible, still, enabled, in view and not covered.

One page function does it in the round trip that also finds the element. Owns the errors for what prevents an action;
the action itself is up to the tools.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from tabhub.browser.driver import page_code
from tabhub.browser.driver.cdp_values import parse_number
from tabhub.browser.driver.frames import Frame
from tabhub.browser.driver.page import FollowUp, Page
from tabhub.browser.elements.element import Element, ElementCall, find_and_call
from tabhub.errors import CommandFailed

_FUNCTIONS = {"tabhubWaitActionable": "wait_actionable", "tabhubFieldValue": "field_value"}
"""Page functions stored in our world, by global name; a follow-up may use the second one."""
_PAUSE = 0.1
_Point = tuple[float, float]
_LOOK_AGAIN = "Take a new browser_snapshot to see what is there now."
_PROBLEMS: Mapping[str, tuple[str, str]] = {
    "detached": ("is no longer on the page", _LOOK_AGAIN),
    "hidden": (
        "is not visible: {detail}",
        "Open its container (a menu, a tab, a dialog) first, or choose another element.",
    ),
    "disabled": ("is disabled {detail}", "Meet the page's conditions first, such as a required field or a consent."),
    "readonly": ("is read-only", "Click it if it opens a list or a calendar; otherwise choose another field."),
    "deaf": (
        "cannot be clicked: it has pointer-events: none",
        "The page disabled it; meet the page's conditions first, or choose another element.",
    ),
    "moving": ("keeps moving", "Wait until the animation ends (browser_wait_for), then try again."),
    "covered": (
        "is covered by {detail}",
        "Close or scroll away what covers it, or act on the covering element instead.",
    ),
    "outside": ("cannot be scrolled into view", "Choose an element around it, or open its container first."),
    "option": ("is an option of a select", "Use browser_select_option."),
    "notText": (
        "is not a text field ({detail})",
        "Use browser_click_element, browser_select_option or browser_fill_form.",
    ),
    "file": ("is a file field", "Use browser_upload_file."),
    "unfocusable": ("cannot receive keyboard input: {detail} cannot be focused", "Choose the field itself."),
    "notSelect": (
        "is not a select ({detail})",
        "Click it, then click the option that appears (browser_click_element).",
    ),
    "noOption": ("has no option {detail!r}", "Its options: {options}."),
    "offOption": ("has the option {detail!r}, but it is disabled", "Choose another option."),
    "single": ("accepts one option only", "Give one value."),
    "malformed": ("does not accept that value", "Expected: {detail}."),
}


class _CoveredFrame(CommandFailed):
    """Something in a document around the element's frame is in the way; it may go away."""


@dataclass(frozen=True, slots=True)
class ActionableElement:
    """An element that can be acted on now."""

    element: Element
    x: float
    """In CSS pixels of the tab's viewport."""
    y: float
    input_point: _Point
    """The same point in the viewport of the process that renders it: a frame of another site has its own."""
    facts: Mapping[str, Any]
    """What the page reported: kind, checked, empty, url."""

    @property
    def session_id(self) -> str | None:
        """Where mouse events at `input_point` are sent, so that the browser need not guess the frame."""
        return self.element.frame.session_id

    @property
    def kind(self) -> str:
        """Kind of field: text, area, rich, whole, check, radio, switch, select, file, other."""
        return str(self.facts.get("kind"))


async def wait_actionable(
    page: Page, args: Mapping[str, Any], need: str, *, follow: FollowUp | None = None, **more: Any
) -> ActionableElement:
    """Wait until the element that the arguments name is actionable; for `need` see `js/wait_actionable.js`.

    `follow` is sent at once if the element is a text field of the tab's main document.
    """
    limits, loop = page.link.limits, page.link.loop
    until = loop.time() + limits.element_ready
    while True:
        left = max(0.0, until - loop.time())
        argument = {"need": need, "within": round(left * 1000), **more}
        call = ElementCall("tabhubWaitActionable", _definitions, argument, follow)
        element, answer = await find_and_call(page, args, call, wait=min(left, limits.element_appear))
        facts = answer if isinstance(answer, dict) else {}
        problem = facts.get("problem")
        if isinstance(problem, dict) and problem.get("why") == "detached" and left > 0 and "ref" not in args:
            # The page replaced it between the lookup and the check.
            continue
        raise_problem(element, facts)
        x, y = point = parse_number(facts.get("x")), parse_number(facts.get("y"))
        if element.frame.parent is not None:
            try:
                (x, y), point = await _point_through_frames(element, element.frame, x, y)
            except _CoveredFrame:
                if left <= 0:
                    raise
                await asyncio.sleep(_PAUSE)
                continue
        label = facts.get("label")
        element = replace(element, label=label[:500]) if isinstance(label, str) else element
        return ActionableElement(element, x, y, point, facts)


@cache
def _definitions() -> str:
    return "\n".join(f"globalThis.{name} = (\n{page_code.source(file)}\n);" for name, file in _FUNCTIONS.items())


async def _point_through_frames(element: Element, frame: Frame, x: float, y: float) -> tuple[_Point, _Point]:
    """Convert a point of a frame's viewport to the tab's, if nothing around the frame covers it.

    The second point is in the outermost frame of the same process. On a page rendered at another scale, as on phones,
    the browser expects points of such a process as if they were scaled like the page.
    """
    point, same_process, zoom = (x, y), True, 1.0
    while frame.parent is not None:
        place = await frame.parent.evaluate("point_through_frame", {"ref": await frame.owner_ref(), "x": x, "y": y})
        if not isinstance(place, dict):
            raise element.gone_error()
        if place.get("outside"):
            raise _problem_error(element, {"why": "outside"}, _CoveredFrame)
        if cover := place.get("cover"):
            detail = f"{cover} of the page around its frame"
            raise _problem_error(element, {"why": "covered", "detail": detail}, _CoveredFrame)
        x, y = parse_number(place.get("x")), parse_number(place.get("y"))
        zoom = parse_number(place.get("zoom")) or 1.0
        same_process = same_process and frame.parent.session_id == frame.session_id
        point = (x, y) if same_process else point
        frame = frame.parent
    return (x, y), (point if same_process else (point[0] / zoom, point[1] / zoom))


def raise_problem(element: Element, answer: Any) -> None:
    """Raise the error for the problem that the page reported, if it reported one."""
    problem = answer.get("problem") if isinstance(answer, dict) else None
    if isinstance(problem, dict):
        raise _problem_error(element, problem)


def _problem_error(
    element: Element, problem: Mapping[str, Any], kind: type[CommandFailed] = CommandFailed
) -> CommandFailed:
    why = str(problem.get("why"))
    message, hint = _PROBLEMS.get(why, ("cannot be used", _LOOK_AGAIN))
    options = problem.get("options")
    details = {
        "detail": str(problem.get("detail", ""))[:300],
        "options": ", ".join(str(option)[:80] for option in options[:40]) if isinstance(options, list) else "",
    }
    waited = parse_number(problem.get("waited")) / 1000
    after = f" after {waited:.1f} s" if waited >= 1 else ""
    return kind(
        f"{element.label} in tab {element.page.tab_id} {message.format(**details)}{after}.",
        hint=hint.format(**details),
        data={"problem": why, "ref": element.ref},
    )
