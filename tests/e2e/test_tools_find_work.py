"""The work of a search is proportional to the size of the page: counted in calls of the DOM, not in time."""

from __future__ import annotations

from typing import Any

import pytest

from tabhub.browser.driver.worlds import begin_expression, install_expression, literal
from tests.e2e.live import Caller, DevTools, Wire
from tests.e2e.zoo import Zoo

# Counts calls of the DOM's methods and getters in this world. Those that walk the whole document by themselves are
# counted apart.
COUNT = """
globalThis.work = { calls: 0, styles: 0, walks: 0 };
const walks = new Set(["labels", "getElementsByTagName", "getElementsByName"]);
const style = getComputedStyle;
globalThis.getComputedStyle = (...given) => { work.styles += 1; return style(...given); };
for (const { prototype } of [Node, Element, HTMLElement, HTMLInputElement, Document, DocumentFragment]) {
  for (const [name, found] of Object.entries(Object.getOwnPropertyDescriptors(prototype))) {
    const kind = typeof found.value === "function" ? "value" : found.get ? "get" : "";
    if (!kind || name === "constructor" || !found.configurable) continue;
    const own = found[kind];
    found[kind] = function (...given) {
      const whole = walks.has(name) || (name.startsWith("querySelector") && this instanceof Document);
      work[whole ? "walks" : "calls"] += 1;
      return own.apply(this, given);
    };
    Object.defineProperty(prototype, name, found);
  }
}
0"""


async def counted(wire: Wire, url: str, targets: list[str], call: str) -> dict[str, int]:
    """What a call of the kit does in the page at a URL."""
    session = await wire.attach(targets[0])
    frame = (await wire.send("Page.getFrameTree", session))["frameTree"]["frame"]["id"]
    made = await wire.send("Page.createIsolatedWorld", session, frameId=frame, worldName=f"counting {url}")
    world = {"contextId": made["executionContextId"], "returnByValue": True}
    await wire.send("Runtime.evaluate", session, expression=install_expression(), **world)
    await wire.send("Runtime.evaluate", session, expression=begin_expression("t", "e"), **world)
    await wire.send("Runtime.evaluate", session, expression=COUNT, **world)
    done = await wire.send("Runtime.evaluate", session, expression=f"tabhubKit.{call}, work", **world)
    assert "exceptionDetails" not in done, done
    found: dict[str, int] = done["result"]["value"]
    return found


@pytest.mark.req("A11")
async def test_the_work_of_a_search_grows_with_the_page_only(guest: Caller, zoo: Zoo, devtools: DevTools) -> None:
    wanted: dict[str, dict[str, Any]] = {
        "search": {"text": "Ship 7", "limit": 20, "near": True},
        "find": {"text": "Ship 7", "near": True},
        "list": {"role": "checkbox"},
    }
    for name, argument in wanted.items():
        work = {}
        for rows in (200, 400):
            url = zoo.at(f"target_rows.html?rows={rows}")
            await guest.visit(url)
            targets, call = await devtools.targets("page", url), f"{name}({literal(argument)})"
            async with devtools.connected() as wire:
                work[rows] = await counted(wire, url, targets, call)
        small, large = work[200], work[400]
        assert large["calls"] < 2.1 * small["calls"], name
        assert large["styles"] < 2.1 * small["styles"] + 50, name
        assert large["styles"] < 400 * 12, name
        assert large["walks"] == small["walks"] < 20, name
