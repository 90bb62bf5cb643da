"""Tools for the extension itself: state, logs, panel, reload, reconnect."""

from __future__ import annotations

import asyncio
from operator import itemgetter

from tabhub.browser.browser_choice import BROWSER_ID, BrowserCall, browser_tool, pick_fields, pick_rows
from tabhub.browser.schemas import integer, list_of, number, object_schema, rows, text
from tabhub.browser.tool_spec import Call, data_result
from tabhub.browser.tools.managing.history import TIME, time_param
from tabhub.browser.tools.managing.plugins import require_plugin
from tabhub.core.tools import ToolResult
from tabhub.errors import CommandFailed
from tabhub.links.extension import RECONNECT, ExtensionLink

_POLL_INTERVAL = 0.05
_STATE = {
    **dict.fromkeys(("browserName?", "browserVersion?", "extensionVersion?", "platform?", "lastError?"), "string"),
    **dict.fromkeys(("startedAt?", "tabs?", "windows?"), "integer"),
}
_ENTRY = {**dict.fromkeys(("time?", "level?", "source?"), "string"), "message": "string"}
_PAGE = {"kind?": "string", "page?": "string", "windowId?": "integer"}
_SHOWS = {
    **dict.fromkeys(("headline?", "explanation?", "lastError?"), "string"),
    **dict.fromkeys(("tabs?", "debugged?"), "integer"),
}
_RECONNECTED = {"browserId": "string", "seconds": number("How long it took.")}


async def _wait_for_reconnect(call: Call, old_link: ExtensionLink) -> ToolResult:
    """Wait until the browser has reconnected and reported its tabs."""
    browsers, loop = call.box.browsers, old_link.loop
    began, timeout = loop.time(), browsers.limits.extension_back
    while loop.time() - began < timeout:
        await asyncio.sleep(_POLL_INTERVAL)
        listed = browsers.status()
        ready = {each["browserId"] for each in listed if each["connected"] and each["extension"]["sentTabs"]}
        if old_link.closed is not None and old_link.browser_id in ready:
            return data_result({"browserId": old_link.browser_id, "seconds": round(loop.time() - began, 2)})
    raise CommandFailed(
        f"The extension of browser {old_link.browser_id} did not reconnect within {timeout:g} s.",
        hint="Check browser_get_connection_status; otherwise the person has to check the extension in the browser "
        "(chrome://extensions) or run `tabhub doctor`.",
    )


@browser_tool(
    "extension_reload",
    "Reload the extension",
    "Reloads the extension of a browser and returns when it has reconnected. Running calls in that browser fail, and "
    "the debugger detaches.",
    params={"browserId?": BROWSER_ID},
    output=_RECONNECTED,
    idempotent=True,
)
async def reload_extension(call: BrowserCall) -> ToolResult:
    link = call.link()
    call.ctx.sent = True
    link.notify("extension.reload", {})
    return await _wait_for_reconnect(call, link)


@browser_tool(
    "extension_force_reconnect",
    "Reconnect the extension",
    "Closes the connection to a browser and returns when it has reconnected. Running calls in that browser fail.",
    params={"browserId?": BROWSER_ID},
    output=_RECONNECTED,
    idempotent=True,
)
async def force_reconnect(call: BrowserCall) -> ToolResult:
    link = call.link()
    call.ctx.sent = True
    link.close(RECONNECT, "asked to reconnect")
    call.box.browsers.detach(link)
    return await _wait_for_reconnect(call, link)


@browser_tool(
    "extension_get_state",
    "State of the extension",
    "State of the extension in every browser: versions, tabs, windows, debugged tabs, last error.",
    output={"browsers": rows({**_STATE, "browserId": "string"}), "note?": "string"},
    read_only=True,
)
async def get_state(call: BrowserCall) -> ToolResult:
    answers, problems = await call.query_all("getState")
    browsers = [
        {
            "browserId": answer.link.browser_id,
            **call.view.mask_values(pick_fields(answer.what, _STATE)),
            "debuggedTabs": call.hub_tab_ids(answer.link, (answer.what.get("debugger") or {}).get("attached")),
        }
        for answer in answers
    ]
    return data_result({"browsers": browsers}, *problems)


@browser_tool(
    "extension_get_logs",
    "Extension logs",
    "Log entries of the extensions of all browsers since their worker started, oldest first; the last 200 are kept.",
    params={
        "level?": {"enum": ["info", "warning", "error"], "description": "Minimum level (default info)."},
        "source?": text("Only this source.", least=1, most=100),
        "limit?": integer("Newest; default 100.", least=1, most=200),
        "since?": TIME,
    },
    output={
        "entries": rows({**_ENTRY, "browserId": "string"}),
        "sources": list_of("string", "All sources in the log."),
        "note?": "string",
    },
    read_only=True,
)
async def get_logs(call: BrowserCall) -> ToolResult:
    limit = call.args.get("limit", 100)
    wanted = {**call.given("level", "source"), **time_param(call, "since"), "limit": limit}
    answers, problems = await call.query_all("getLogs", wanted)
    entries = [
        {**entry, "browserId": answer.link.browser_id}
        for answer in answers
        for entry in call.view.keep(
            pick_rows(answer.what, "entries", _ENTRY), lambda e: call.view.hides_text(e["message"])
        )
    ]
    entries.sort(key=itemgetter("time"))
    sources = sorted({source[:100] for answer in answers for source in answer.what.get("sources", ())[:100]})
    return data_result({"entries": entries[-limit:], "sources": sources}, *problems)


@browser_tool(
    "extension_get_side_panel",
    "The extension's panel",
    "Reports whether a panel of the extension (popup, side panel, page) is open in a browser, and what panels show.",
    params={"browserId?": BROWSER_ID},
    output={
        "browserId": "string",
        "open": "boolean",
        "pages": rows({**_PAGE, "tabId?": "integer"}),
        "shows": object_schema(_SHOWS),
    },
    read_only=True,
)
async def get_side_panel(call: BrowserCall) -> ToolResult:
    link = call.link()
    answer = await link.request("getPanels", {})
    pages = [
        {**pick_fields(page, _PAGE), **call.hub_tab_id(link, "tabId", page.get("tabId"))}
        for page in answer.get("open", ())
    ]
    shows = call.view.mask_values(pick_fields(answer.get("shows") or {}, _SHOWS))
    return data_result({"browserId": link.browser_id, "open": bool(pages), "pages": pages, "shows": shows})


@browser_tool(
    "extension_check_adapter",
    "Check a plugin's adapter",
    "Reports whether a plugin's script is registered in the browsers, for which pages, and which open tabs have it.",
    params={"plugin": text(least=1, most=200)},
    output={"plugin": "string", "injected": "boolean", "browsers": list_of("object"), "note?": "string"},
    read_only=True,
)
async def check_adapter(call: BrowserCall) -> ToolResult:
    plugin = call.args["plugin"]
    adapters, problems = await call.list_all("getAdapters", "adapters")
    require_plugin(call, plugin, {adapter.what["plugin"] for adapter in adapters})
    browsers = [
        {
            "browserId": adapter.link.browser_id,
            "matches": [match[:500] for match in adapter.what.get("matches", ())[:100]],
            "tabIds": call.hub_tab_ids(adapter.link, adapter.what.get("tabIds")),
        }
        for adapter in adapters
        if adapter.what["plugin"] == plugin
    ]
    return data_result({"plugin": plugin, "injected": bool(browsers), "browsers": browsers}, *problems)
