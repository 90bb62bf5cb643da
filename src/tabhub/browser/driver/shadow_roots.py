"""Closed shadow roots of a page's components, made accessible to our world through CDP.

Each host element is queried once; the kit then walks closed roots like open ones.
"""

from __future__ import annotations

import asyncio
from typing import Any

from tabhub.browser.driver.frames import Frame, script_value

_MAX_HOSTS = 300
_MAX_LEVELS = 6
_GROUP = "tabhub roots"


async def run_with_closed_roots(frame: Frame, body: str) -> Any:
    """Run a function body that reports unexamined `hosts`; again after their closed roots were opened."""
    answer = await frame.run_code(body)
    if isinstance(answer, dict) and answer.get("hosts") and await open_closed_roots(frame):
        answer = await frame.run_code(body)
    return answer


async def open_closed_roots(frame: Frame) -> int:
    """Open the closed roots of custom elements not examined yet; returns how many there were."""
    opened = 0
    # Their content may have closed roots of its own.
    for _ in range(_MAX_LEVELS):
        if not (found := await _level(frame)):
            break
        opened += found
    if opened:
        frame.page.cdp_nowait("Runtime.releaseObjectGroup", {"objectGroup": _GROUP}, frame.session_id)
    return opened


async def _level(frame: Frame) -> int:
    page, session = frame.page, frame.session_id
    world = await frame.world()
    listed = await page.cdp(
        "Runtime.evaluate",
        {"expression": f"tabhubKit.hosts({_MAX_HOSTS})", "contextId": world.context_id, "objectGroup": _GROUP},
        session,
    )
    script_value(page, listed)
    array = listed.get("result", {}).get("objectId")
    listing = await page.cdp("Runtime.getProperties", {"objectId": array, "ownProperties": True}, session)
    hosts = [one["value"]["objectId"] for one in listing.get("result", []) if one["name"].isdigit()]
    return sum(await asyncio.gather(*(_open(frame, world.context_id, host) for host in hosts)))


async def _open(frame: Frame, context_id: int, host: str) -> int:
    page, session = frame.page, frame.session_id
    described = await page.cdp("DOM.describeNode", {"objectId": host, "pierce": True}, session)
    roots = described.get("node", {}).get("shadowRoots") or []
    closed = [root["backendNodeId"] for root in roots if root.get("shadowRootType") == "closed"]
    for node in closed:
        where = {"backendNodeId": node, "executionContextId": context_id, "objectGroup": _GROUP}
        resolved = await page.cdp("DOM.resolveNode", where, session)
        call = {
            "objectId": host,
            "functionDeclaration": "function (root) { tabhubKit.closed(this, root); }",
            "arguments": [{"objectId": resolved["object"]["objectId"]}],
        }
        await page.cdp("Runtime.callFunctionOn", call, session)
    return len(closed)
