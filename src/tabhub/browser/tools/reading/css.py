"""CSS tools with lasting state: forced pseudo states and rule coverage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tabhub.browser.driver.cdp_values import parse_int, parse_object, parse_objects
from tabhub.browser.driver.frames import list_frames
from tabhub.browser.driver.page import Page
from tabhub.browser.elements.element import TARGET, find_element
from tabhub.browser.schemas import boolean, integer, list_of, rows
from tabhub.browser.style_sheets import StyleSheet
from tabhub.browser.tab_overrides import Override
from tabhub.browser.tool_spec import Call, data_result, tool, with_note
from tabhub.browser.tools.reading.element_styles import node_id
from tabhub.core.tools import ToolResult

_STATES = ["hover", "focus", "focus-visible", "focus-within", "active", "visited", "target"]
_MAX_SHEETS = 100
_USAGE = {"length": integer("In characters."), "used": "integer", "percent": "number"}


@tool(
    "browser_force_pseudo_state",
    "Force a pseudo state",
    "Styles an element as if hovered, focused etc. (CSS only, no events). Lasts until called with an empty list, "
    "browser_clear_emulation, or the end of the session.",
    params={**TARGET, "pseudoClasses": list_of({"enum": _STATES}) | {"uniqueItems": True}},
    output={"tabId": "integer", "element": "string", "pseudoClasses": list_of("string"), "note?": "string"},
    idempotent=True,
)
async def force_pseudo_state(call: Call) -> ToolResult:
    page, states = await call.page(), call.args["pseudoClasses"]
    element = await find_element(page, call.args)
    child = element.frame.session_id
    await call.box.style_sheets.enable(page, child)
    node = await node_id(element)
    name = f"state {child or ''} {node}"
    on = ("CSS.forcePseudoState", {"nodeId": node, "forcedPseudoClasses": states})
    if states:
        off = (on[0], {"nodeId": node, "forcedPseudoClasses": []})
        description = f"{element.label} as :{' :'.join(states)}"
        change = Override(call.ctx.session, description, (off,), child=child, frame=element.frame.frame_id)
        await call.box.emulation.apply(page, name, change, [on])
    elif not await call.box.emulation.remove(page, name):
        await page.cdp(*on, child)
    facts = {"tabId": page.tab_id, "element": element.label, "pseudoClasses": states}
    return data_result(facts, call.box.emulation.pop_lost_note(page))


@tool(
    "browser_get_css_coverage",
    "CSS coverage",
    "Reports how much of each style sheet the page has used since the first call, which starts the count; navigating "
    "or acting adds to it.",
    output={
        "tabId": "integer",
        "sheets": rows({"url": "string", "inline?": "boolean", **_USAGE}),
        "length": "integer",
        "used": "integer",
        "percent": "number",
        "started": boolean("Whether this call began the count."),
        "note?": "string",
    },
    idempotent=True,
)
async def get_css_coverage(call: Call) -> ToolResult:
    page, sheets = await call.page(), call.box.style_sheets
    await sheets.enable(page)
    used, started = await sheets.coverage(page, call.ctx.session)
    # A background tab computes its styles only when something that depends on them is requested.
    page.cdp_nowait("Page.getLayoutMetrics")
    delta = parse_object(await page.cdp("CSS.takeCoverageDelta"))
    for rule in parse_objects(delta.get("coverage")):
        if rule.get("used") is True:
            span = (parse_int(rule.get("startOffset")), parse_int(rule.get("endOffset")))
            used.setdefault(str(rule.get("styleSheetId")), set()).add(span)
    known = sheets.sheets(page)
    if call.view.active:
        known = await _visible_sheets(page, known)
    listed = [
        {"url": sheet.url, "inline": sheet.inline, **_usage(sheet.length, _used_length(used.get(sheet_id, set())))}
        for sheet_id, sheet in known.items()
        if sheet.child is None and sheet.length
    ]
    listed.sort(key=lambda sheet: sheet["used"] - sheet["length"])
    total = _usage(sum(sheet["length"] for sheet in listed), sum(sheet["used"] for sheet in listed))
    more = f"{len(listed) - _MAX_SHEETS} more sheets, with less unused, are only in the sum."
    facts = {"tabId": page.tab_id, "sheets": listed[:_MAX_SHEETS], **total, "started": started}
    return data_result(
        with_note(
            facts,
            more if len(listed) > _MAX_SHEETS else "",
            "Cross-site frames are not counted." if page.has_remote_frames else "",
        )
    )


async def _visible_sheets(page: Page, sheets: Mapping[str, StyleSheet]) -> dict[str, StyleSheet]:
    """The sheets that are not of a site, or in a frame, that the agent is kept off."""
    frames = {frame.frame_id for frame in await list_frames(page)}
    hides = page.view.hides
    return dict(page.view.keep(sheets.items(), lambda item: hides(item[1].url) or item[1].frame not in frames))


def _used_length(used: set[tuple[int, int]]) -> int:
    """Characters of used rules; nested rules are counted once."""
    total, reached = 0, 0
    for start, end in sorted(used):
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total


def _usage(length: int, used: int) -> dict[str, Any]:
    used = min(used, length)
    return {"length": length, "used": used, "percent": round(100 * used / length, 1) if length else 0.0}
