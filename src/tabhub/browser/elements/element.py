"""Finding the element a tool works on: by ref, selector, text or role, in any frame of the tab.

Owns the arguments that name an element, the lookup, and the errors for an element that is missing. What is done with
the element is up to the tools.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tabhub.browser.driver import page_code
from tabhub.browser.driver.frames import Frame, list_frames, main_frame
from tabhub.browser.driver.isolated_worlds import World
from tabhub.browser.driver.page import FollowUp, Page
from tabhub.browser.driver.shadow_roots import open_closed_roots
from tabhub.errors import CommandFailed, InvalidArguments, PageNavigated

TARGET: dict[str, Any] = {
    "selector": {"type": "string", "description": "CSS selector"},
    "ref": {"type": "string", "description": "ref of a snapshot"},
    "text": {"type": "string", "description": "its name or text"},
    "role": {"type": "string"},
}
REF = re.compile(r"^(f[0-9]{1,6})?[a-z][0-9]{1,7}$")
_FRAME_REF = re.compile(r"(f[0-9]+)e[0-9]+")
_WEAK = 20
"""From this rank on a match only contains the text, or is hidden; see `js/match.js`."""
_POLL_PAUSES = (0.02, 0.05, 0.1, 0.2)
_ELEMENT_GONE = "tabhub:gone"
_NOT_STORED = "tabhub:not stored"


def poll_pause(attempt: int) -> float:
    """Seconds to wait before looking at the page again; grows with the number of attempts so far."""
    return _POLL_PAUSES[min(attempt, len(_POLL_PAUSES) - 1)]


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle in CSS pixels of the tab's viewport."""

    x: float
    y: float
    width: float
    height: float


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

    async def call(self, name: str, argument: dict[str, Any] | None = None, library: str = "") -> Any:
        """Call the function of `js/<name>.js` with the element as `this`, in our world; promises are awaited."""
        shared = page_code.source(library) + "\n" if library else ""
        value = await self.frame.run_code(
            f"{shared}const found = kit.element({page_code.literal(self.ref)});\n"
            f'if (!found) return "{_ELEMENT_GONE}";\n'
            f"return (\n{page_code.source(name)}\n).call(found, {page_code.literal(argument or {})});"
        )
        if value == _ELEMENT_GONE:
            raise self.gone_error()
        return value

    async def box(self) -> Box:
        """Its position in the tab's viewport, whichever frame it is in."""
        place, (left, top) = await asyncio.gather(self.call("element_box"), self.frame.offset())
        return Box(left + place["x"], top + place["y"], place["width"], place["height"])

    async def object_id(self) -> str:
        """A handle for CDP commands of the frame's session; `release` frees it."""
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
        self.page.cdp_nowait("Runtime.releaseObjectGroup", {"objectGroup": self._group}, self.frame.session_id)

    @property
    def _group(self) -> str:
        return f"tabhub {self.ref}"

    def gone_error(self) -> CommandFailed:
        return CommandFailed(
            f"{self.label} is no longer in the page of tab {self.page.tab_id}.",
            hint="The page changed; take a new browser_snapshot to see what is there now.",
        )


@dataclass(frozen=True, slots=True)
class ElementCall:
    """A page function to call on an element in the same round trip that finds it.

    The function is stored in our world of the document, so that its source is sent once and not with every call.
    """

    function: str
    """The global name of the function, called with the element as `this`."""
    definitions: Callable[[], str]
    """Code that defines it, and whatever else the same action needs."""
    argument: dict[str, Any]
    follow_up: FollowUp | None = None
    """Sent at once if the function returns `go: true`; only in the tab's main frame."""


def target_of(args: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the arguments that name an element."""
    return {name: args[name] for name in TARGET if args.get(name)}


def names_element(args: Mapping[str, Any]) -> bool:
    return bool(target_of(args))


async def find_element(page: Page, args: Mapping[str, Any], *, wait: float = 0.0) -> Element:
    """The element that the arguments name, searched in the main frame first, then in all others.

    Waits up to `wait` seconds for it to appear. The error for a missing element lists the nearest matches.
    """
    return (await _find(page, args, None, wait))[0]


async def find_and_call(
    page: Page, args: Mapping[str, Any], call: ElementCall, *, wait: float = 0.0
) -> tuple[Element, Any]:
    """Find an element as `find_element` does and call a function on it: one round trip in the main frame."""
    return await _find(page, args, call, wait)


async def _find(page: Page, args: Mapping[str, Any], call: ElementCall | None, wait: float) -> tuple[Element, Any]:
    wanted = target_of(args)
    if not wanted:
        raise InvalidArguments(
            "No element is named.", hint="Give a ref (from browser_snapshot), a selector, a text or a role."
        )
    loop = asyncio.get_running_loop()
    until, attempt = loop.time() + wait, 0
    while True:
        last = loop.time() >= until
        # Later looks only find: if the page navigates then, the lookup continues there, which a call must not.
        call_now = call if attempt == 0 else None
        try:
            found = await _look(page, wanted, call_now, near=last)
        except PageNavigated:
            if last or call_now is not None:
                raise
            found = {"why": "absent"}
        if isinstance(element := found.get("element"), Element):
            if call is None or "value" in found:
                return element, found.get("value")
            called = await _look_in_frame(element.frame, {"ref": element.ref}, call, near=False)
            if "value" not in called:
                raise element.gone_error()
            return element, called["value"]
        if last or found.get("why") in ("invalid", "gone"):
            raise _missing_error(page, wanted, found)
        await asyncio.sleep(min(poll_pause(attempt), max(0.0, until - loop.time())))
        attempt += 1


async def _look(page: Page, wanted: dict[str, Any], call: ElementCall | None, *, near: bool) -> dict[str, Any]:
    """One look at all frames: the `element` (and the call's `value`), or why it is missing."""
    if "ref" in wanted:
        frame = await _frame_of_ref(page, str(wanted["ref"]))
        return {"why": "gone"} if frame is None else await _look_in_frame(frame, wanted, call, near=near)
    best = await _look_in_frame(await main_frame(page), wanted, call, near=near)
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


async def _look_in_frame(
    frame: Frame, wanted: dict[str, Any], call: ElementCall | None, *, near: bool
) -> dict[str, Any]:
    found = await _run_lookup(frame, wanted, call, near=near)
    missing = found.get("missing")
    # Closed shadow roots are searched only when nothing else fits.
    if isinstance(missing, dict) and missing.get("hosts") and await open_closed_roots(frame):
        found = await _run_lookup(frame, wanted, call, near=near)
        missing = found.get("missing")
    if isinstance(found.get("ref"), str):
        others = found.get("others")
        label = str(found.get("label"))[:500]
        element = Element(frame.page, frame, found["ref"], label, others if type(others) is int else 0)
        result = {"element": element, "rank": found.get("rank"), "frames": found.get("frames")}
        return result | ({"value": found["value"]} if "value" in found else {})
    return missing if isinstance(missing, dict) else {"why": "absent"}


async def _run_lookup(frame: Frame, wanted: dict[str, Any], call: ElementCall | None, *, near: bool) -> dict[str, Any]:
    find = f"kit.find({page_code.literal({**wanted, 'near': near})})"
    if call is None:
        found = await frame.run_code(f"return {find};")
    else:
        # A match that other frames may still beat is not called.
        code = (
            f'if (!globalThis.{call.function}) return "{_NOT_STORED}";\nconst found = {find};\n'
            "if (!found?.ref || found.frames) return found;\n"
            f"return Promise.resolve({call.function}.call(kit.element(found.ref), {page_code.literal(call.argument)}))"
            ".then((value) => ({ ...found, value, go: Boolean(value?.go) }));"
        )
        follow_up = call.follow_up if frame.is_main else None
        found = await frame.run_code(code, follow_up)
        if found == _NOT_STORED:
            found = await frame.run_code(f"{call.definitions()}\n{code}", follow_up)
    return found if isinstance(found, dict) else {}


async def _frame_of_ref(page: Page, ref: str) -> Frame | None:
    """The frame whose document issued a ref; None if no document of the tab did."""
    inner = _FRAME_REF.fullmatch(ref)
    if inner is None:
        return await main_frame(page)
    others = (await list_frames(page))[1:]
    there = await asyncio.gather(*(frame.world() for frame in others), return_exceptions=True)
    prefix = f"{inner[1]}e"
    return next((f for f, w in zip(others, there, strict=True) if isinstance(w, World) and w.prefix == prefix), None)


def _missing_error(page: Page, wanted: dict[str, Any], missing: dict[str, Any]) -> CommandFailed:
    why, where = missing.get("why"), f"tab {page.tab_id} ({page.tab.url[:200]})"
    nearest = [str(name)[:300] for name in missing.get("nearest") or []]
    if why == "gone":
        return CommandFailed(
            f"The ref {wanted['ref']} names nothing in {where}: its element or its whole document is gone.",
            hint="Take a new browser_snapshot and use one of its refs.",
        )
    if why == "invalid":
        return CommandFailed(
            f"The selector {wanted['selector']!r} is not valid CSS: {missing.get('message')}",
            hint="`selector` accepts CSS only. Put the element's text into `text` and its role into `role`.",
        )
    described = _describe(wanted)
    if why == "several":
        return CommandFailed(
            f"{missing.get('count')} elements match {described} in {where}.",
            hint=f"Choose one by its ref: {', '.join(nearest)}.",
            data={"nearest": nearest},
        )
    nothing = "Nothing on the page has a similar id, class or name; browser_snapshot shows what there is."
    return CommandFailed(
        f"No element matches {described} in {where}.",
        hint=f"Nearest matches: {', '.join(nearest)}." if nearest else nothing,
        data={"nearest": nearest},
    )


def _describe(wanted: dict[str, Any]) -> str:
    parts = [repr(wanted["selector"])] if "selector" in wanted else []
    parts += [f"the text {wanted['text']!r}"] if "text" in wanted else []
    parts += [f"the role {wanted['role']!r}"] if "role" in wanted else []
    return " with ".join(parts)
