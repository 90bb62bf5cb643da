"""browser_scroll: scrolls the page, a container, or an element into view."""

from __future__ import annotations

from typing import Any

from tabhub.browser.actions import OUTPUT
from tabhub.browser.driver.frames import main_frame
from tabhub.browser.driver.page import Page
from tabhub.browser.elements.element import REF, TARGET, find_element, names_element, wait_actionable
from tabhub.browser.tool_spec import Call, data_result, tool
from tabhub.core.tools import ToolResult
from tabhub.errors import InvalidArguments


@tool(
    "browser_scroll",
    "Scroll",
    "Scrolls an element into view, or the page (or `container`: selector, ref) in a direction or to an end.",
    params={
        **TARGET,
        "direction?": {"enum": ["up", "down", "left", "right"]},
        "distance?": {"type": "integer", "minimum": 1},
        "position?": {"enum": ["top", "bottom"]},
        "container?": "string",
    },
    output=OUTPUT,
    tells_changes=True,
)
async def browser_scroll(call: Call) -> ToolResult:
    box, page, args = call.box, await call.page(), call.args
    with box.activity.track_action(page) as action:
        if names_element(args):
            if any(name in args for name in ("direction", "position", "container")):
                raise InvalidArguments(
                    "An element cannot be combined with direction, position or container.",
                    hint="To scroll inside an element, give it as `container`.",
                )
            target = await wait_actionable(page, args, "look")
            label = target.element.label
            seen = f"Scrolled {label} into view" if target.facts.get("scrolled") else f"{label} is in view already"
            return data_result(await action.result(seen))
        options = {name: args.get(name) for name in ("direction", "distance", "position")}
        if not options["position"]:
            options["direction"] = options["direction"] or "down"
        place = await _scroll_in_page(page, args.get("container"), options)
    where = options["position"] or options["direction"]
    facts = {"tabId": page.tab_id, "did": f"Scrolled {place['what']} {'to the ' if options['position'] else ''}{where}"}
    facts |= {name: place[name] for name in ("x", "y", "maxX", "maxY") if type(place.get(name)) is int}
    if not place.get("moved"):
        facts["note"] = _unmoved_note(place, str(where))
    return data_result(facts)


async def _scroll_in_page(page: Page, container: str | None, options: dict[str, Any]) -> Any:
    if container is None:
        return await (await main_frame(page)).evaluate("scroll", options)
    element = await find_element(page, {"ref" if REF.fullmatch(container) else "selector": container})
    return await element.call("scroll", options)


def _unmoved_note(place: dict[str, Any], where: str) -> str:
    if place.get("maxX") == 0 and place.get("maxY") == 0:
        return "Nothing moved: there is nothing to scroll. For a map or canvas use browser_mouse (wheel)."
    if where not in ("down", "bottom"):
        return f"Nothing moved: it was already at its {'end' if where == 'right' else 'beginning'}."
    if place.get("grew"):
        return "Nothing moved: it was at its end, and has grown since. Scroll again."
    return "Nothing moved: it was already at its end. If the page loads more there, use browser_wait_for."
