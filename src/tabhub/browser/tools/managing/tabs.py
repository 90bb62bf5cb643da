"""The tab tools: list, describe, open, close, focus, and every way of moving a tab to another page.

Lists and descriptions come from the hub's picture of tabs. `arrive` is how a tab just opened gets to its address.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from tabhub.browser.driver.page import Page, open_tab, validate_url
from tabhub.browser.tool_spec import TAB, Call, hints, tool
from tabhub.browser.tools.inspecting import throttle
from tabhub.core.tabs import Tab
from tabhub.core.tools import ToolResult
from tabhub.errors import CommandFailed, DialogOpen, NotConnected, TabFailed

_URL = {"type": "string", "minLength": 1, "maxLength": 100_000, "description": "https://…"}
NAVIGATION = {
    "tabId": {"type": "integer"},
    "url": {"type": "string", "description": "Where the tab is now, after redirects."},
    "title": {"type": "string"},
    "status": {"type": "string", "description": "loading or complete"},
    "ok": {"type": "boolean", "description": "Whether the page was reached as asked."},
    "httpStatus": {"type": "integer", "description": "The HTTP status, when known."},
    "note": {"type": "string"},
}
_HTTP_STATUS = "performance.getEntriesByType('navigation')[0]?.responseStatus ?? 0"


@tool(
    "browser_list_tabs",
    "List tabs",
    "Lists the open tabs of all connected browsers: tabId, title, url, which one is active.",
    output={"tabs": {"type": "array", "items": TAB}},
    output_required=("tabs",),
    annotations=hints(read_only=True, open_world=False),
    on_tab=False,
)
async def list_tabs(call: Call) -> ToolResult:
    """The tabs as the hub knows them; no round trip."""
    if not call.box.browsers.links():
        call.box.browsers.default_link()
    tabs = sorted(call.box.browsers.book, key=lambda tab: (tab.browser_id, tab.window_id, tab.index, tab.tab_id))
    return ToolResult.data({"tabs": [tab.facts() for tab in tabs]})


@tool(
    "browser_get_tab_info",
    "Describe a tab",
    "Describes one tab: address, title, loading state, window, and whether the debugger is attached.",
    output={
        **TAB["properties"],
        "origin": {"type": ["string", "null"]},
        "index": {"type": "integer"},
        "debuggerAttached": {"type": "boolean"},
        "dialog": {"type": "object", "description": "A dialog that blocks the page."},
    },
    output_required=("tabId", "title", "url", "status", "debuggerAttached"),
    annotations=hints(read_only=True, open_world=False),
)
async def get_tab_info(call: Call) -> ToolResult:
    """One tab as the hub knows it; no round trip."""
    ref = await call.tab()
    facts = {
        **ref.tab.facts(),
        "origin": ref.tab.origin,
        "index": ref.tab.index,
        "debuggerAttached": call.box.browsers.debugged(ref.link, ref.tab.chrome_id),
    }
    if dialog := call.box.watch.open_dialog(ref.link, ref.tab.chrome_id):
        facts["dialog"] = {"type": dialog.kind, "message": dialog.message}
    return ToolResult.data(facts)


@tool(
    "browser_open_tab",
    "Open a tab",
    "Opens a new tab, in the background unless `active`, and waits until the page has loaded.",
    params={
        "url": _URL,
        "browserId": {"type": "string", "description": "Default: the one used last."},
        "active": {"type": "boolean"},
    },
    required=("url",),
    output=NAVIGATION,
    output_required=("tabId", "url", "ok"),
    annotations=hints(),
    on_tab=False,
)
async def open_new_tab(call: Call) -> ToolResult:
    """An empty tab first, then the address: so that what goes wrong on the way can be told.

    Browsers let no one send a tab that is there to a data: address, so that one comes with the tab.
    """
    url, box = validate_url(call.args["url"], files=call.box.file_urls), call.box
    browser_id = call.args.get("browserId")
    if browser_id is not None:
        box.browsers.link(browser_id)
    elif not box.browsers.links():
        box.browsers.default_link()
    call.ctx.sent()
    initial_url = url if must_open_with_tab(url) else None
    tab = await open_tab(
        box.browsers,
        browser_id=browser_id,
        active=call.args.get("active", False),
        url=initial_url,
        group=box.choice.tab_group(call.ctx.session),
    )
    box.choice.adopt(call.ctx.session, tab.tab_id)
    return ToolResult.data(await load_url(call, tab, url))


def must_open_with_tab(url: str) -> bool:
    """Whether a tab has to be opened with this address, since it could not be sent there."""
    return url[:5].lower() == "data:"


async def load_url(call: Call, tab: Tab, url: str) -> dict[str, Any]:
    """Send a tab just opened to its address, unless it came with it, and tell where it is."""
    box = call.box
    call.ctx.touch(tab.tab_id, None)
    if must_open_with_tab(url) or url == "about:blank":
        status = "complete" if url == "about:blank" else tab.status  # there is nothing to load
        return {"tabId": tab.tab_id, "url": tab.url or url, "title": tab.title, "status": status, "ok": True}
    page = Page(box.browsers, box.watch, box.browsers.tab(tab.tab_id), None)
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
    "Go to an address",
    "Sends a tab to an address and waits until it has loaded (`load`), has begun to show it (`commit`), or not at all.",
    params={
        "url": _URL,
        "waitUntil": {"enum": ["load", "commit", "none"]},
    },
    required=("url",),
    output=NAVIGATION,
    output_required=("tabId", "url", "ok"),
    annotations=hints(idempotent=True),
)
async def navigate_tab(call: Call) -> ToolResult:
    url = validate_url(call.args["url"], files=call.box.file_urls)
    return ToolResult.data(await _navigate(call, await call.page(), url, call.args.get("waitUntil", "load")))


async def _move(call: Call, command: str, verb: str, params: dict[str, Any] | None = None) -> ToolResult:
    """Move a tab along its history, or load its page again, and tell where it is then."""
    page = await call.page()
    try:
        answer = await page.command(command, params)
    except (TabFailed, DialogOpen):
        raise
    except CommandFailed as error:
        raise CommandFailed(
            f"Tab {page.tab_id} could not {verb}: {error.message}", hint=_navigation_hint(call, page, error.message)
        ) from None
    return ToolResult.data(_navigation_facts(call, page, answer))


@tool(
    "browser_go_back",
    "Go back",
    "Goes back one page and waits until it has loaded.",
    output=NAVIGATION,
    output_required=("tabId", "url", "ok"),
    annotations=hints(),
)
async def go_back(call: Call) -> ToolResult:
    return await _move(call, "goBack", "go back")


@tool(
    "browser_go_forward",
    "Go forward",
    "Goes forward one page and waits until it has loaded.",
    output=NAVIGATION,
    output_required=("tabId", "url", "ok"),
    annotations=hints(),
)
async def go_forward(call: Call) -> ToolResult:
    return await _move(call, "goForward", "go forward")


@tool(
    "browser_reload_tab",
    "Reload a page",
    "Loads the page again and waits for it. What was typed is lost.",
    params={"ignoreCache": {"type": "boolean"}},
    output=NAVIGATION,
    output_required=("tabId", "url", "ok"),
    annotations=hints(idempotent=True),
)
async def reload_tab(call: Call) -> ToolResult:
    return await _move(call, "reloadTab", "be reloaded", {"ignoreCache": call.args.get("ignoreCache", False)})


@tool(
    "browser_focus_tab",
    "Bring a tab to the front",
    "Shows the tab to the person: makes it active and brings its window to the front. No other tool needs this.",
    output=TAB["properties"],
    output_required=TAB["required"],
    annotations=hints(idempotent=True, open_world=False),
)
async def focus_tab(call: Call) -> ToolResult:
    page = await call.page()
    answer = await page.command("activateTab", {"focusWindow": True})
    return ToolResult.data(call.box.browsers.described(page.link, answer, page.tab).facts())


@tool(
    "browser_close_tab",
    "Close a tab",
    "Closes the tab. What was typed into its page is lost.",
    output={"tabId": {"type": "integer"}, "closed": {"type": "boolean"}},
    output_required=("tabId", "closed"),
    annotations=hints(destructive=True, idempotent=True),
)
async def close_tab(call: Call) -> ToolResult:
    page = await call.page()
    dialog_open = call.box.watch.open_dialog(page.link, page.tab.chrome_id) is not None
    if dialog_open:
        # Not agreed to: a navigation behind the dialog would cross the closing.
        await _answer_dialog(page, accept=False)
    await _close(call, page, again=dialog_open)
    call.box.browsers.forget(page.link, page.tab.chrome_id)
    return ToolResult.data({"tabId": page.tab_id, "closed": True})


async def _close(call: Call, page: Page, *, again: bool) -> None:
    """Close a tab, also one whose page asks first; `again`: a no to its last question may have stopped this as well."""
    try:
        await page.command("closeTab")
    except TabFailed:
        raise
    except CommandFailed as error:
        # The page asks whether to leave it. We answer where we see the question; elsewhere the person is shown it.
        if call.box.watch.open_dialog(page.link, page.tab.chrome_id):
            await _answer_dialog(page, accept=True)
            with suppress(TabFailed):  # it has gone by the answer
                await page.command("closeTab")
        elif again:
            await _close(call, page, again=False)
        else:
            raise CommandFailed(error.message, hint="Call again to close it all the same.") from None


async def _answer_dialog(page: Page, *, accept: bool) -> None:
    await page.command("forwardCDPCommand", {"method": "Page.handleJavaScriptDialog", "params": {"accept": accept}})


async def _navigate(call: Call, page: Page, url: str, wait_until: str) -> dict[str, Any]:
    # So that what the page says and asks for from its first moment on is recorded.
    await call.box.watch.wait_watching(page.link, page.tab.chrome_id)
    try:
        answer = await page.command("browser_navigate", {"url": url, "waitUntil": wait_until})
    except (TabFailed, DialogOpen):
        raise
    except CommandFailed as error:
        shown = url if len(url) <= 200 else f"{url[:200]}…"
        raise CommandFailed(
            f"Tab {page.tab_id} could not be sent to {shown}: {error.message}",
            hint=_navigation_hint(call, page, error.message),
        ) from None
    facts = _navigation_facts(call, page, answer)
    status = answer.get("httpStatus")
    if type(status) is not int and wait_until == "load" and facts["ok"]:
        status = await _http_status(call, page)
    if type(status) is int and status > 0:
        facts["httpStatus"] = status
        facts["ok"] = facts["ok"] and status < 400
    return facts


def _navigation_facts(call: Call, page: Page, answer: Any) -> dict[str, Any]:
    """Where a tab arrived, as its browser tells it; the hub's picture has it from here on."""
    if not isinstance(answer, dict) or not isinstance(answer.get("url"), str):
        raise CommandFailed("invalid response: the browser did not say where the tab is.")
    facts: dict[str, Any] = {
        "tabId": page.tab_id,
        "url": answer["url"],
        "title": str(answer.get("title") or ""),
        "status": str(answer.get("status") or "complete"),
        "ok": answer.get("ok") is not False,
    }
    if answer.get("error"):
        facts["note"] = str(answer["error"])[:500]
    call.box.browsers.moved(page.link, page.tab, url=facts["url"], title=facts["title"], status=facts["status"])
    now = call.box.browsers.book.get(page.tab_id)
    call.ctx.touch(page.tab_id, now.origin if now else None)
    return facts


async def _http_status(call: Call, page: Page) -> int | None:
    """Asked only of a tab that is debugged already: the debugger is not attached for this."""
    if not call.box.browsers.debugged(page.link, page.tab.chrome_id):
        return None
    try:
        answer = await page.cdp("Runtime.evaluate", {"expression": _HTTP_STATUS, "returnByValue": True})
    except (CommandFailed, NotConnected):
        # The page was reached; that its status cannot be read (it moved on, a dialog opened) is no failure of the call.
        return None
    value = answer.get("result", {}).get("value") if isinstance(answer, dict) else None
    return value if type(value) is int else None


_HINTS = (
    ("ERR_NAME_NOT_RESOLVED", "No such host; check the spelling."),
    ("ERR_CONNECTION_REFUSED", "Nothing listens there; is the server running?"),
    ("ERR_CERT", "The site's certificate is not accepted; a person can decide that in the browser."),
    (
        "ERR_INVALID_AUTH_CREDENTIALS",
        "The site wants a name and a password. The browser asks the person for them; browser_focus_tab shows the tab.",
    ),
    ("does not let it go", "A person can answer in the browser window; browser_close_tab closes the tab all the same."),
    ("only in a new tab", "browser_open_tab opens it."),
    ("ERR_INTERNET_DISCONNECTED", "This computer is offline."),
    ("history has no page", "browser_navigate_tab goes to any address."),
    ("page in history", "browser_navigate_tab goes to any address."),
    ("did not answer within", "A script of the page, or its server, takes too long: close the tab, open another one."),
    ("ERR_ABORTED", "The load was stopped: a download, a page without content, or another navigation."),
)


def _navigation_hint(call: Call, page: Page, message: str) -> str | None:
    """What to do; what an agent itself has done to the tab's network comes first."""
    if waiting := call.box.interceptions.pending(page):
        return (
            f"{len(waiting)} of its requests are stopped, such as {waiting[0].id}: browser_intercept_requests lists"
            " them, browser_stop_intercepting lets them go."
        )
    if "ERR_INTERNET_DISCONNECTED" in message and call.box.network_overrides.is_active(page, throttle.OVERRIDE_NAME):
        return "browser_throttle_network has cut the tab off; browser_clear_network_throttle ends it."
    return next((advice for text, advice in _HINTS if text in message), None)


TOOLS = (
    list_tabs,
    open_new_tab,
    close_tab,
    navigate_tab,
    go_back,
    go_forward,
    reload_tab,
    focus_tab,
    get_tab_info,
)
