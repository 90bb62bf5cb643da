"""Window tools: list, open, change, close."""

from __future__ import annotations

from typing import Any

from tabhub.browser.browser_choice import BROWSER_ID, WHICH_BROWSER, BrowserCall, browser_tool, pick_fields
from tabhub.browser.driver.page import validate_url
from tabhub.browser.schemas import boolean, integer, list_of, object_schema, rows, text
from tabhub.browser.tool_spec import data_result
from tabhub.browser.tools.managing.tabs import NAVIGATION, load_url, must_open_with_tab
from tabhub.core.tools import ToolResult
from tabhub.errors import CommandFailed, InvalidArguments, PermissionDenied
from tabhub.links.extension import ExtensionLink

_BOUNDS = ("width", "height", "left", "top")
_FIELDS = {
    "windowId": "integer",
    "focused?": "boolean",
    "state?": "string",
    "type?": "string",
    "incognito?": "boolean",
    **dict.fromkeys((f"{name}?" for name in _BOUNDS), "integer"),
}
_WINDOW = {**_FIELDS, "browserId": "string", "tabIds": list_of("integer"), "activeTabId?": "integer"}
_WINDOW_PARAMS = {
    **dict.fromkeys(("width?", "height?"), integer(least=1, most=20_000)),
    **dict.fromkeys(("left?", "top?"), integer(least=-20_000, most=20_000)),
    "state?": {"enum": ["normal", "minimized", "maximized", "fullscreen"]},
    "focused?": boolean("Bring it to the front."),
}
_WINDOW_ID = integer(least=0)


@browser_tool(
    "browser_list_windows",
    "List windows",
    "Lists the windows of all browsers: bounds, state, focus, and their tabs.",
    output={"windows": rows(_WINDOW), "note?": "string"},
    read_only=True,
)
async def list_windows(call: BrowserCall) -> ToolResult:
    found, problems = await call.list_all("getWindows", "windows")
    return data_result({"windows": [_describe(call, one.link, one.what) for one in found]}, *problems)


@browser_tool(
    "browser_create_window",
    "Open a window",
    "Opens a window with one tab, which becomes the session's, and loads `url`. It stays behind the others unless "
    "`focused` is set or `state` is maximized or fullscreen.",
    params={
        "url?": text("Default about:blank.", least=1, most=100_000),
        **_WINDOW_PARAMS,
        "incognito?": boolean("Needs the extension to be allowed in incognito."),
        "browserId?": BROWSER_ID,
    },
    output={**NAVIGATION, "window": object_schema(_WINDOW)},
    open_world=True,
)
async def create_window(call: BrowserCall) -> ToolResult:
    url = validate_url(call.args.get("url", "about:blank"), files=call.box.file_urls)
    wanted = {**_window_params(call), **call.given("incognito")}
    link = call.link()
    if must_open_with_tab(url):
        wanted["url"] = url
    answer = await call.run(link, "createWindow", wanted)
    tab = call.box.browsers.update_tab(link, answer["tab"])
    call.box.choice.adopt(call.ctx.session, tab.tab_id)
    return data_result({**await load_url(call, tab, url), "window": _describe(call, link, answer["window"])})


@browser_tool(
    "browser_update_window",
    "Change a window",
    "Moves or resizes a window, changes its state, or brings it to the front (`focused`).",
    params={"windowId": _WINDOW_ID, **_WINDOW_PARAMS, "browserId?": WHICH_BROWSER},
    output=_WINDOW,
    idempotent=True,
)
async def update_window(call: BrowserCall) -> ToolResult:
    wanted = _window_params(call)
    if not wanted:
        raise InvalidArguments("Nothing to change.", hint=f"Give one of {', '.join(_BOUNDS)}, state, focused.")
    link = (await call.find("getWindows", "windows", "windowId", _label)).link
    changed = await call.run(link, "updateWindow", {"windowId": call.args["windowId"], **wanted})
    return data_result(_describe(call, link, changed))


@browser_tool(
    "browser_close_window",
    "Close a window",
    "Closes a window with all its tabs; unsaved input is lost. A browser's only window stays.",
    params={"windowId": _WINDOW_ID, "browserId?": WHICH_BROWSER},
    output={"windowId": "integer", "closed": "boolean", "tabIds": list_of("integer", "The closed tabs.")},
    destructive=True,
    idempotent=True,
    open_world=True,
)
async def close_window(call: BrowserCall) -> ToolResult:
    found = await call.find("getWindows", "windows", "windowId", _label)
    link, number = found.link, call.args["windowId"]
    if len(await call.items("getWindows", "windows", link=link)) == 1:
        raise InvalidArguments(
            f"Window {number} is the only one of its browser, which may exit with it.",
            hint="Open another first (browser_create_window), or close single tabs (browser_close_tab).",
        )
    tab_ids = call.hub_tab_ids(link, found.what.get("tabIds"))
    if call.has_hidden_tab(link, found.what.get("tabIds")):
        raise PermissionDenied(
            f"Window {number} has a tab on a site that the person keeps agents off; it stays open.",
            hint="Close your own tabs one by one with browser_close_tab.",
        )
    for tab_id in tab_ids:
        call.box.browsers.tab(tab_id)
        call.box.choice.require_free(call.ctx.session, tab_id)
    try:
        await call.run(link, "closeWindow", {"windowId": number})
    except CommandFailed as error:
        raise CommandFailed(
            error.message,
            hint="Close its tabs one by one with browser_close_tab, which also answers beforeunload dialogs.",
        ) from None
    for tab_id in tab_ids:
        if (tab := call.box.browsers.book.get(tab_id)) is not None:
            call.box.browsers.remove_tab(link, tab.chrome_id)
    return data_result({"windowId": number, "closed": True, "tabIds": tab_ids})


def _describe(call: BrowserCall, link: ExtensionLink, window: dict[str, Any]) -> dict[str, Any]:
    return {
        **pick_fields(window, _FIELDS),
        "browserId": link.browser_id,
        "tabIds": call.hub_tab_ids(link, window.get("tabIds")),
        **call.hub_tab_id(link, "activeTabId", window.get("activeTabId")),
    }


def _window_params(call: BrowserCall) -> dict[str, Any]:
    wanted = call.given(*_BOUNDS, "state", "focused")
    state = wanted.get("state", "normal")
    placed = [name for name in _BOUNDS if name in wanted]
    if state != "normal" and placed:
        raise InvalidArguments(
            f"A window that is {state} cannot have {' or '.join(placed)}.",
            hint=f"Omit {' and '.join(placed)}, or `state`.",
        )
    impossible = {"minimized": True, "maximized": False, "fullscreen": False}
    if state in impossible and wanted.get("focused") is impossible[state]:
        raise InvalidArguments(f"A window cannot be {state} with focused: {str(wanted['focused']).lower()}.")
    return wanted


def _label(window: dict[str, Any]) -> str:
    count = len(window.get("tabIds", ()))
    return f"{window.get('type', 'normal')}, {count} tab{'' if count == 1 else 's'}"
