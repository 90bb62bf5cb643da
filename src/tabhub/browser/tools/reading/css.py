"""CSS tools with lasting state: forced pseudo states and rule coverage."""

from __future__ import annotations

from typing import Any

from tabhub.browser.driver.page import Page
from tabhub.browser.elements.element import TARGET, Element, find_element
from tabhub.browser.schemas import boolean, integer, list_of, rows
from tabhub.browser.tab_overrides import Override
from tabhub.browser.tool_spec import Call, tool, with_note
from tabhub.core.tools import ToolResult

_STATES = ["hover", "focus", "focus-visible", "focus-within", "active", "visited", "target"]
_MAX_SHEETS = 100
_USAGE = {"length": integer("In characters."), "used": "integer", "percent": "number"}


async def node_of(element: Element) -> int:
    """The DOM node id of an element, as the CSS domain needs it."""
    page, child = element.page, element.frame.session_id
    query = {"objectId": await element.object_id()}
    try:
        node = await _node(page, query, child)
        if not node:
            # Only if needed: it renumbers all nodes, and states forced by old ids would stay.
            await page.cdp("DOM.getDocument", {"depth": 0}, child)
            node = await _node(page, query, child)
    finally:
        element.release()
    if not node:
        raise element.gone_error()
    return node


async def _node(page: Page, query: dict[str, Any], child: str | None) -> int:
    """0 if the document was not requested yet."""
    answer = await page.cdp("DOM.requestNode", query, child)
    node = answer.get("nodeId") if isinstance(answer, dict) else None
    return node if type(node) is int else 0


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
    node = await node_of(element)
    name = f"state {child or ''} {node}"
    off = ("CSS.forcePseudoState", {"nodeId": node, "forcedPseudoClasses": []})
    if states:
        on = ("CSS.forcePseudoState", {"nodeId": node, "forcedPseudoClasses": states})
        description = f"{element.label} as :{' :'.join(states)}"
        await call.box.emulation.apply(
            page, name, Override(call.ctx.session, description, (off,), child=child, frame=element.frame.frame_id), [on]
        )
    elif not await call.box.emulation.remove(page, name):
        await page.cdp(*off, child)
    facts: dict[str, Any] = {"tabId": page.tab_id, "element": element.label, "pseudoClasses": states}
    return ToolResult.data(with_note(facts, call.box.emulation.pop_lost_note(page)))


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
    used = sheets.coverage(page)
    started = used is None
    if used is None:
        await page.cdp("CSS.startRuleUsageTracking")
        used = sheets.start_coverage(page, call.ctx.session)
    # A background tab computes its styles only when something that depends on them is requested.
    page.cdp_nowait("Page.getLayoutMetrics")
    answer = await page.cdp("CSS.takeCoverageDelta")
    for rule in answer.get("coverage") or [] if isinstance(answer, dict) else []:
        start, end = rule.get("startOffset"), rule.get("endOffset")
        if rule.get("used") is True and type(start) in (int, float) and type(end) in (int, float):
            used.setdefault(str(rule.get("styleSheetId")), set()).add((int(start), int(end)))
    listed = []
    for sheet_id, sheet in sheets.sheets(page).items():
        if sheet.child is None and sheet.length:
            listed.append(
                {"url": sheet.url, "inline": sheet.inline, **_usage(sheet.length, _used_length(used, sheet_id))}
            )
    listed.sort(key=lambda facts: facts["used"] - facts["length"])
    length, taken = sum(facts["length"] for facts in listed), sum(facts["used"] for facts in listed)
    facts: dict[str, Any] = {"tabId": page.tab_id, "sheets": listed[:_MAX_SHEETS], **_usage(length, taken)}
    facts["started"] = started
    notes = []
    if len(listed) > _MAX_SHEETS:
        notes.append(f"{len(listed) - _MAX_SHEETS} more sheets, with less unused, are only in the sum.")
    if page.has_remote_frames:
        notes.append("Cross-site frames are not counted.")
    return ToolResult.data(with_note(facts, *notes))


def _used_length(used: dict[str, set[tuple[int, int]]], sheet_id: str) -> int:
    """Characters of used rules; nested rules are counted once."""
    total, reached = 0, 0
    for start, end in sorted(used.get(sheet_id, ())):
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total


def _usage(length: int, used: int) -> dict[str, Any]:
    used = min(used, length)
    return {"length": length, "used": used, "percent": round(100 * used / length, 1) if length else 0.0}
