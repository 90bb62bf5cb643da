"""Window tools: list, open, change, close."""

from __future__ import annotations

from typing import Any

from tabhub.browser.browser_choice import (
    BROWSER_ID,
    WHICH_BROWSER,
    Found,
    choose_link,
    find_by_number,
    given_args,
    hub_tab_ids,
    list_items,
    pick_fields,
    query_all_browsers,
    query_browser,
    run_command,
)
from tabhub.browser.driver.page import validate_url
from tabhub.browser.tool_spec import Call, hints, object_schema, tool, with_note
from tabhub.browser.tools.managing.tabs import NAVIGATION, load_url, must_open_with_tab
from tabhub.core.tools import ToolResult
from tabhub.errors import CommandFailed, InvalidArguments
from tabhub.links.extension import ExtensionLink

_STATES = ["normal", "minimized", "maximized", "fullscreen"]
_BOUNDS = ("left", "top", "width", "height")
_FIELDS = {
    "windowId": "integer",
    "focused": "boolean",
    "state": "string",
    "type": "string",
    "incognito": "boolean",
    **dict.fromkeys(_BOUNDS, "integer"),
}
_TAB_LIST = {"type": "array", "items": {"type": "integer"}}
_WINDOW = object_schema(
    {**_FIELDS, "browserId": "string", "tabIds": _TAB_LIST, "activeTabId": "integer"},
    ("windowId", "browserId", "tabIds"),
)
_SIZE = {"type": "integer", "minimum": 1, "maximum": 20_000}
_POSITION = {"type": "integer", "minimum": -20_000, "maximum": 20_000}
_WINDOW_PARAMS = {
    "width": _SIZE,
    "height": _SIZE,
    "left": _POSITION,
    "top": _POSITION,
    "state": {"enum": _STATES},
    "focused": {"type": "boolean", "description": "Bring it to the front."},
}
_WINDOW_ID = {"type": "integer", "minimum": 0}


def _facts(call: Call, link: ExtensionLink, window: dict[str, Any]) -> dict[str, Any]:
    front = hub_tab_ids(call, link, [window.get("activeTabId")])
    return {
        **pick_fields(window, _FIELDS),
        "browserId": link.browser_id,
        "tabIds": hub_tab_ids(call, link, window.get("tabIds")),
        **({"activeTabId": front[0]} if front else {}),
    }


def _window_params(call: Call) -> dict[str, Any]:
    """The given window parameters, checked for conflicts."""
    wanted = given_args(call, *_WINDOW_PARAMS)
    state = wanted.get("state", "normal")
    placed = [name for name in _BOUNDS if name in wanted]
    if state != "normal" and placed:
        raise InvalidArguments(
            f"A window that is {state} cannot have {' or '.join(placed)}.",
            hint=f"Omit {' and '.join(placed)}, or `state`.",
        )
    if (state == "minimized" and wanted.get("focused")) or (
        state in ("maximized", "fullscreen") and wanted.get("focused") is False
    ):
        raise InvalidArguments(f"A window cannot be {state} with focused: {str(wanted['focused']).lower()}.")
    return wanted


async def _find(call: Call) -> Found:
    return await find_by_number(call, "getWindows", "windows", "windowId", call.args["windowId"], _label)


def _label(window: dict[str, Any]) -> str:
    tabs = window.get("tabIds")
    count = len(tabs) if isinstance(tabs, list) else 0
    return f"{window.get('type', 'normal')}, {count} tab{'' if count == 1 else 's'}"


@tool(
    "browser_list_windows",
    "List windows",
    "Lists the windows of all browsers: bounds, state, focus, and their tabs.",
    output={"windows": {"type": "array", "items": _WINDOW}, "note": "string"},
    annotations=hints(read_only=True, open_world=False),
    on_tab=False,
)
async def list_windows(call: Call) -> ToolResult:
    answers, problems = await query_all_browsers(call, "getWindows")
    windows = [_facts(call, answer.link, window) for answer in answers for window in list_items(answer.what, "windows")]
    return ToolResult.data(with_note({"windows": windows}, *problems))


@tool(
    "browser_create_window",
    "Open a window",
    "Opens a window with one tab, which becomes the session's, and loads `url`. It stays behind the others unless "
    "`focused` is set or `state` is maximized or fullscreen.",
    params={
        "url": {"type": "string", "minLength": 1, "maxLength": 100_000, "description": "Default about:blank."},
        **_WINDOW_PARAMS,
        "incognito": {"type": "boolean", "description": "Needs the extension to be allowed in incognito."},
        "browserId": BROWSER_ID,
    },
    output={**NAVIGATION, "window": _WINDOW},
    output_required=("tabId", "url", "ok", "window"),
    on_tab=False,
)
async def create_window(call: Call) -> ToolResult:
    url = validate_url(call.args.get("url", "about:blank"), files=call.box.file_urls)
    wanted = {**_window_params(call), **given_args(call, "incognito")}
    link = choose_link(call)
    if must_open_with_tab(url):
        wanted["url"] = url
    answer = await run_command(call, link, "createWindow", wanted)
    window, box = answer.get("window"), call.box
    if not isinstance(window, dict):
        raise CommandFailed("invalid response: the browser did not describe the window it opened.")
    tab = box.browsers.update_tab(link, answer.get("tab"))
    box.choice.adopt(call.ctx.session, tab.tab_id)
    return ToolResult.data({**await load_url(call, tab, url), "window": _facts(call, link, window)})


@tool(
    "browser_update_window",
    "Change a window",
    "Moves or resizes a window, changes its state, or brings it to the front (`focused`).",
    params={"windowId": _WINDOW_ID, **_WINDOW_PARAMS, "browserId": WHICH_BROWSER},
    required=("windowId",),
    output=_WINDOW["properties"],
    output_required=_WINDOW["required"],
    annotations=hints(idempotent=True, open_world=False),
    on_tab=False,
)
async def update_window(call: Call) -> ToolResult:
    wanted = _window_params(call)
    if not wanted:
        raise InvalidArguments("Nothing to change.", hint=f"Give one of {', '.join(_WINDOW_PARAMS)}.")
    found = await _find(call)
    changed = await run_command(call, found.link, "updateWindow", {"windowId": call.args["windowId"], **wanted})
    return ToolResult.data(_facts(call, found.link, changed))


@tool(
    "browser_close_window",
    "Close a window",
    "Closes a window with all its tabs; unsaved input is lost. A browser's only window stays.",
    params={"windowId": _WINDOW_ID, "browserId": WHICH_BROWSER},
    required=("windowId",),
    output={
        "windowId": "integer",
        "closed": "boolean",
        "tabIds": {"type": "array", "items": {"type": "integer"}, "description": "The closed tabs."},
    },
    annotations=hints(destructive=True, idempotent=True),
    on_tab=False,
)
async def close_window(call: Call) -> ToolResult:
    found = await _find(call)
    link, number = found.link, call.args["windowId"]
    if len(list_items(await query_browser(link, "getWindows"), "windows")) == 1:
        raise InvalidArguments(
            f"Window {number} is the only one of its browser, which may exit with it.",
            hint="Open another first (browser_create_window), or close single tabs (browser_close_tab).",
        )
    tab_ids = hub_tab_ids(call, link, found.what.get("tabIds"))
    for tab_id in tab_ids:
        call.box.choice.require_free(call.ctx.session, tab_id)
    try:
        await run_command(call, link, "closeWindow", {"windowId": number})
    except CommandFailed as error:
        raise CommandFailed(
            error.message,
            hint="Close its tabs one by one with browser_close_tab, which also answers beforeunload dialogs.",
        ) from None
    for tab_id in tab_ids:
        if (tab := call.box.browsers.book.get(tab_id)) is not None:
            call.box.browsers.remove_tab(link, tab.chrome_id)
    return ToolResult.data({"windowId": number, "closed": True, "tabIds": tab_ids})


TOOLS = (list_windows, create_window, update_window, close_window)
