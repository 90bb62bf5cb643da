"""The tab tools: list, describe, open, close, focus, and every way of moving a tab to another page.

Lists and descriptions come from the hub's own tab state. `load_url` sends a new tab to its URL.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

import orjson

from tabhub.browser.browser_choice import browser_tool
from tabhub.browser.driver.cdp_values import parse_object
from tabhub.browser.driver.page import Page, open_tab, validate_url
from tabhub.browser.schemas import TAB, boolean, free_object, integer, rows, text
from tabhub.browser.tool_spec import Call, ToolSpec, data_result, text_result, tool, with_note
from tabhub.browser.tools.inspecting import throttle
from tabhub.core.origins import origin_of
from tabhub.core.tabs import Tab
from tabhub.core.tools import ToolResult
from tabhub.errors import CommandFailed, DialogOpen, NotConnected, SiteBlocked, TabFailed

_URL = text(least=1, most=100_000)
NAVIGATION = {
    "tabId": "integer",
    "url": text("After redirects."),
    "title?": "string",
    "status?": text("loading or complete"),
    "ok": boolean("Whether the page was reached."),
    "httpStatus?": integer("The HTTP status, when known."),
    "note?": "string",
}
_HTTP_STATUS = "performance.getEntriesByType('navigation')[0]?.responseStatus ?? 0"


@browser_tool(
    "browser_list_tabs",
    "List tabs",
    "Lists the open tabs of all browsers, and which are yours.",
    output={"tabs": rows({**TAB, "own?": "boolean", "leased?": boolean("Another session holds it.")})},
    read_only=True,
)
async def list_tabs(call: Call) -> ToolResult:
    every = call.box.browsers.book.in_order()
    tabs = call.visible_tabs(every)
    if not every:
        call.box.browsers.default_link()  # fails if no browser is connected
    held = call.box.choice.held_tabs(call.ctx.session)
    if call.ctx.structured:
        marks = {tab_id: {"own" if own else "leased": True} for tab_id, own in held.items()}
        return data_result({"tabs": [{**tab.describe(), **marks.get(tab.tab_id, {})} for tab in tabs]})
    lines = _tab_lines(tabs, held)
    # Far below the budget, so that nobody has to count.
    most, shown = call.box.browsers.limits.result_tokens * 2, 0
    while shown < len(lines) and most > 0:
        most -= len(lines[shown].encode()) + 1
        shown += 1
    note = f"{len(lines) - shown} more lines" if shown < len(lines) else ""
    rest = "\n".join(lines[shown:])
    return text_result("\n".join(lines[:shown]) or "No tabs are open.", {}, note, rest=rest, fits=True)


def _tab_lines(tabs: Iterable[Tab], held: Mapping[int, bool]) -> list[str]:
    """A line for each tab below its browser and window; `held` tabs are the session's own or another's."""
    lines: list[str] = []
    last: tuple[str, int] | None = None
    for tab in tabs:
        place = (tab.browser_id, tab.window_id)
        if place != last:
            lines.append(f"browser {tab.browser_id}, window {tab.window_id}:")
            last = place
        line = tab.line
        if (own := held.get(tab.tab_id)) is not None:
            line += " [yours]" if own else " [leased by another session]"
        lines.append(line)
    return lines


@tool(
    "browser_get_tab_info",
    "Describe a tab",
    "Describes one tab: URL, title, loading state, window, and whether the debugger is attached.",
    output={
        **TAB,
        "status": "string",
        "active?": "boolean",
        "browserId?": "string",
        "origin?": {"type": ["string", "null"]},
        "index?": "integer",
        "debuggerAttached": "boolean",
        "dialog?": free_object("The dialog that blocks the page."),
    },
    read_only=True,
    open_world=False,
)
async def get_tab_info(call: Call) -> ToolResult:
    page = await call.page()
    page.require_visible()
    facts = {
        **page.tab.describe(),
        "origin": page.tab.origin,
        "index": page.tab.index,
        "debuggerAttached": call.box.browsers.is_debugged(*page.key),
    }
    if dialog := page.dialog:
        facts["dialog"] = {"type": dialog.kind, "message": dialog.message}
    return data_result(facts)


@browser_tool(
    "browser_open_tab",
    "Open a tab",
    "Opens a URL in a new tab, in the background unless `active`, and waits until it has loaded.",
    params={"url": _URL, "browserId?": text("Default: the one used last."), "active?": "boolean"},
    output=NAVIGATION,
    open_world=True,
)
async def open_new_tab(call: Call) -> ToolResult:
    """Opens an empty tab first and then navigates, so that navigation errors can be reported.

    Browsers refuse to navigate an existing tab to a data: URL, so the tab is opened with it.
    """
    url, box = validate_url(call.args["url"], files=call.box.file_urls), call.box
    named = call.args.get("browserId")
    link = box.browsers.default_link() if named is None else box.browsers.link(named)
    call.ctx.sent = True
    tab = await open_tab(
        box.browsers,
        browser_id=link.browser_id,
        active=call.args.get("active", False),
        url=url if must_open_with_tab(url) else None,
        group=box.choice.tab_group(call.ctx.session),
    )
    box.choice.adopt(call.ctx.session, tab.tab_id)
    return data_result(await load_url(call, tab, url))


def must_open_with_tab(url: str) -> bool:
    return url[:5].lower() == "data:"


async def load_url(call: Call, tab: Tab, url: str) -> dict[str, Any]:
    box = call.box
    call.ctx.visit(tab.tab_id, tab.site)
    if must_open_with_tab(url) or url == "about:blank":
        if call.hides_tab(tab):
            raise SiteBlocked(tab.tab_id)
        status = "complete" if url == "about:blank" else tab.status  # there is nothing to load
        return {"tabId": tab.tab_id, "url": tab.url or url, "title": tab.title, "status": status, "ok": True}
    page = Page(box.browsers, box.watch, box.browsers.tab(tab.tab_id), view=call.view)
    try:
        return await _navigate(call, page, url, "load")
    except TabFailed:
        raise
    except CommandFailed as error:
        raise CommandFailed(
            error.message, hint=f"Tab {tab.tab_id} stays open. {error.hint or ''}".strip(), data={"tabId": tab.tab_id}
        ) from None


@tool(
    "browser_navigate_tab",
    "Navigate",
    "Navigates to a URL and waits until the page has loaded, has committed, or not at all.",
    params={"url": _URL, "waitUntil?": {"enum": ["load", "commit", "none"]}},
    output=NAVIGATION,
    idempotent=True,
    tells_changes=True,
)
async def navigate_tab(call: Call) -> ToolResult:
    url = validate_url(call.args["url"], files=call.box.file_urls)
    page = await call.page(leaves=True)
    return _navigated(await _navigate(call, page, url, call.args.get("waitUntil", "load")), url)


def _history_tool(direction: str) -> ToolSpec:
    @tool(
        f"browser_go_{direction}",
        f"Go {direction}",
        f"Goes {direction} one page and waits until it has loaded.",
        output=NAVIGATION,
        tells_changes=True,
    )
    async def go(call: Call) -> ToolResult:
        page = await call.page()
        answer = await _move(call, page, f"go{direction.title()}", f"go {direction}")
        return _navigated(_navigation_facts(call, page, answer))

    return go


go_back, go_forward = _history_tool("back"), _history_tool("forward")


@tool(
    "browser_reload_tab",
    "Reload a page",
    "Reloads the page; unsaved input is lost.",
    params={"ignoreCache?": "boolean"},
    output=NAVIGATION,
    idempotent=True,
    tells_changes=True,
)
async def reload_tab(call: Call) -> ToolResult:
    page = await call.page()
    params = {"ignoreCache": call.args.get("ignoreCache", False)}
    return _navigated(_navigation_facts(call, page, await _move(call, page, "reloadTab", "be reloaded", params)))


@tool(
    "browser_focus_tab",
    "Bring a tab to the front",
    "Activates the tab and brings its window to the front for the person. No other tool needs this.",
    output=TAB,
    idempotent=True,
    open_world=False,
)
async def focus_tab(call: Call) -> ToolResult:
    page = await call.page(leaves=True)
    answer = await page.command("activateTab", {"focusWindow": True})
    return data_result(call.box.browsers.update_tab(page.link, answer, page.tab).describe())


@tool(
    "browser_close_tab",
    "Close a tab",
    "Closes the tab; unsaved input is lost.",
    output={"tabId": "integer", "closed": "boolean"},
    destructive=True,
    idempotent=True,
)
async def close_tab(call: Call) -> ToolResult:
    page = await call.page(leaves=True)
    dialog_open = page.dialog is not None
    if dialog_open:
        # Dismissed, because accepting could start a navigation that interferes with closing.
        await _answer_dialog(page, accept=False)
    await _close(call, page, again=dialog_open)
    call.box.browsers.remove_tab(*page.key)
    return data_result({"tabId": page.tab_id, "closed": True})


async def _close(call: Call, page: Page, *, again: bool) -> None:
    """Close a tab, answering beforeunload; `again`: the dialog just dismissed may have stopped this close, so retry."""
    try:
        await page.command("closeTab")
    except TabFailed:
        raise
    except CommandFailed as error:
        # The page has a beforeunload dialog. Answer it if the debugger sees it; otherwise the person is shown it.
        if page.dialog:
            await _answer_dialog(page, accept=True)
            with suppress(TabFailed):  # the answer already closed it
                await page.command("closeTab")
        elif again:
            await _close(call, page, again=False)
        else:
            raise CommandFailed(error.message, hint="Call again to close it anyway.") from None


async def _answer_dialog(page: Page, *, accept: bool) -> None:
    await page.command("forwardCDPCommand", {"method": "Page.handleJavaScriptDialog", "params": {"accept": accept}})


async def _move(call: Call, page: Page, command: str, verb: str, params: dict[str, Any] | None = None) -> Any:
    try:
        return await page.command(command, params)
    except (TabFailed, DialogOpen):
        raise
    except CommandFailed as error:
        raise CommandFailed(
            f"Tab {page.tab_id} could not {verb}: {error.message}", hint=_navigation_hint(call, page, error.message)
        ) from None


async def _navigate(call: Call, page: Page, url: str, wait_until: str) -> dict[str, Any]:
    # Starts recording first, so that nothing of the new page is missed.
    await call.box.watch.wait_watching(page.key)
    shown = url if len(url) <= 200 else f"{url[:200]}…"
    params = {"url": url, "waitUntil": wait_until}
    answer = await _move(call, page, "browser_navigate", f"navigate to {shown}", params)
    facts = _navigation_facts(call, page, answer)
    status = answer.get("httpStatus")
    if type(status) is not int and wait_until == "load" and facts["ok"]:
        status = await _http_status(call, page)
    if type(status) is int and status > 0:
        facts["httpStatus"] = status
        facts["ok"] = facts["ok"] and status < 400
    return facts


def _navigated(facts: dict[str, Any], wanted: str = "") -> ToolResult:
    """As text, the page in the notation of snapshots, and what is not as usual; the URL unless it is the wanted one."""
    usual = {"status": "complete", "ok": True, "httpStatus": 200}
    shown = ("tabId", "url", "title", "note")
    rest = {name: value for name, value in facts.items() if name not in shown and value != usual.get(name)}
    there = "" if facts["url"] in (wanted, f"{wanted}/") else f" {facts['url']}"
    line = f"page {orjson.dumps(facts['title']).decode()}{there}"
    return text_result(f"{line} {orjson.dumps(rest).decode()}" if rest else line, facts)


def _navigation_facts(call: Call, page: Page, answer: Any) -> dict[str, Any]:
    """The result of a navigation; also updates the hub's tab state."""
    if not isinstance(answer, dict) or not isinstance(answer.get("url"), str):
        raise CommandFailed("invalid response: the browser did not report the tab's URL.")
    facts: dict[str, Any] = {
        "tabId": page.tab_id,
        "url": answer["url"],
        "title": str(answer.get("title") or ""),
        "status": str(answer.get("status") or "complete"),
        "ok": answer.get("ok") is not False,
    }
    location = {name: facts[name] for name in ("url", "title", "status")}
    call.box.browsers.update_location(page.link, page.tab, **location)
    if call.view.active:
        if call.view.hides(facts["url"]):
            raise SiteBlocked(page.tab_id)
        page.require_visible()
    now = call.box.browsers.book.get(page.tab_id)
    call.ctx.visit(page.tab_id, now.site if now is not None else None)
    return with_note(facts, str(answer.get("error") or "")[:500], _elsewhere_note(call, facts["url"]))


def _elsewhere_note(call: Call, arrived: str) -> str:
    """A note if a navigation arrived on another site than the one it was sent to."""
    wanted, there = origin_of(str(call.args.get("url") or "")), origin_of(arrived)
    if wanted is None or there is None or wanted == there:
        return ""
    return f"The tab was redirected from {wanted} to {there}, another site: what you do there is checked for that site."


async def _http_status(call: Call, page: Page) -> int | None:
    """Read only if the debugger is already attached; it is not attached for this."""
    if not call.box.browsers.is_debugged(*page.key):
        return None
    try:
        answer = await page.cdp("Runtime.evaluate", {"expression": _HTTP_STATUS, "returnByValue": True})
    except (CommandFailed, NotConnected):
        # The page was reached; the call succeeds even if its status cannot be read (navigation, dialog).
        return None
    value = parse_object(parse_object(answer).get("result")).get("value")
    return value if type(value) is int else None


_HINTS = (
    ("ERR_NAME_NOT_RESOLVED", "Unknown host; check the spelling."),
    ("ERR_CONNECTION_REFUSED", "Nothing listens there; check that the server is running."),
    ("ERR_CERT", "The site's certificate is not trusted; the person can decide in the browser."),
    ("ERR_INVALID_AUTH", "The browser asks the person for HTTP authentication; browser_focus_tab shows the tab."),
    ("blocks the navigation", "The person can answer in the browser window; browser_close_tab closes the tab anyway."),
    ("only in a new tab", "browser_open_tab opens it."),
    ("ERR_INTERNET_DISCONNECTED", "This computer is offline."),
    ("history has no page", "Use browser_navigate_tab with a URL."),
    ("page in history", "Use browser_navigate_tab with a URL."),
    ("did not answer within", "A page script or its server takes too long: close the tab and open another."),
    ("ERR_ABORTED", "The load was stopped: a download, a page without content, or another navigation."),
)


def _navigation_hint(call: Call, page: Page, message: str) -> str | None:
    if waiting := call.box.interceptions.pending(page):
        return (
            f"{len(waiting)} of its requests are paused, such as {waiting[0].id}: browser_intercept_requests lists"
            " them, browser_stop_intercepting continues them."
        )
    if "ERR_INTERNET_DISCONNECTED" in message and throttle.OVERRIDE_NAME in call.box.network_overrides.active(page):
        return "browser_throttle_network set the tab offline; browser_clear_network_throttle ends it."
    return next((advice for text, advice in _HINTS if text in message), None)
