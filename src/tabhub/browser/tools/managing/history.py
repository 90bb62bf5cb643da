"""History tools: visited pages, visits, recently closed tabs."""

from __future__ import annotations

from datetime import UTC, datetime

from tabhub.browser.browser_choice import (
    BROWSER_ID,
    MORE,
    alternatives_hint,
    choose_link,
    given_args,
    list_from_browser,
    list_items,
    pick_fields,
    pick_rows,
    query_browser,
    run_command,
)
from tabhub.browser.tool_spec import TAB, Call, hints, object_schema, tool
from tabhub.core.tabs import origin_of
from tabhub.core.tools import ToolResult
from tabhub.errors import CommandFailed, InvalidArguments, NotInBrowser

_ENTRY = {
    "url": "string",
    "title": "string",
    "lastVisitTime": "string",
    "visitCount": "integer",
    "typedCount": "integer",
}
_VISIT = {"visitId": "string", "visitTime": "string", "transition": "string", "referringVisitId": "string"}
_CLOSED = {
    "sessionId": "string",
    "kind": "string",
    "closedAt": "string",
    "url": "string",
    "title": "string",
    "tabCount": "integer",
}
_CLOSED_TAB = {"url": "string", "title": "string"}
TIME = {
    "type": ["number", "string"],
    "maxLength": 40,
    "description": "ISO 8601 (default UTC), or milliseconds since 1970.",
}


def time_param(call: Call, name: str) -> dict[str, float]:
    """A time argument in milliseconds since 1970; empty if it is missing."""
    given = call.args.get(name)
    if given is None:
        return {}
    if isinstance(given, str):
        try:
            read = datetime.fromisoformat(given)
        except ValueError:
            raise InvalidArguments(f"invalid {name} {given!r}. Use a time such as 2026-01-31T12:00:00Z.") from None
        given = (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp() * 1000
    if not 0 <= given < 2**53:
        raise InvalidArguments(f"invalid {name} {given!r}. Use a time from 1970 on.")
    return {name: given}


@tool(
    "browser_search_history",
    "Search the history",
    "Searches visited pages by URL or title; an empty query returns the latest.",
    params={
        "query": {"type": "string", "maxLength": 1000},
        "maxResults": {"type": "integer", "minimum": 1, "maximum": 1000, "description": "Default 100."},
        "startTime": TIME,
        "endTime": TIME,
        "browserId": BROWSER_ID,
    },
    required=("query",),
    output={
        "entries": {"type": "array", "items": object_schema(_ENTRY, ("url",))},
        "cut": {"type": "boolean", "description": "Whether there are more; raise maxResults or narrow the time."},
    },
    output_required=("entries",),
    annotations=hints(read_only=True, open_world=False),
    on_tab=False,
)
async def search_history(call: Call) -> ToolResult:
    params = {**given_args(call, "query", "maxResults"), **time_param(call, "startTime"), **time_param(call, "endTime")}
    return ToolResult.data(await list_from_browser(call, "searchHistory", params, "entries", _ENTRY))


@tool(
    "browser_get_visits",
    "Visits of a page",
    "Lists the visits of one exact URL, newest first.",
    params={"url": {"type": "string", "minLength": 1, "maxLength": 100_000}, "browserId": BROWSER_ID},
    required=("url",),
    output={"url": "string", "visits": {"type": "array", "items": object_schema(_VISIT)}, "more": MORE},
    output_required=("url", "visits"),
    annotations=hints(read_only=True, open_world=False),
    on_tab=False,
)
async def get_visits(call: Call) -> ToolResult:
    url = call.args["url"]
    call.ctx.touch(None, origin_of(url))
    try:
        visits = await list_from_browser(call, "getVisits", {"url": url}, "visits", _VISIT)
    except CommandFailed as error:
        if "invalid" not in error.message:
            raise
        raise InvalidArguments(
            f"url {url[:200]!r} is not a full URL.", hint="Use a URL from browser_search_history."
        ) from None
    return ToolResult.data({"url": url, **visits})


@tool(
    "browser_get_recently_closed",
    "Recently closed tabs",
    "Lists recently closed tabs and windows, with the sessionId for browser_restore_session.",
    params={
        "maxResults": {
            "type": "integer",
            "minimum": 1,
            "maximum": 25,
            "description": "Default 25, the maximum a browser keeps.",
        },
        "browserId": BROWSER_ID,
    },
    output={"closed": {"type": "array", "items": object_schema(_CLOSED, ("sessionId", "kind"))}},
    annotations=hints(read_only=True, open_world=False),
    on_tab=False,
)
async def get_recently_closed(call: Call) -> ToolResult:
    answer = await query_browser(choose_link(call), "getRecentlyClosed", given_args(call, "maxResults"))
    closed = []
    for item in list_items(answer, "closed"):
        tabs = {"tabs": pick_rows(item, "tabs", _CLOSED_TAB)} if item.get("kind") == "window" else {}
        closed.append({**pick_fields(item, _CLOSED), **tabs})
    return ToolResult.data({"closed": closed})


@tool(
    "browser_restore_session",
    "Restore a closed tab",
    "Reopens a recently closed tab or window in the background.",
    params={"sessionId": {"type": "string", "minLength": 1, "maxLength": 200}, "browserId": BROWSER_ID},
    required=("sessionId",),
    output={"kind": "string", "tabs": {"type": "array", "items": TAB}},
    on_tab=False,
)
async def restore_session(call: Call) -> ToolResult:
    """The restored tabs are the person's; the session uses one only if it names it."""
    link, wanted = choose_link(call), call.args["sessionId"]
    try:
        answer = await run_command(call, link, "restoreSession", {"sessionId": wanted})
    except CommandFailed as error:
        closed = list_items(await query_browser(link, "getRecentlyClosed"), "closed")
        alternatives = [
            f"{item.get('sessionId')} ({item.get('title') or item.get('url') or item.get('kind')})" for item in closed
        ]
        if any(item.get("sessionId") == wanted for item in closed):
            raise
        raise NotInBrowser(
            f"There is no closed tab or window with sessionId {wanted!r} ({error.message})",
            hint=alternatives_hint(alternatives, "closed tabs"),
        ) from None
    tabs = [call.box.browsers.update_tab(link, raw) for raw in list_items(answer, "tabs")]
    for tab in tabs:
        call.ctx.touch(tab.tab_id, tab.origin)
    return ToolResult.data({"kind": str(answer.get("kind", "tab"))[:20], "tabs": [tab.describe() for tab in tabs]})


TOOLS = (search_history, get_visits, get_recently_closed, restore_session)
