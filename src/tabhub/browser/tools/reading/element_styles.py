"""browser_get_element_styles: computed styles of an element, and the rules they come from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tabhub.browser.driver.cdp_values import parse_int, parse_object, parse_objects
from tabhub.browser.elements.element import TARGET, Element, find_element
from tabhub.browser.schemas import list_of, rows
from tabhub.browser.style_sheets import StyleSheet
from tabhub.browser.tool_spec import Call, data_result, tool
from tabhub.core.tools import ToolResult
from tabhub.trust.visibility import View

_MAX_RULES = 30
_MAX_DECLARATIONS = 60


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
    repeats_page=True,
)
async def get_element_styles(call: Call) -> ToolResult:
    page, asked = await call.page(), [_kebab(name) for name in call.args.get("properties", [])]
    element = await find_element(page, call.args)
    child = element.frame.session_id
    await call.box.style_sheets.enable(page, child)
    node = await node_id(element)
    matched = parse_object(await page.cdp("CSS.getMatchedStylesForNode", {"nodeId": node}, child))
    rules, more = _rules(call.box.style_sheets.sheets(page), matched, set(asked), call.view)
    wanted = asked or sorted({name for rule in rules for name in rule["properties"]} | {"display", "visibility"})
    computed = await element.call("styles", {"properties": wanted})
    note = f"{more} weaker rules are left out; request single properties." if more else ""
    facts = {"tabId": page.tab_id, "element": element.label, "computed": computed, "rules": rules}
    return data_result(facts, note)


def _kebab(name: str) -> str:
    """`fontSize` as `font-size`; custom properties keep their letters."""
    if name.startswith("--"):
        return name
    return "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in name)


def _rules(
    sheets: Mapping[str, StyleSheet], matched: dict[str, Any], asked: set[str], view: View
) -> tuple[list[dict[str, Any]], int]:
    """The page's own rules for an element, weakest first, and how many were left out."""
    rules = []
    matches = [parse_object(match.get("rule")) for match in parse_objects(matched.get("matchedCSSRules"))]

    def is_hidden(rule: dict[str, Any]) -> bool:
        sheet = sheets.get(str(rule.get("styleSheetId")))
        return sheet is not None and view.hides(sheet.url)

    for rule in view.keep(matches, is_hidden):
        if rule.get("origin") in ("regular", "injected"):
            style, sheet = parse_object(rule.get("style")), sheets.get(str(rule.get("styleSheetId")))
            line = parse_object(style.get("range")).get("startLine")
            source = sheet.url if sheet and sheet.url else "a <style> of the page"
            source += f":{line + 1}" if type(line) is int else ""
            selector = str(parse_object(rule.get("selectorList")).get("text", ""))[:300]
            rules.append({"selector": selector, "source": source, "properties": _declarations(style, asked)})
    inline = _declarations(parse_object(matched.get("inlineStyle")), asked)
    rules.append({"selector": "style attribute", "source": "the element itself", "properties": inline})
    rules = [rule for rule in rules if rule["properties"]]
    return rules[-_MAX_RULES:], max(0, len(rules) - _MAX_RULES)


def _declarations(style: dict[str, Any], asked: set[str]) -> dict[str, str]:
    """The declarations written in a rule; expansions of shorthands only if requested."""
    values: dict[str, str] = {}
    for declared in parse_objects(style.get("cssProperties")):
        name, value = str(declared.get("name")), str(declared.get("value"))[:300]
        wanted = name in asked if asked else "range" in declared or "text" in declared
        if wanted and not declared.get("disabled") and declared.get("parsedOk") is not False:
            values[name] = f"{value} !important" if declared.get("important") and "!important" not in value else value
    return dict(list(values.items())[:_MAX_DECLARATIONS])


async def node_id(element: Element) -> int:
    """The id by which the CSS domain knows an element."""
    page, child = element.page, element.frame.session_id
    async with element.object_id() as handle:
        answer = parse_object(await page.cdp("DOM.requestNode", {"objectId": handle}, child))
        if not answer.get("nodeId"):
            # Only if needed: it renumbers all nodes, and states forced by old ids would stay.
            await page.cdp("DOM.getDocument", {"depth": 0}, child)
            answer = parse_object(await page.cdp("DOM.requestNode", {"objectId": handle}, child))
    if not (node := parse_int(answer.get("nodeId"))):
        raise element.gone_error()
    return node
