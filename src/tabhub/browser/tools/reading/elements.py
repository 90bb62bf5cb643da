"""Tools for single elements: browser_query_elements and browser_get_element_styles."""

from __future__ import annotations

import asyncio
from typing import Any

from tabhub.browser.driver.frames import Frame, list_frames
from tabhub.browser.elements.element import TARGET, Element, find_element, names_element
from tabhub.browser.schemas import free_object, integer, list_of, rows, text
from tabhub.browser.tool_spec import Call, tool
from tabhub.browser.tools.reading.css import node_of
from tabhub.core.tools import ToolResult
from tabhub.errors import CommandFailed, InvalidArguments

_DEFAULT_LIMIT, _MAX_LIMIT = 50, 500
_MAX_RULES = 30
_MAX_DECLARATIONS = 60
_ELEMENT = {
    "ref": "string",
    "tag": "string",
    "role?": "string",
    "text": "string",
    "visible": "boolean",
    "box?": free_object("x, y, width, height in CSS pixels of the tab's viewport."),
    "attributes?": "object",
    "frame?": text("URL of the frame, if not the page itself."),
}


@tool(
    "browser_query_elements",
    "Query elements",
    "Lists matching elements in all frames and shadow roots: tag, text, ref, box, visibility, and the requested "
    "attributes.",
    params={
        **TARGET,
        "limit?": integer(f"Default {_DEFAULT_LIMIT}.", least=1, most=_MAX_LIMIT),
        "attributes?": list_of(text(least=1, most=100), "Names, e.g. href; value, checked etc. are current.", most=30),
    },
    output={
        "tabId": "integer",
        "total": integer("How many match."),
        "elements": rows(_ELEMENT),
        "note?": "string",
    },
    read_only=True,
)
async def query_elements(call: Call) -> ToolResult:
    args, page = call.args, await call.page()
    if not names_element(args):
        raise InvalidArguments("No element is given.", hint="Give a selector, a text, a role or a ref.")
    limit = args.get("limit", _DEFAULT_LIMIT)
    options = {name: args.get(name) for name in ("selector", "ref", "text", "role")}
    options |= {"limit": limit, "attributes": args.get("attributes", [])}
    answers = await asyncio.gather(*(_query_frame(frame, options) for frame in await list_frames(page)))
    invalid = next((answer["invalid"] for answer in answers if "invalid" in answer), None)
    if invalid is not None:
        raise InvalidArguments(f"The selector {args.get('selector')!r} is not valid CSS: {str(invalid)[:300]}")
    elements = [element for answer in answers for element in answer["elements"]]
    total = sum(answer["total"] for answer in answers)
    facts: dict[str, Any] = {"tabId": page.tab_id, "total": total, "elements": elements[:limit]}
    if total > limit:
        facts["note"] = f"{total - limit} more match; raise limit or narrow the target."
    elif not total:
        facts["note"] = await _no_match_note(call)
    return ToolResult.data(facts)


async def _query_frame(frame: Frame, options: dict[str, Any]) -> dict[str, Any]:
    """The matches of one frame with boxes in tab coordinates; none for a frame that was removed."""
    try:
        found = await frame.evaluate("query", options)
        if not isinstance(found, dict) or "invalid" in found:
            return {"elements": [], "total": 0, **(found if isinstance(found, dict) else {})}
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
    return "Nothing matched; the page has changed since."


@tool(
    "browser_get_element_styles",
    "Read an element's styles",
    "Returns computed styles of an element (requested ones, or those set by style sheets) and the rules they come "
    "from, strongest last.",
    params={
        **TARGET,
        "properties?": list_of(
            {"type": "string", "pattern": "^[a-zA-Z-]{1,100}$"}, "e.g. color, font-size, --accent", most=100
        ),
    },
    output={
        "tabId": "integer",
        "element": "string",
        "computed": "object",
        "rules": rows({"selector": "string", "source": "string", "properties": "object"}),
        "note?": "string",
    },
    read_only=True,
)
async def get_element_styles(call: Call) -> ToolResult:
    page, asked = await call.page(), [_kebab(name) for name in call.args.get("properties", [])]
    element = await find_element(page, call.args)
    child = element.frame.session_id
    await call.box.style_sheets.enable(page, child)
    node = await node_of(element)
    matched = await page.cdp("CSS.getMatchedStylesForNode", {"nodeId": node}, child)
    rules, more = _rules(call, element, matched if isinstance(matched, dict) else {}, set(asked))
    wanted = asked or sorted({name for rule in rules for name in rule["properties"]} | {"display", "visibility"})
    computed = await element.call("styles", {"properties": wanted})
    facts: dict[str, Any] = {"tabId": page.tab_id, "element": element.label, "computed": computed, "rules": rules}
    if more:
        facts["note"] = f"{more} weaker rules are left out; request single properties."
    return ToolResult.data(facts)


def _kebab(name: str) -> str:
    """`fontSize` as `font-size`; custom properties keep their letters."""
    if name.startswith("--"):
        return name
    return "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in name)


def _rules(call: Call, element: Element, matched: dict[str, Any], asked: set[str]) -> tuple[list[dict[str, Any]], int]:
    """The page's own rules for the element, weakest first, and how many were left out."""
    sheets = call.box.style_sheets.sheets(element.page)
    rules = []
    for match in matched.get("matchedCSSRules") or []:
        rule = match.get("rule") or {}
        if rule.get("origin") not in ("regular", "injected"):
            continue
        sheet = sheets.get(str(rule.get("styleSheetId")))
        lines = ((rule.get("style") or {}).get("range") or {}).get("startLine")
        source = sheet.url if sheet and sheet.url else "a <style> of the page"
        source += f":{lines + 1}" if type(lines) is int else ""
        selector = str((rule.get("selectorList") or {}).get("text", ""))[:300]
        rules.append({"selector": selector, "source": source, "properties": _declarations(rule.get("style"), asked)})
    inline = {"selector": "style attribute", "source": "the element itself"}
    rules.append({**inline, "properties": _declarations(matched.get("inlineStyle"), asked)})
    rules = [rule for rule in rules if rule["properties"]]
    return rules[-_MAX_RULES:], max(0, len(rules) - _MAX_RULES)


def _declarations(style: Any, asked: set[str]) -> dict[str, str]:
    """The declarations written in a rule; expansions of shorthands only if requested."""
    values: dict[str, str] = {}
    for declared in (style or {}).get("cssProperties") or []:
        name, value = str(declared.get("name")), str(declared.get("value"))[:300]
        written = "range" in declared or "text" in declared
        if declared.get("disabled") or len(values) >= _MAX_DECLARATIONS or declared.get("parsedOk") is False:
            continue
        if name in asked if asked else written:
            values[name] = f"{value} !important" if declared.get("important") and "!important" not in value else value
    return values
