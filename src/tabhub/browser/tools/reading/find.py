"""browser_find: elements by text or role, with refs, without reading the whole page."""

from __future__ import annotations

import asyncio
from typing import Any

from tabhub.browser.driver.frames import Frame, list_frames, main_frame
from tabhub.browser.driver.shadow_roots import open_closed_roots
from tabhub.browser.driver.worlds import literal
from tabhub.browser.schemas import integer, list_of
from tabhub.browser.tool_spec import Call, tool
from tabhub.core.descriptions import one_line
from tabhub.core.tools import ToolResult
from tabhub.errors import CommandFailed, InvalidArguments

_DEFAULT_LIMIT = 20
_MAX_LIMIT = 200
_MAX_NAME = 200


@tool(
    "browser_find",
    "Find elements",
    "Finds elements by name or text (exact matches first) and role in all frames; returns refs.",
    params={"text?": "string", "role?": "string", "limit?": integer(least=1, most=_MAX_LIMIT)},
    output={"tabId": "integer", "elements": list_of("object"), "total": "integer", "nearest?": list_of("string")},
    read_only=True,
)
async def find(call: Call) -> ToolResult:
    args = call.args
    if not args.get("text") and not args.get("role"):
        raise InvalidArguments("No search term is given.", hint="Give a text, a role, or both.")
    page = await call.page()
    limit = args.get("limit", _DEFAULT_LIMIT)
    wanted = {"text": args.get("text"), "role": args.get("role"), "limit": limit, "near": True}
    answers = [await _search(await main_frame(page), wanted)]
    if answers[0].get("frames"):
        others = (await list_frames(page))[1:]
        answers += await asyncio.gather(*(_search_frame(frame, wanted) for frame in others))
    # Matches of all frames: best first, then in frame order.
    found = sorted((one for answer in answers for one in answer.get("found") or []), key=lambda one: int(one["rank"]))
    elements = [_element_facts(one) for one in found[:limit]]
    total = sum(int(answer.get("total", 0)) for answer in answers)
    facts: dict[str, Any] = {"tabId": page.tab_id, "elements": elements, "total": total}
    lines = [_line(element) for element in elements]
    if total > len(elements):
        lines.append(f"[{total - len(elements)} more match; raise limit, or narrow text or role.]")
    if not elements:
        nearest = [one_line(str(name), _MAX_NAME) for answer in answers for name in answer.get("nearest") or []][:6]
        facts["nearest"] = nearest
        there = f" Nearest matches: {', '.join(nearest)}." if nearest else " Nothing there is similar."
        lines = [f"Nothing in tab {page.tab_id} ({page.tab.url[:200]}) matches.{there}"]
    return ToolResult.of([{"type": "text", "text": "\n".join(lines)}], structured=facts)


async def _search(frame: Frame, wanted: dict[str, Any]) -> dict[str, Any]:
    body = f"return kit.search({literal(wanted)});"
    answer = await frame.run_code(body)
    if isinstance(answer, dict) and answer.get("hosts") and await open_closed_roots(frame):
        answer = await frame.run_code(body)
    return answer if isinstance(answer, dict) else {}


async def _search_frame(frame: Frame, wanted: dict[str, Any]) -> dict[str, Any]:
    try:
        return await _search(frame, wanted)
    except CommandFailed:
        # The frame was removed meanwhile, or belongs to the browser.
        return {}


def _element_facts(one: dict[str, Any]) -> dict[str, Any]:
    element: dict[str, Any] = {
        "ref": str(one["ref"]),
        "role": str(one["role"])[:40],
        "name": one_line(str(one["name"]), _MAX_NAME),
        "visible": one.get("visible") is True,
    }
    for name in ("where", "states"):
        if one.get(name):
            element[name] = one_line(str(one[name]), _MAX_NAME)
    return element


def _line(element: dict[str, Any]) -> str:
    marks = " ".join(part for part in (f"ref={element['ref']}", element.get("states", "")) if part)
    hidden = "" if element["visible"] else " (not visible)"
    where = f" in {element['where']}" if element.get("where") else ""
    return f'{element["role"]} "{element["name"]}" [{marks}]{hidden}{where}'
