"""Whether an element can be used, and where: attached, visible, still, enabled, in view, and covered by nothing.

Owns the waiting for that, which one page function does in one round trip together with finding the element, and the
words for what stands in the way. What is then done with the element is the tools' business.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from tabhub.browser.driver import page_code
from tabhub.browser.driver.frames import Frame, main_frame
from tabhub.browser.driver.page import FollowUp, Page
from tabhub.browser.elements.element import Element, find_element, names_element
from tabhub.browser.tool_spec import Toolbox
from tabhub.errors import CommandFailed

_NAMES = ("ref", "selector", "text", "role")
_BARE = "tabhub:bare"
_PAUSE = 0.1
_Point = tuple[float, float]
_AGAIN = "Take a new browser_snapshot to see what is there now."
_PROBLEMS: Mapping[str, tuple[str, str]] = {
    "detached": ("is no longer on the page", _AGAIN),
    "hidden": (
        "is not visible: {detail}",
        "Open what holds it (a menu, a tab, a dialog) first, or choose another element.",
    ),
    "disabled": ("is disabled {detail}", "Do first what the page wants: fill a required field, agree to something."),
    "readonly": ("is read-only", "Click it if it opens a list or a calendar; otherwise choose another field."),
    "deaf": (
        "takes no clicks: it has pointer-events: none",
        "The page keeps it off; do first what the page wants, or choose another element.",
    ),
    "moving": ("keeps moving", "Wait until the animation ends (browser_wait_for), then try again."),
    "covered": ("is covered by {detail}", "Close or scroll away what covers it, or act on that instead."),
    "outside": ("cannot be scrolled into view", "Choose an element around it, or open what holds it first."),
    "option": ("is an option of a select", "browser_select_option chooses it."),
    "notText": (
        "is no text field ({detail})",
        "browser_click_element, browser_select_option or browser_fill_form fit it.",
    ),
    "file": ("is a file field", "browser_upload_file gives it files."),
    "unfocusable": ("does not take the keyboard: {detail} cannot be focused", "Choose the field itself."),
    "notSelect": ("is no select ({detail})", "Click it, then click the option that appears (browser_click_element)."),
    "noOption": ("has no option {detail!r}", "Its options: {options}."),
    "offOption": ("has the option {detail!r}, but it is disabled", "Choose another option."),
    "single": ("takes one option only", "Give one value."),
    "malformed": ("does not take that value", "It wants {detail}."),
}


class _Behind(CommandFailed):
    """Something in a document around the element's frame is in the way; it may go."""


@dataclass(frozen=True, slots=True)
class ActionableElement:
    """An element that can be used now."""

    element: Element
    x: float
    """In CSS pixels of the tab's viewport."""
    y: float
    input_point: _Point
    """The same place as the process that draws it counts: that of a frame of another site has its own viewport."""
    facts: Mapping[str, Any]
    """What the page told of it: kind, checked, empty, url."""

    @property
    def session_id(self) -> str | None:
        """Where mouse events at `spot` are sent: they need no guess of the browser which frame they are for."""
        return self.element.frame.session_id

    @property
    def kind(self) -> str:
        """What sort of field it is: text, area, rich, whole, check, radio, switch, select, file, other."""
        return str(self.facts.get("kind"))


async def wait_actionable(
    box: Toolbox, page: Page, args: Mapping[str, Any], need: str, *, follow: FollowUp | None = None, **more: Any
) -> ActionableElement:
    """Wait until the element that the arguments name is ready for what is needed; see `js/wait_actionable.js`.

    What is to `follow` is done at once where the element is a text field of the tab's own document.
    """
    limits, loop = box.browsers.limits, page.link.loop
    until = loop.time() + limits.element_ready
    box.activity.wake(page)
    while True:
        left = max(0.0, until - loop.time())
        argument = {"need": need, "within": round(left * 1000), **more}
        element, answer = await _found(page, args, argument, min(left, limits.element_appear), follow)
        facts = answer if isinstance(answer, dict) else {}
        problem = facts.get("problem")
        if isinstance(problem, dict) and problem.get("why") == "detached" and left > 0 and "ref" not in args:
            # The page drew it anew while we looked.
            continue
        raise_problem(element, facts)
        x, y = spot = _number(facts.get("x")), _number(facts.get("y"))
        if element.frame.parent is not None:
            try:
                (x, y), spot = await _through(element, element.frame, x, y)
            except _Behind:
                if left <= 0:
                    raise
                await asyncio.sleep(_PAUSE)
                continue
        label = facts.get("label")
        return ActionableElement(
            replace(element, label=label[:500]) if isinstance(label, str) else element, x, y, spot, facts
        )


async def _found(
    page: Page, args: Mapping[str, Any], argument: dict[str, Any], appear: float, follow: FollowUp | None
) -> tuple[Element, Any]:
    """The element and what the page says of it: in one round trip if it is in the main frame."""
    ref = str(args.get("ref") or "")
    if names_element(args) and not ref.startswith("f"):
        wanted = {name: args[name] for name in _NAMES if args.get(name)} | {"near": False}
        frame = await main_frame(page)
        body = (
            f'const ready = globalThis.tabhubWaitActionable;\nif (!ready) return "{_BARE}";\n'
            f"const found = kit.find({page_code.literal(wanted)});\nif (!found?.ref || found.frames) return null;\n"
            f"return Promise.resolve(ready.call(kit.element(found.ref), {page_code.literal(argument)}))"
            ".then((ready) => ({ ...found, ready, go: Boolean(ready.typed) }));"
        )
        answer = await frame.run_code(body, follow)
        if answer == _BARE:
            # The functions stay in our world of the document, so that they are sent once and not with every click.
            answer = await frame.run_code(f"{_kept()}\n{body}", follow)
        if isinstance(answer, dict):
            return Element(page, frame, str(answer.get("ref")), str(answer.get("label"))[:500]), answer.get("ready")
    element = await find_element(page, args, wait=appear)
    return element, await element.call("wait_actionable", argument)


@cache
def _kept() -> str:
    kept = (("tabhubWaitActionable", "wait_actionable"), ("tabhubFieldValue", "field_value"))
    return "\n".join(f"globalThis.{name} = (\n{page_code.source(file)}\n);" for name, file in kept)


async def _through(element: Element, frame: Frame, x: float, y: float) -> tuple[_Point, _Point]:
    """Take a point of a frame's viewport out to the tab's, if nothing around the frame covers it.

    Given is also where it lies in the outermost frame of its own process. Where the page is drawn smaller or larger
    than it is, as on phones, the browser takes places of such a process as if they were scaled like the page.
    """
    spot, own, zoom = (x, y), True, 1.0
    while frame.parent is not None:
        place = await frame.parent.evaluate("point_through_frame", {"ref": await frame.owner_ref(), "x": x, "y": y})
        if not isinstance(place, dict):
            raise element.gone_error()
        if place.get("outside"):
            raise _error(element, {"why": "outside"}, _Behind)
        if cover := place.get("cover"):
            raise _error(element, {"why": "covered", "detail": f"{cover} of the page around its frame"}, _Behind)
        x, y, zoom = _number(place.get("x")), _number(place.get("y")), _number(place.get("zoom")) or 1.0
        own = own and frame.parent.session_id == frame.session_id
        spot = (x, y) if own else spot
        frame = frame.parent
    return (x, y), (spot if own else (spot[0] / zoom, spot[1] / zoom))


def raise_problem(element: Element, answer: Any) -> None:
    """Raise the error for what stands in the way, if something does."""
    problem = answer.get("problem") if isinstance(answer, dict) else None
    if isinstance(problem, dict):
        raise _error(element, problem)


def _error(element: Element, problem: Mapping[str, Any], kind: type[CommandFailed] = CommandFailed) -> CommandFailed:
    why = str(problem.get("why"))
    said, hint = _PROBLEMS.get(why, ("cannot be used", _AGAIN))
    options = problem.get("options")
    words = {
        "detail": str(problem.get("detail", ""))[:300],
        "options": ", ".join(str(option)[:80] for option in options[:40]) if isinstance(options, list) else "",
    }
    waited = _number(problem.get("waited")) / 1000
    after = f" after {waited:.1f} s" if waited >= 1 else ""
    return kind(
        f"{element.label} in tab {element.page.tab_id} {said.format(**words)}{after}.",
        hint=hint.format(**words),
        data={"problem": why, "ref": element.ref},
    )


def _number(value: Any) -> float:
    return float(value) if type(value) in (int, float) else 0.0
