"""browser_get_connection_status: hub, socket, extension, tabs and debugger, with a live probe of every extension."""

from __future__ import annotations

import asyncio
from typing import Any

from tabhub.browser.browser_choice import browser_tool
from tabhub.browser.schemas import boolean, free_object, list_of
from tabhub.browser.tool_spec import Call, data_result
from tabhub.browser.tools.managing.sessions import visible_session
from tabhub.core.tools import ToolResult
from tabhub.errors import NotConnected, TabhubError
from tabhub.links.extension import ExtensionLink

_PROBE = 2.0


@browser_tool(
    "browser_get_connection_status",
    "Connection status",
    "The state of hub, extension (probed now), tabs and debugger.",
    output={
        "connected": boolean("Whether any browser is connected and responds."),
        "hub": "object",
        "browsers": list_of("object"),
        "session?": free_object("Your own: its tab and the tabs it holds."),
        "hint?": "string",
    },
    read_only=True,
)
async def get_connection_status(call: Call) -> ToolResult:
    """Never fails because no browser is connected: it reports exactly that."""
    browsers = call.box.browsers
    links = browsers.links()
    answers = dict(zip((link.browser_id for link in links), await asyncio.gather(*map(_probe, links)), strict=True))
    listed = browsers.status()
    for facts in listed:
        if facts["connected"]:
            facts["extension"] = {**facts["extension"], **answers.get(facts["browserId"], {"answers": False})}
            attached = filter(None, map(browsers.book.get, facts["debugger"]["attachedTabs"]))
            facts["debugger"] = {"attachedTabs": [tab.tab_id for tab in call.visible_tabs(attached)]}
    connected = any(answer["answers"] for answer in answers.values())
    status: dict[str, Any] = {"connected": connected, "hub": call.box.hub_facts()}
    status["browsers"] = call.view.mask_values(listed)
    if (own := call.box.choice.describe_session(call.ctx.session)) is not None:
        status["session"] = visible_session(call, own)
    if not links:
        try:
            browsers.default_link()
        except NotConnected as error:
            status["hint"] = error.hint
    elif not connected:
        status["hint"] = "The socket is open but the extension does not answer; reload it, or restart the browser."
    return data_result(status)


async def _probe(link: ExtensionLink) -> dict[str, Any]:
    start = link.loop.time()
    try:
        async with asyncio.timeout(_PROBE):
            state = await link.request("getState", {})
    except TimeoutError:
        return {"answers": False, "problem": f"no answer within {_PROBE:.0f} s"}
    except TabhubError as error:
        return {"answers": False, "problem": error.message}
    found: dict[str, Any] = {"answers": True, "milliseconds": round((link.loop.time() - start) * 1000, 1)}
    if state.get("lastError"):
        found["lastError"] = state["lastError"][:500]
    return found
