"""History tools: visited pages, visits, recently closed tabs."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from functools import partial
from typing import Any

from tabhub.browser.browser_choice import BROWSER_ID, MORE, BrowserCall, alternatives_hint, browser_tool, pick_fields
from tabhub.browser.schemas import TAB, boolean, integer, rows, text
from tabhub.browser.tool_spec import data_result
from tabhub.core.origins import origin_of
from tabhub.core.tools import ToolResult
from tabhub.errors import CommandFailed, InvalidArguments, NotInBrowser, PermissionDenied
from tabhub.links.extension import ExtensionLink

_ENTRY = {
    "url": "string",
    **dict.fromkeys(("title?", "lastVisitTime?"), "string"),
    **dict.fromkeys(("visitCount?", "typedCount?"), "integer"),
}
_VISIT = dict.fromkeys(("visitId?", "visitTime?", "transition?", "referringVisitId?"), "string")
_CLOSED_TAB = {"url?": "string", "title?": "string"}
_CLOSED = {"sessionId": "string", "kind": "string", "closedAt?": "string", **_CLOSED_TAB, "tabCount?": "integer"}
TIME = {
    "type": ["number", "string"],
    "maxLength": 40,
    "description": "ISO 8601 (default UTC), or milliseconds since 1970.",
}


def time_param(call: BrowserCall, name: str) -> dict[str, float]:
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


def _note_sites(call: BrowserCall, pages: Iterable[dict[str, Any]]) -> None:
    """Titles and URLs of pages are content of their sites: note them as read."""
    for page in pages:
        call.ctx.note_site(origin_of(str(page.get("url") or "")))


@browser_tool(
    "browser_search_history",
    "Search the history",
    "Searches visited pages by URL or title; an empty query returns the latest.",
    params={
        "query": text(most=1000),
        "maxResults?": integer("Default 100.", least=1, most=1000),
        "startTime?": TIME,
        "endTime?": TIME,
        "browserId?": BROWSER_ID,
    },
    output={
        "entries": rows(_ENTRY),
        "cut?": boolean("Whether there are more; raise maxResults or narrow the time."),
    },
    read_only=True,
)
async def search_history(call: BrowserCall) -> ToolResult:
    params = {**call.given("query", "maxResults"), **time_param(call, "startTime"), **time_param(call, "endTime")}
    found = await call.list_rows("searchHistory", params, "entries", _ENTRY)
    _note_sites(call, found["entries"])
    return data_result(found)


@browser_tool(
    "browser_get_visits",
    "Visits of a page",
    "Lists the visits of one exact URL, newest first.",
    params={"url": text(least=1, most=100_000), "browserId?": BROWSER_ID},
    output={"url": "string", "visits": rows(_VISIT), "more?": MORE},
    read_only=True,
)
async def get_visits(call: BrowserCall) -> ToolResult:
    url = call.args["url"]
    call.ctx.visit(None, origin_of(url))
    try:
        visits = await call.list_rows("getVisits", {"url": url}, "visits", _VISIT)
    except CommandFailed as error:
        if "invalid" not in error.message:
            raise
        raise InvalidArguments(
            f"url {url[:200]!r} is not a full URL.", hint="Use a URL from browser_search_history."
        ) from None
    return data_result({"url": url, **visits})


@browser_tool(
    "browser_get_recently_closed",
    "Recently closed tabs",
    "Lists recently closed tabs and windows, with the sessionId for browser_restore_session.",
    params={
        "maxResults?": integer("Default 25, the maximum a browser keeps.", least=1, most=25),
        "browserId?": BROWSER_ID,
    },
    output={"closed": rows(_CLOSED)},
    read_only=True,
)
async def get_recently_closed(call: BrowserCall) -> ToolResult:
    closed = []
    there = await call.items("getRecentlyClosed", "closed", call.given("maxResults"))
    for item in call.view.keep(there, partial(_is_hidden, call)):
        facts = pick_fields(item, _CLOSED)
        if item["kind"] == "window":
            facts["tabs"] = [pick_fields(tab, _CLOSED_TAB) for tab in item.get("tabs", ())]
            _note_sites(call, facts["tabs"])
        closed.append(facts)
    _note_sites(call, closed)
    return data_result({"closed": closed})


@browser_tool(
    "browser_restore_session",
    "Restore a closed tab",
    "Reopens a recently closed tab or window in the background.",
    params={"sessionId": text(least=1, most=200), "browserId?": BROWSER_ID},
    output={"kind": "string", "tabs": rows(TAB)},
    open_world=True,
)
async def restore_session(call: BrowserCall) -> ToolResult:
    link, wanted = call.link(), call.args["sessionId"]
    if call.view.active:
        await _require_visible(call, link, wanted)
    try:
        answer = await call.run(link, "restoreSession", {"sessionId": wanted})
    except CommandFailed as error:
        closed = await call.items("getRecentlyClosed", "closed", link=link)
        if any(item.get("sessionId") == wanted for item in closed):
            raise
        alternatives = (
            f"{item.get('sessionId')} ({item.get('title') or item.get('url') or item.get('kind')})"
            for item in call.view.keep(closed, partial(_is_hidden, call))
        )
        raise NotInBrowser(
            f"There is no closed tab or window with sessionId {wanted!r} ({error.message})",
            hint=alternatives_hint(alternatives, "closed tabs"),
        ) from None
    tabs = [call.box.browsers.update_tab(link, raw) for raw in answer.get("tabs", ())]
    for tab in call.visible_tabs(tabs):
        call.ctx.visit(tab.tab_id, tab.site)
    return data_result({"kind": answer["kind"], "tabs": [tab.describe() for tab in tabs if not call.hides_tab(tab)]})


def _is_hidden(call: BrowserCall, closed: dict[str, Any]) -> bool:
    """Whether a closed tab, or a tab of a closed window, is on a site that the agent is kept off."""
    return call.hides_row(closed) or any(call.hides_row(tab) for tab in closed.get("tabs", ()))


async def _require_visible(call: BrowserCall, link: ExtensionLink, session_id: str) -> None:
    closed = await call.items("getRecentlyClosed", "closed", link=link)
    if any(item.get("sessionId") == session_id and _is_hidden(call, item) for item in closed):
        raise PermissionDenied(
            "That tab or window shows a site that the person keeps agents off; it stays closed.",
            hint="browser_get_recently_closed lists those that can be restored.",
        )
