"""browser_find and browser_query_elements: elements in all frames, without reading the whole page."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson

from tabhub.browser.driver.cdp_values import parse_int, parse_object
from tabhub.browser.driver.frames import Frame, frame_offset, list_frames, main_frame
from tabhub.browser.driver.listeners import learn_listeners
from tabhub.browser.driver.shadow_roots import run_with_closed_roots
from tabhub.browser.driver.worlds import literal
from tabhub.browser.elements.element import TARGET, TARGET_NAMES, find_element, names_element
from tabhub.browser.schemas import free_object, integer, list_of, rows, text
from tabhub.browser.tool_spec import Call, text_result, tool
from tabhub.core.descriptions import one_line, visible
from tabhub.core.tools import ToolResult
from tabhub.errors import CommandFailed, InvalidArguments

_FIND_LIMIT, _QUERY_LIMIT = 20, 50
_MAX_NAME = 200


@tool(
    "browser_find",
    "Find elements",
    "Finds elements by text and role in all frames, exact matches first; returns refs.",
    params={"text?": "string", "role?": "string", "limit?": integer(least=1, most=200), "boxes?": "boolean"},
    output={"tabId": "integer", "elements": list_of("object"), "total": "integer", "nearest?": list_of("string")},
    read_only=True,
)
async def find(call: Call) -> ToolResult:
    args = call.args
    if not args.get("text") and not args.get("role"):
        raise InvalidArguments("No search term is given.", hint="Give a text, a role, or both.")
    page = await call.page()
    limit = args.get("limit", _FIND_LIMIT)
    wanted = {"text": args.get("text"), "role": args.get("role"), "limit": limit, "near": True}
    boxes = bool(args.get("boxes"))
    answers = [await _search(await main_frame(page), wanted, boxes)]
    if answers[0].get("frames"):
        others = (await list_frames(page))[1:]
        answers += await asyncio.gather(*(_search(frame, wanted, boxes) for frame in others))
    # Matches of all frames: best first, then in frame order.
    found = sorted((one for answer in answers for one in answer.get("found") or []), key=lambda one: int(one["rank"]))
    elements = [_describe(one) for one in found[:limit]]
    total = sum(int(answer.get("total", 0)) for answer in answers)
    facts: dict[str, Any] = {"tabId": page.tab_id, "elements": elements, "total": total}
    lines = [_line(element) for element in elements]
    if total > len(elements):
        lines.append(f"[{total - len(elements)} more match; raise limit, or narrow text or role.]")
    if not elements:
        nearest = [_shown(name) for answer in answers for name in answer.get("nearest") or []][:6]
        facts["nearest"] = nearest
        there = f" Nearest matches: {', '.join(nearest)}." if nearest else " Nothing there is similar."
        lines = [f"Nothing in tab {page.tab_id} ({page.tab.url[:200]}) matches.{there}"]
    return text_result("\n".join(lines), facts)


async def _search(frame: Frame, wanted: dict[str, Any], boxes: bool) -> dict[str, Any]:
    """The matches of one frame; none for one that was removed meanwhile or belongs to the browser."""
    try:
        wanted = wanted | (await frame_offset(frame) if boxes else {})
        code = f"return kit.search({literal(wanted)});"
        answer = parse_object(await run_with_closed_roots(frame, code))
        if _listeners_matter(answer) and await learn_listeners(frame):
            answer = parse_object(await run_with_closed_roots(frame, code))
        return answer
    except CommandFailed:
        if frame.parent is None:
            raise
        return {}


def _listeners_matter(answer: dict[str, Any]) -> bool:
    """Whether the page's listeners may change the answer: they make elements with a text actionable, and find no other
    ones unless only a role is asked for. Asking for them costs much where there are thousands."""
    found = answer.get("found") or []
    return not found or not all(one.get("acts") is True for one in found)


def _describe(one: dict[str, Any]) -> dict[str, Any]:
    details: dict[str, Any] = {name: _shown(one[name]) for name in ("where", "states") if one.get(name)}
    if box := parse_object(one.get("box")):
        details["box"] = {side: parse_int(box.get(side)) for side in ("x", "y", "width", "height")}
    return {
        "ref": str(one["ref"]),
        "role": str(one["role"])[:40],
        "name": _shown(one["name"]),
        "visible": one.get("visible") is True,
        **details,
    }


def _shown(text: Any) -> str:
    """A text of the page, so that it can be given back as a target."""
    return one_line(visible(str(text))[0], _MAX_NAME)


def _line(element: dict[str, Any]) -> str:
    states = f" {element['states']}" if "states" in element else ""
    states += f" box={','.join(map(str, element['box'].values()))}" if "box" in element else ""
    hidden = "" if element["visible"] else " (not visible)"
    where = f" in {element['where']}" if "where" in element else ""
    return f'{element["role"]} "{element["name"]}" [ref={element["ref"]}{states}]{hidden}{where}'


@tool(
    "browser_query_elements",
    "Query elements",
    "Lists matching elements in all frames and shadow roots: tag, text, ref, box, visibility, and the requested "
    "attributes.",
    params={
        **TARGET,
        "limit?": integer(f"Default {_QUERY_LIMIT}.", least=1, most=500),
        "attributes?": list_of(text(least=1, most=100), "Names, e.g. href; value, checked etc. are current.", most=30),
    },
    output={
        "tabId": "integer",
        "total": integer("How many match."),
        "elements": rows(
            {
                "ref": "string",
                "tag": "string",
                "role?": "string",
                "text": "string",
                "visible": "boolean",
                "box?": free_object("x, y, width, height in CSS pixels of the tab's viewport."),
                "attributes?": "object",
                "frame?": text("URL of the frame, if not the page itself."),
            }
        ),
        "note?": "string",
    },
    read_only=True,
)
async def query_elements(call: Call) -> ToolResult:
    args, page = call.args, await call.page()
    if not names_element(args):
        raise InvalidArguments("No element is given.", hint="Give a selector, a text, a role, a label or a ref.")
    limit = args.get("limit", _QUERY_LIMIT)
    options = {name: args.get(name) for name in TARGET_NAMES}
    options |= {"limit": limit, "attributes": args.get("attributes", [])}
    answers = await asyncio.gather(*(_query_frame(frame, options) for frame in await list_frames(page)))
    invalid = next((answer["invalid"] for answer in answers if "invalid" in answer), None)
    if invalid is not None:
        raise InvalidArguments(f"The selector {args.get('selector')!r} is not valid CSS: {str(invalid)[:300]}")
    elements = [element for answer in answers for element in answer["elements"]]
    total = sum(answer["total"] for answer in answers)
    more = f"{total - limit} more match; raise limit or narrow the target." if total > limit else ""
    note = more if total else await _no_match_note(call)
    shown = elements[:limit]
    lines = [f"{total} element{'' if total == 1 else 's'}", *map(_element_line, shown)]
    return text_result("\n".join(lines), {"tabId": page.tab_id, "total": total, "elements": shown}, note)


def _element_line(element: dict[str, Any]) -> str:
    """The tag and what else is known of an element, in the notation of snapshots."""
    role = f" {element['role']}" if element.get("role") else ""
    name = f" {orjson.dumps(one_line(visible(element['text'])[0], _MAX_NAME)).decode()}" if element["text"] else ""
    box = ",".join(f"{element['box'][side]:g}" for side in ("x", "y", "width", "height"))
    given = element.get("attributes", {}).items()
    attributes = "".join(f" {name}={orjson.dumps(value).decode()}" for name, value in given if value is not None)
    hidden = "" if element["visible"] else " (not visible)"
    where = f" in {element['frame']}" if "frame" in element else ""
    return f"{element['tag']}{role}{name} [ref={element['ref']} box={box}]{attributes}{hidden}{where}"


async def _query_frame(frame: Frame, options: dict[str, Any]) -> dict[str, Any]:
    """The matches of one frame with boxes in tab coordinates; none for a frame that was removed."""
    found: dict[str, Any] = {"elements": [], "total": 0}
    try:
        await learn_listeners(frame)
        found |= parse_object(await frame.evaluate("query", options))
        left, top = (0.0, 0.0) if frame.parent is None or not found["elements"] else await frame.offset()
    except CommandFailed:
        if frame.parent is None:
            raise
        return {"elements": [], "total": 0}
    for element in found["elements"]:
        element["box"]["x"] = round(element["box"]["x"] + left, 1)
        element["box"]["y"] = round(element["box"]["y"] + top, 1)
        if frame.parent is not None:
            element["frame"] = frame.url[:500]
    return found


async def _no_match_note(call: Call) -> str:
    try:
        await find_element(await call.page(), call.args)
    except CommandFailed as error:
        return f"{error.message} {error.hint or ''}".strip()
    return "Nothing matched at first, but an element does now: repeat the call."
