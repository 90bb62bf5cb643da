"""The element a tool is to work on: by ref, by selector, or by its text and role, in any frame of the tab.

Owns the arguments that name an element, finding it, and the words for when it is not there. What is done with it is the
tools' business.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tabhub.browser.driver import isolated_worlds as worlds
from tabhub.browser.driver import page_code
from tabhub.browser.driver.frames import Frame, list_frames, main_frame
from tabhub.browser.driver.isolated_worlds import World
from tabhub.browser.driver.page import Page
from tabhub.browser.driver.shadow_roots import open_closed_roots
from tabhub.errors import CommandFailed, InvalidArguments, PageNavigated

TARGET: dict[str, Any] = {
    "selector": {"type": "string", "description": "CSS selector"},
    "ref": {"type": "string", "description": "ref of a snapshot"},
    "text": {"type": "string", "description": "its name or text"},
    "role": {"type": "string"},
}
REF = re.compile(r"^(f[0-9]{1,6})?[a-z][0-9]{1,7}$")
"""What a ref looks like."""
_NAMES = ("ref", "selector", "text", "role")
_FRAME = re.compile(r"(f[0-9]+)e[0-9]+")
_WEAK = 20
"""From here on a match only contains the text, or is hidden; see `js/match.js`."""
_PAUSES = (0.02, 0.05, 0.1, 0.2)


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle in CSS pixels of the tab's viewport."""

    x: float
    y: float
    width: float
    height: float

    @property
    def center(self) -> tuple[float, float]:
        """Its middle."""
        return self.x + self.width / 2, self.y + self.height / 2


@dataclass(frozen=True, slots=True)
class Element:
    """One element of a document, known by its ref; it holds nothing in the page alive."""

    page: Page
    frame: Frame
    ref: str
    label: str
    """As people and agents are told of it: `button "Send" [e12]`."""
    others: int = 0
    """How many more elements the selector matches."""

    async def call(self, name: str, argument: dict[str, Any] | None = None, library: str = "") -> Any:
        """Call the function of `js/<name>.js` with the element as `this`, in our world; promises are awaited."""
        shared = page_code.source(library) + "\n" if library else ""
        value = await self.frame.run_code(
            f"{shared}const found = kit.element({page_code.literal(self.ref)});\n"
            f'if (!found) return "{worlds.ELEMENT_GONE}";\n'
            f"return (\n{page_code.source(name)}\n).call(found, {page_code.literal(argument or {})});"
        )
        if value == worlds.ELEMENT_GONE:
            raise self.gone_error()
        return value

    async def box(self) -> Box:
        """Where it lies in the tab's viewport, wherever its frame is."""
        place, (left, top) = await asyncio.gather(self.call("element_box"), self.frame.offset())
        return Box(left + place["x"], top + place["y"], place["width"], place["height"])

    async def object_id(self) -> str:
        """A handle of the element for CDP commands of its frame's session; `release` lets go of it."""
        world = await self.frame.world()
        params = {
            "expression": f"globalThis.tabhubKit?.element({page_code.literal(self.ref)})",
            "contextId": world.context_id,
            "objectGroup": self._group,
        }
        answer = await self.page.cdp("Runtime.evaluate", params, self.frame.session_id)
        object_id = answer.get("result", {}).get("objectId")
        if not isinstance(object_id, str):
            raise self.gone_error()
        return object_id

    def release(self) -> None:
        """Let go of the handles that `object_id` gave."""
        self.page.cdp_nowait("Runtime.releaseObjectGroup", {"objectGroup": self._group}, self.frame.session_id)

    @property
    def _group(self) -> str:
        return f"tabhub {self.ref}"

    def gone_error(self) -> CommandFailed:
        """The error for an element that the page has taken away."""
        return CommandFailed(
            f"{self.label} is no longer in the page of tab {self.page.tab_id}.",
            hint="The page changed; a new browser_snapshot shows what is there now.",
        )


def names_element(args: Mapping[str, Any]) -> bool:
    """Whether the arguments name an element at all."""
    return any(args.get(name) for name in _NAMES)


async def find_element(page: Page, args: Mapping[str, Any], *, wait: float = 0.0) -> Element:
    """The element that the arguments name, searched in the main frame first, then in all others.

    Waits up to `wait` seconds for it to appear. The error for one that is not there says what comes nearest.
    """
    if not names_element(args):
        raise InvalidArguments(
            "No element is named.", hint="Give a ref (from browser_snapshot), a selector, a text or a role."
        )
    wanted = {name: args[name] for name in _NAMES if args.get(name)}
    loop = asyncio.get_running_loop()
    until, turn = loop.time() + wait, 0
    while True:
        last = loop.time() >= until
        try:
            found = await _once(page, wanted, near=last)
        except PageNavigated:
            # The next page may have it.
            if last:
                raise
            found = {"why": "absent"}
        if isinstance(element := found.get("element"), Element):
            return element
        if last or found.get("why") in ("invalid", "gone"):
            raise _absent(page, wanted, found)
        await asyncio.sleep(min(_PAUSES[min(turn, len(_PAUSES) - 1)], max(0.0, until - loop.time())))
        turn += 1


async def _once(page: Page, wanted: dict[str, Any], *, near: bool) -> dict[str, Any]:
    """One look at all frames: the `element`, or what is known of its absence."""
    if "ref" in wanted:
        frame = await _frame_of(page, str(wanted["ref"]))
        return {"why": "gone"} if frame is None else await _ask(frame, wanted, near=near)
    best = await _ask(await main_frame(page), wanted, near=near)
    # The best match in the page may still be a weak one: words that only contain the text, something hidden.
    if not best.get("frames") or (best.get("why") != "absent" and _rank(best) < _WEAK):
        return best
    others = (await list_frames(page))[1:]
    answers = await asyncio.gather(*(_ask(frame, wanted, near=near) for frame in others), return_exceptions=True)
    nearest = list(best.get("nearest") or [])
    for answer in answers:
        # A frame that went, or that belongs to the browser itself, cannot hold the element.
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
    """How well a match fits, the best 0; one element is better than several that fit as well."""
    if found.get("why") in ("absent", "invalid", "gone"):
        return math.inf
    rank = found.get("rank")
    return (float(rank) if type(rank) is int else 0.0) + (0.5 if found.get("why") else 0.0)


async def _ask(frame: Frame, wanted: dict[str, Any], *, near: bool) -> dict[str, Any]:
    """What one frame has: an `element`, or why it has none."""
    body = f"return kit.find({page_code.literal({**wanted, 'near': near})});"
    found = await frame.run_code(body)
    missing = found.get("missing") if isinstance(found, dict) else None
    # What a page's components hide counts when nothing else fits.
    if isinstance(missing, dict) and missing.get("hosts") and await open_closed_roots(frame):
        found = await frame.run_code(body)
    if isinstance(found, dict) and isinstance(found.get("ref"), str):
        others = found.get("others")
        label = str(found.get("label"))[:500]
        element = Element(frame.page, frame, found["ref"], label, others if type(others) is int else 0)
        return {"element": element, "rank": found.get("rank"), "frames": found.get("frames")}
    missing = found.get("missing") if isinstance(found, dict) else None
    return missing if isinstance(missing, dict) else {"why": "absent"}


async def _frame_of(page: Page, ref: str) -> Frame | None:
    """The frame whose document gave out a ref; None when no document of the tab did."""
    inner = _FRAME.fullmatch(ref)
    if inner is None:
        return await main_frame(page)
    others = (await list_frames(page))[1:]
    there = await asyncio.gather(*(frame.world() for frame in others), return_exceptions=True)
    prefix = f"{inner[1]}e"
    return next((f for f, w in zip(others, there, strict=True) if isinstance(w, World) and w.prefix == prefix), None)


def _absent(page: Page, wanted: dict[str, Any], missing: dict[str, Any]) -> CommandFailed:
    """The error for an element that is not there, with what was there instead."""
    why, where = missing.get("why"), f"tab {page.tab_id} ({page.tab.url[:200]})"
    nearest = [str(name)[:300] for name in missing.get("nearest") or []]
    if why == "gone":
        return CommandFailed(
            f"The ref {wanted['ref']} names nothing in {where}: its element or its whole document is gone.",
            hint="Take a new browser_snapshot and use a ref of that.",
        )
    if why == "invalid":
        return CommandFailed(
            f"The selector {wanted['selector']!r} is not valid CSS: {missing.get('message')}",
            hint="Only CSS is taken as a selector. What an element says goes into `text`, its role into `role`.",
        )
    said = _said(wanted)
    if why == "several":
        return CommandFailed(
            f"{missing.get('count')} elements match {said} in {where}.",
            hint=f"Say which by its ref: {', '.join(nearest)}.",
            data={"nearest": nearest},
        )
    nothing = "Nothing on the page has a similar id, class or name; browser_snapshot shows what there is."
    return CommandFailed(
        f"No element matches {said} in {where}.",
        hint=f"Nearest there: {', '.join(nearest)}." if nearest else nothing,
        data={"nearest": nearest},
    )


def _said(wanted: dict[str, Any]) -> str:
    parts = [repr(wanted["selector"])] if "selector" in wanted else []
    parts += [f"the text {wanted['text']!r}"] if "text" in wanted else []
    parts += [f"the role {wanted['role']!r}"] if "role" in wanted else []
    return " with ".join(parts)
