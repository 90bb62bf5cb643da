"""Tools for the extension itself: state, logs, panel, reload, reconnect."""

from __future__ import annotations

import asyncio

from tabhub.browser.browser_choice import (
    BROWSER_ID,
    choose_link,
    given_args,
    hub_tab_ids,
    list_items,
    pick_fields,
    pick_rows,
    query_all_browsers,
    query_browser,
)
from tabhub.browser.tool_spec import Call, hints, object_schema, tool, with_note
from tabhub.browser.tools.managing.history import TIME, time_param
from tabhub.browser.tools.managing.plugins import known_plugin
from tabhub.core.tools import ToolResult
from tabhub.errors import CommandFailed
from tabhub.links.extension import RECONNECT, ExtensionLink

_POLL_INTERVAL = 0.05
_STATE = {
    "browserName": "string",
    "browserVersion": "string",
    "extensionVersion": "string",
    "platform": "string",
    "startedAt": "integer",
    "tabs": "integer",
    "windows": "integer",
    "lastError": "string",
}
_ENTRY = {"time": "string", "level": "string", "source": "string", "message": "string"}
_PAGE = {"kind": "string", "page": "string", "windowId": "integer"}
_SHOWS = {
    "headline": "string",
    "explanation": "string",
    "tabs": "integer",
    "debugged": "integer",
    "lastError": "string",
}
_RECONNECTED = {"browserId": {"type": "string"}, "seconds": {"type": "number", "description": "How long it took."}}


async def _wait_for_reconnect(call: Call, old_link: ExtensionLink) -> ToolResult:
    """Wait until the browser has reconnected and reported its tabs."""
    browsers, loop = call.box.browsers, asyncio.get_running_loop()
    began, timeout = loop.time(), browsers.limits.extension_back
    while loop.time() - began < timeout:
        await asyncio.sleep(_POLL_INTERVAL)
        ready = {
            facts["browserId"] for facts in browsers.status() if facts["connected"] and facts["extension"]["sentTabs"]
        }
        if old_link.closed is not None and old_link.browser_id in ready:
            return ToolResult.data({"browserId": old_link.browser_id, "seconds": round(loop.time() - began, 2)})
    raise CommandFailed(
        f"The extension of browser {old_link.browser_id} did not reconnect within {timeout:g} s.",
        hint="Check browser_get_connection_status; otherwise the person has to check the extension in the browser "
        "(chrome://extensions) or run `tabhub doctor`.",
    )


@tool(
    "extension_reload",
    "Reload the extension",
    "Reloads the extension of a browser and returns when it has reconnected. Running calls in that browser fail, and "
    "the debugger detaches.",
    params={"browserId": BROWSER_ID},
    output=_RECONNECTED,
    annotations=hints(idempotent=True, open_world=False),
    on_tab=False,
)
async def reload_extension(call: Call) -> ToolResult:
    """The extension reads its files again, so this also applies updates."""
    link = choose_link(call)
    call.ctx.sent()
    link.notify("extension.reload", {})
    return await _wait_for_reconnect(call, link)


@tool(
    "extension_force_reconnect",
    "Reconnect the extension",
    "Closes the connection to a browser and returns when it has reconnected. Running calls in that browser fail.",
    params={"browserId": BROWSER_ID},
    output=_RECONNECTED,
    annotations=hints(idempotent=True, open_world=False),
    on_tab=False,
)
async def force_reconnect(call: Call) -> ToolResult:
    link = choose_link(call)
    call.ctx.sent()
    link.close(RECONNECT, "asked to reconnect")
    call.box.browsers.detach(link)
    return await _wait_for_reconnect(call, link)


@tool(
    "extension_get_state",
    "State of the extension",
    "State of the extension in every browser: versions, tabs, windows, debugged tabs, last error.",
    output={
        "browsers": {"type": "array", "items": object_schema({**_STATE, "browserId": "string"}, ("browserId",))},
        "note": "string",
    },
    annotations=hints(read_only=True, open_world=False),
    on_tab=False,
)
async def get_state(call: Call) -> ToolResult:
    answers, problems = await query_all_browsers(call, "getState")
    browsers = []
    for answer in answers:
        debugger = answer.what.get("debugger")
        attached = debugger.get("attached") if isinstance(debugger, dict) else None
        browsers.append(
            {
                "browserId": answer.link.browser_id,
                **pick_fields(answer.what, _STATE),
                "debuggedTabs": hub_tab_ids(call, answer.link, attached),
            }
        )
    return ToolResult.data(with_note({"browsers": browsers}, *problems))


@tool(
    "extension_get_logs",
    "Extension logs",
    "Log entries of the extensions of all browsers since their worker started, oldest first; the last 200 are kept.",
    params={
        "level": {"enum": ["info", "warning", "error"], "description": "Minimum level (default info)."},
        "source": {"type": "string", "minLength": 1, "maxLength": 100, "description": "Only this source."},
        "limit": {"type": "integer", "minimum": 1, "maximum": 200, "description": "Newest; default 100."},
        "since": TIME,
    },
    output={
        "entries": {
            "type": "array",
            "items": object_schema({**_ENTRY, "browserId": "string"}, ("message", "browserId")),
        },
        "sources": {"type": "array", "items": {"type": "string"}, "description": "All sources in the log."},
        "note": "string",
    },
    annotations=hints(read_only=True, open_world=False),
    on_tab=False,
)
async def get_logs(call: Call) -> ToolResult:
    limit = call.args.get("limit", 100)
    wanted = {**given_args(call, "level", "source"), **time_param(call, "since"), "limit": limit}
    answers, problems = await query_all_browsers(call, "getLogs", wanted)
    entries = [
        {**entry, "browserId": answer.link.browser_id}
        for answer in answers
        for entry in pick_rows(answer.what, "entries", _ENTRY)
    ]
    entries.sort(key=lambda entry: str(entry.get("time")))
    named = (answer.what.get("sources") for answer in answers)
    sources = sorted({str(source)[:100] for listed in named if isinstance(listed, list) for source in listed[:100]})
    return ToolResult.data(with_note({"entries": entries[-limit:], "sources": sources}, *problems))


@tool(
    "extension_get_side_panel",
    "The extension's panel",
    "Reports whether a panel of the extension (popup, side panel, page) is open in a browser, and what panels show.",
    params={"browserId": BROWSER_ID},
    output={
        "browserId": "string",
        "open": "boolean",
        "pages": {"type": "array", "items": object_schema({**_PAGE, "tabId": "integer"})},
        "shows": object_schema(_SHOWS),
    },
    annotations=hints(read_only=True, open_world=False),
    on_tab=False,
)
async def get_side_panel(call: Call) -> ToolResult:
    link = choose_link(call)
    answer = await query_browser(link, "getPanels")
    pages = []
    for page in list_items(answer, "open"):
        here = hub_tab_ids(call, link, [page.get("tabId")])
        pages.append({**pick_fields(page, _PAGE), **({"tabId": here[0]} if here else {})})
    shows = answer.get("shows")
    facts = {"browserId": link.browser_id, "open": bool(pages), "pages": pages}
    return ToolResult.data({**facts, "shows": pick_fields(shows if isinstance(shows, dict) else {}, _SHOWS)})


@tool(
    "extension_check_adapter",
    "Check a plugin's adapter",
    "Reports whether a plugin's script is registered in the browsers, for which pages, and which open tabs have it.",
    params={"plugin": {"type": "string", "minLength": 1, "maxLength": 200}},
    required=("plugin",),
    output={
        "plugin": "string",
        "injected": "boolean",
        "browsers": {"type": "array", "items": {"type": "object"}},
        "note": "string",
    },
    annotations=hints(read_only=True, open_world=False),
    on_tab=False,
)
async def check_adapter(call: Call) -> ToolResult:
    """As the browsers report it, not as the hub configured it."""
    plugin = call.args["plugin"]
    answers, problems = await query_all_browsers(call, "getAdapters")
    adapters = [(answer.link, item) for answer in answers for item in list_items(answer.what, "adapters")]
    known_plugin(call, plugin, {str(item.get("plugin")) for _, item in adapters})
    browsers = []
    for link, item in adapters:
        matches = item.get("matches")
        if item.get("plugin") == plugin:
            browsers.append(
                {
                    "browserId": link.browser_id,
                    "matches": [str(match)[:500] for match in matches[:100]] if isinstance(matches, list) else [],
                    "tabIds": hub_tab_ids(call, link, item.get("tabIds")),
                }
            )
    return ToolResult.data(with_note({"plugin": plugin, "injected": bool(browsers), "browsers": browsers}, *problems))


TOOLS = (reload_extension, get_state, get_logs, get_side_panel, check_adapter, force_reconnect)
