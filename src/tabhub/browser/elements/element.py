"""The element a tool works on: finding it by ref, selector, text or role in any frame, until it is actionable.

Actionable means attached, visible, still, enabled, in view and not covered; the round trip that finds the element also
checks it. What is done with the element is up to the tools.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from tabhub.browser.driver.cdp_values import parse_number, parse_object, parse_objects
from tabhub.browser.driver.frames import FollowUp, Frame, list_frames, main_frame
from tabhub.browser.driver.page import Page
from tabhub.browser.driver.shadow_roots import open_closed_roots
from tabhub.browser.driver.worlds import World, literal, source
from tabhub.browser.elements import pointer
from tabhub.browser.elements.element_errors import missing_error, problem_error
from tabhub.core.shown_elements import ShownElement
from tabhub.errors import CommandFailed, ElementChanged, InvalidArguments, PageNavigated

TARGET: dict[str, Any] = {
    "selector?": "string",
    "ref?": "string",
    "text?": "string",
    "role?": "string",
    "label?": "string",
}
"""The parameters that name an element: by CSS selector, by ref, by name or text, by role, or a field by its label."""
TARGET_NAMES = tuple(name.removesuffix("?") for name in TARGET)
REF = re.compile(r"^(f[0-9]{1,6})?[a-z][0-9]{1,7}$")
_FRAME_REF = re.compile(r"(f[0-9]+)e[0-9]+")
_WEAK = 20
"""From this rank on a match only contains the text, or is hidden; see `js/kit/match.js`."""
_POLL_PAUSES = (0.02, 0.05, 0.1, 0.2)
_ELEMENT_GONE = "tabhub:gone"
_COVERED_PAUSE = 0.1
"""Seconds before looking again at a frame that is covered."""
_REVEALED = 150
"""Milliseconds in which the page shows what the pointer reveals."""
_Point = tuple[float, float]


def poll_pause(attempt: int) -> float:
    """Seconds to wait before looking at the page again; grows with the number of attempts so far."""
    return _POLL_PAUSES[min(attempt, len(_POLL_PAUSES) - 1)]


@dataclass(frozen=True, slots=True)
class Area:
    """A rectangle in CSS pixels."""

    x: float
    y: float
    width: float
    height: float

    def meets(self, other: Area) -> bool:
        across = other.x < self.x + self.width and self.x < other.x + other.width
        return across and other.y < self.y + self.height and self.y < other.y + other.height


@dataclass(frozen=True, slots=True)
class Element:
    """One element of a document, known by its ref; it keeps nothing in the page alive."""

    page: Page
    frame: Frame
    ref: str
    label: str
    """How results and errors name it: `button "Send" [e12]`."""
    others: int = 0
    """How many more elements the selector matches."""
    instead: tuple[str, ...] = ()
    """Visible elements that only contain the text, if this one is hidden."""

    async def call(self, name: str, argument: dict[str, Any] | None = None) -> Any:
        """Call the function of `<name>.js` in our world with the element as `this`; a problem it returns is raised."""
        value = await self.frame.run_code(
            f"const found = kit.element({literal(self.ref)});\n"
            f'if (!found) return "{_ELEMENT_GONE}";\n'
            f"return (\n{source(name)}\n).call(found, {literal(argument or {})});"
        )
        if value == _ELEMENT_GONE:
            raise self.gone_error()
        if isinstance(value, dict) and isinstance(problem := value.get("problem"), dict):
            raise problem_error(self, problem)
        return value

    async def box(self) -> Area:
        """Its position in the tab's viewport, whichever frame it is in."""
        place, (left, top) = await asyncio.gather(self.call("element_box"), self.frame.offset())
        return Area(left + place["x"], top + place["y"], place["width"], place["height"])

    @asynccontextmanager
    async def object_id(self) -> AsyncIterator[str]:
        """A handle for CDP commands of the frame's session."""
        world, session = await self.frame.world(), self.frame.session_id
        group = {"objectGroup": f"tabhub {self.ref}"}
        expression = f"globalThis.tabhubKit?.element({literal(self.ref)})"
        params = {"expression": expression, "contextId": world.context_id, **group}
        answer = await self.page.cdp("Runtime.evaluate", params, session)
        object_id = answer.get("result", {}).get("objectId")
        if not isinstance(object_id, str):
            raise self.gone_error()
        try:
            yield object_id
        finally:
            self.page.cdp_nowait("Runtime.releaseObjectGroup", group, session)

    def gone_error(self) -> CommandFailed:
        return CommandFailed(
            f"{self.label} is no longer in the page of tab {self.page.tab_id}.",
            hint="The page changed; take a new browser_snapshot to see what is there now.",
        )


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
    kind: str
    """Kind of field: text, area, rich, whole, check, radio, switch, select, file, other."""
    facts: Mapping[str, Any]
    """What the page reported besides: checked, empty, url."""


@dataclass(frozen=True, slots=True)
class _Check:
    """The actionability check that the lookup makes on the element it finds."""

    argument: dict[str, Any]
    follow: FollowUp | None
    shown: ShownElement | None = None
    """What the person was shown of the element."""

    @property
    def literal(self) -> str:
        shown = self.shown
        more = {} if shown is None else {"shown": {"role": shown.role, "name": shown.name}}
        return literal({**self.argument, **more})


def target_of(args: Mapping[str, Any]) -> dict[str, Any]:
    return {name: args[name] for name in TARGET_NAMES if args.get(name)}


def names_element(args: Mapping[str, Any]) -> bool:
    return bool(target_of(args))


async def find_element(page: Page, args: Mapping[str, Any], *, wait: float = 0.0) -> Element:
    """The element that the arguments name, searched in the main frame first, then in all others.

    Waits up to `wait` seconds for it to appear. The error for a missing element lists the nearest matches.
    """
    element = (await _find(page, args, None, wait))[0]
    page.note_target(target_of(args), element.label)
    return element


async def wait_actionable(
    page: Page, args: Mapping[str, Any], need: str, *, follow: FollowUp | None = None, **more: Any
) -> ActionableElement:
    """Wait until the element that the arguments name is actionable; for `need` see `js/acting/wait_actionable.js`.

    `follow` is sent at once if the element is a text field of the tab's main document.
    """
    limits, loop = page.link.limits, page.link.loop
    until, hovered = loop.time() + limits.element_ready, 0
    more["settle"] = round(limits.element_settled * 1000)
    while True:
        left = max(0.0, until - loop.time())
        check = _Check({"need": need, "within": round(left * 1000), **more}, follow)
        element, answer = await _find(page, args, check, min(left, limits.element_appear))
        facts = answer if isinstance(answer, dict) else {}
        if isinstance(problem := facts.get("problem"), dict):
            if problem.get("why") == "changed" and (shown := page.shown_element(target_of(args))) is not None:
                raise ElementChanged(shown.text, f"it is {problem.get('detail')} now")
            if problem.get("why") == "detached" and left > 0 and "ref" not in args:
                # The page replaced it between the lookup and the check.
                continue
            if problem.get("settled") and page.is_loading and left > 0:
                # What it is waiting for may be a response.
                await asyncio.sleep(poll_pause(len(_POLL_PAUSES)))
                continue
            if hovered < len(points := parse_objects(problem.get("reveal"))):
                await _hover(element, points[hovered])
                hovered += 1
                more["settle"] = _REVEALED
                continue
            raise problem_error(element, problem)
        x, y = point = float(facts["x"]), float(facts["y"])
        if element.frame.parent is not None:
            try:
                (x, y), point = await _point_through_frames(element, element.frame, x, y)
            except _CoveredFrame:
                if left <= 0:
                    raise
                await asyncio.sleep(_COVERED_PAUSE)
                continue
        page.state.worlds.acted.add((element.frame.session_id, element.frame.frame_id))
        label = facts.get("label")
        element = replace(element, label=label[:500]) if isinstance(label, str) else element
        page.note_target(target_of(args), element.label, _area(facts, x, y))
        return ActionableElement(element, x, y, point, str(facts.get("kind")), facts)


def _area(facts: Mapping[str, Any], x: float, y: float) -> tuple[float, float, float, float] | None:
    """Where the element is in the tab's viewport, as its point is known there and in its own frame."""
    box = facts.get("box")
    if not isinstance(box, list) or len(box) != 4:
        return None
    left, top, width, height = (parse_number(side) for side in box)
    return x + left - parse_number(facts.get("x")), y + top - parse_number(facts.get("y")), width, height


async def _hover(element: Element, point: Any) -> None:
    """Move the mouse to a point of the element's frame."""
    x, y = parse_number(point.get("x")), parse_number(point.get("y"))
    if element.frame.parent is not None:
        _, (x, y) = await _point_through_frames(element, element.frame, x, y)
    move = pointer.mouse_event("mouseMoved", x, y)
    await pointer.send_events(element.page, [move], element.frame.session_id)


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
            raise problem_error(element, {"why": "outside"}, _CoveredFrame)
        if cover := place.get("cover"):
            detail = f"{cover} of the page around its frame"
            raise problem_error(element, {"why": "covered", "detail": detail}, _CoveredFrame)
        x, y = parse_number(place.get("x")), parse_number(place.get("y"))
        zoom = parse_number(place.get("zoom")) or 1.0
        same_process = same_process and frame.parent.session_id == frame.session_id
        point = (x, y) if same_process else point
        frame = frame.parent
    return (x, y), (point if same_process else (point[0] / zoom, point[1] / zoom))


async def _find(page: Page, args: Mapping[str, Any], check: _Check | None, wait: float) -> tuple[Element, Any]:
    wanted = target_of(args)
    if not wanted:
        raise InvalidArguments(
            "No element is named.",
            hint="Give a ref (from browser_snapshot), a selector, a text, a role, or a field's label.",
        )
    if (shown := page.shown_element(wanted)) is not None:
        if check is not None:
            check = replace(check, shown=shown)
        if shown.ref is not None:
            # No other element will do, whichever the target names by now.
            return await _find_shown(page, shown, check)
    loop = asyncio.get_running_loop()
    until, attempt = loop.time() + wait, 0
    while True:
        last = loop.time() >= until
        # Later looks only find: if the page navigates then, the lookup continues there, which a check must not.
        check_now = check if attempt == 0 else None
        try:
            found = await _look(page, wanted, check_now, near=last)
        except PageNavigated:
            if last or check_now is not None:
                raise
            found = {"why": "absent"}
        if isinstance(element := found.get("element"), Element):
            # The page may also have navigated while it was looked for.
            if element.frame.parent is None:
                page.require_top()
            else:
                await element.frame.require_permitted()
            shown = page.shown_element(wanted)
            if check is None or "value" in found:
                if shown is not None and (check is None or check.shown is not shown):
                    await _require_shown(element, shown)
                return element, found.get("value")
            again = replace(check, shown=shown) if shown is not None else check
            checked = await _look_in_frame(element.frame, {"ref": element.ref}, again, near=False)
            if "value" not in checked:
                raise element.gone_error()
            return element, checked["value"]
        # Several elements seldom become one.
        decided = found.get("why") == "several" and not found.get("changing") and not page.is_loading
        if last or decided or found.get("why") in ("invalid", "gone"):
            raise missing_error(page, wanted, found)
        await asyncio.sleep(min(poll_pause(attempt), max(0.0, until - loop.time())))
        attempt += 1


async def _find_shown(page: Page, shown: ShownElement, check: _Check | None) -> tuple[Element, Any]:
    """The very element that the person was shown; ElementChanged if it is gone or has another name."""
    found = await _look(page, {"ref": shown.ref}, None, near=False)
    element = found.get("element")
    if not isinstance(element, Element):
        raise ElementChanged(shown.text, "it is no longer there")
    await element.frame.require_permitted()
    if check is None:
        await _require_shown(element, shown)
        return element, None
    checked = await _look_in_frame(element.frame, {"ref": element.ref}, check, near=False)
    if "value" not in checked:
        raise ElementChanged(shown.text, "it is no longer there")
    return element, checked["value"]


async def _require_shown(element: Element, shown: ShownElement) -> None:
    seen = parse_object(await element.call("identity"))
    if (seen.get("role"), seen.get("name")) != (shown.role, shown.name):
        raise ElementChanged(shown.text, f"it is {element.label} now")


async def _look(page: Page, wanted: dict[str, Any], check: _Check | None, *, near: bool) -> dict[str, Any]:
    """One look at all frames: the `element` (and the check's `value`), or why it is missing."""
    if "ref" in wanted:
        frame = await _frame_of_ref(page, str(wanted["ref"]))
        return {"why": "gone"} if frame is None else await _look_in_frame(frame, wanted, check, near=near)
    best = await _look_in_frame(await main_frame(page), wanted, check, near=near)
    # The best match of the main frame may be weak: text that is only contained, something hidden.
    if not best.get("frames") or (best.get("why") != "absent" and _rank(best) < _WEAK):
        return best
    others = (await list_frames(page))[1:]
    answers = await asyncio.gather(
        *(_look_in_frame(frame, wanted, None, near=near) for frame in others), return_exceptions=True
    )
    nearest = list(best.get("nearest") or [])
    for answer in answers:
        # A frame that was removed, or that belongs to the browser itself, cannot contain the element.
        if isinstance(answer, BaseException):
            if not isinstance(answer, CommandFailed):
                raise answer
            continue
        if answer.get("why") == "absent":
            nearest += answer.get("nearest") or []
        if _rank(answer) < _rank(best):
            best = answer
    return {**best, "nearest": nearest[:6]} if best.get("why") == "absent" else best


def _rank(found: Mapping[str, Any]) -> float:
    """How well a match fits, 0 is best; one element is better than several that fit equally well."""
    if found.get("why") in ("absent", "invalid", "gone"):
        return math.inf
    rank = found.get("rank")
    return (float(rank) if type(rank) is int else 0.0) + (0.5 if found.get("why") else 0.0)


async def _look_in_frame(frame: Frame, wanted: dict[str, Any], check: _Check | None, *, near: bool) -> dict[str, Any]:
    find = f"kit.find({literal({**wanted, 'near': near})})"
    code, follow = f"return {find};", None
    if check is not None:
        follow = check.follow if frame.parent is None else None
        if frame.parent is None:
            frame.page.require_top()
        else:
            await frame.require_permitted()
        # A match that other frames may still beat is not checked.
        code = (
            f"const found = {find};\nif (!found?.ref || found.frames) return found;\n"
            f"return kit.waitActionable.call(kit.element(found.ref), {check.literal})"
            ".then((value) => ({ ...found, value, go: Boolean(value?.go) }));"
        )
    found = await frame.run_code(code, follow)
    missing = found.get("missing") if isinstance(found, dict) else None
    # Closed shadow roots are searched only when nothing else fits.
    if isinstance(missing, dict) and missing.get("hosts") and await open_closed_roots(frame):
        found = await frame.run_code(code, follow)
        missing = found.get("missing") if isinstance(found, dict) else None
    if isinstance(found, dict) and isinstance(found.get("ref"), str):
        element = Element(
            *(frame.page, frame, found["ref"], str(found.get("label"))[:500], found.get("others") or 0),
            tuple(str(label)[:300] for label in found.get("instead") or ()),
        )
        result = {"element": element, "rank": found.get("rank"), "frames": found.get("frames")}
        return result | ({"value": found["value"]} if "value" in found else {})
    return missing if isinstance(missing, dict) else {"why": "absent"}


async def _frame_of_ref(page: Page, ref: str) -> Frame | None:
    """The frame whose document issued a ref; None if no document of the tab did."""
    inner = _FRAME_REF.fullmatch(ref)
    if inner is None:
        return await main_frame(page)
    others = (await list_frames(page))[1:]
    there = await asyncio.gather(*(frame.world() for frame in others), return_exceptions=True)
    prefix = f"{inner[1]}e"
    return next((f for f, w in zip(others, there, strict=True) if isinstance(w, World) and w.prefix == prefix), None)
