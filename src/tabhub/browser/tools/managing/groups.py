"""Tab group tools: list, create, add and remove tabs, change."""

from __future__ import annotations

from typing import Any

from tabhub.browser.browser_choice import WHICH_BROWSER, BrowserCall, alternatives_hint, browser_tool, pick_fields
from tabhub.browser.schemas import TAB, integer, list_of, rows, text
from tabhub.browser.tool_spec import data_result
from tabhub.core.tabs import Tab
from tabhub.core.tools import ToolResult
from tabhub.errors import InvalidArguments, NotInBrowser, TabNotFound
from tabhub.links.extension import ExtensionLink

_FIELDS = {
    "groupId": "integer",
    "title?": "string",
    "color?": "string",
    "collapsed?": "boolean",
    "windowId?": "integer",
}
_GROUP = {**_FIELDS, "browserId": "string", "tabIds": list_of("integer")}
_GROUP_ID = integer(least=0)
_TAB_IDS = list_of(integer(least=0), least=1, most=500) | {"uniqueItems": True}
_LOOK = {
    "title?": text(most=200),
    "color?": {"enum": ["grey", "blue", "red", "yellow", "green", "pink", "purple", "cyan", "orange"]},
}
_NAMED = 10


@browser_tool(
    "browser_list_tab_groups",
    "List tab groups",
    "Lists the tab groups of all browsers with their tabs, or those of one window.",
    params={"windowId?": integer("Only groups of this window.", least=0)},
    output={"groups": rows(_GROUP), "note?": "string"},
    read_only=True,
)
async def list_tab_groups(call: BrowserCall) -> ToolResult:
    found, problems = await call.list_all("getGroups", "groups")
    groups = [_describe(call, one.link, one.what) for one in found]
    if (window := call.args.get("windowId")) is not None:
        groups = [group for group in groups if group.get("windowId") == window]
        windows = sorted({tab.window_id for tab in call.box.browsers.book})
        if not groups and window not in windows:
            raise NotInBrowser(f"There is no windowId {window}.", hint=alternatives_hint(map(str, windows), "windows"))
    return data_result({"groups": groups}, *problems)


@browser_tool(
    "browser_create_tab_group",
    "Create a tab group",
    "Puts tabs of one browser into a new group. Tabs of other windows move to the window of the first one.",
    params={"tabIds": _TAB_IDS, **_LOOK},
    output=_GROUP,
)
async def create_tab_group(call: BrowserCall) -> ToolResult:
    link, tabs = _chosen_tabs(call)
    made = await _run_on_tabs(call, link, tabs, "createGroup", call.given("title", "color"))
    return data_result(_describe(call, link, made))


@browser_tool(
    "browser_add_tabs_to_group",
    "Add tabs to a group",
    "Puts tabs into a group of the same browser. Tabs of other windows move to the group's window.",
    params={"groupId": _GROUP_ID, "tabIds": _TAB_IDS},
    output=_GROUP,
    idempotent=True,
)
async def add_tabs_to_group(call: BrowserCall) -> ToolResult:
    link, tabs = _chosen_tabs(call)
    number = call.args["groupId"]
    groups = await call.items("getGroups", "groups", link=link)
    if all(group["groupId"] != number for group in groups):
        raise NotInBrowser(
            f"The browser of these tabs ({link.browser_id}) has no groupId {number}.",
            hint=alternatives_hint((f"{group['groupId']} ({_label(group)})" for group in groups), "groups"),
        )
    changed = await _run_on_tabs(call, link, tabs, "addToGroup", {"groupId": number})
    return data_result(_describe(call, link, changed))


@browser_tool(
    "browser_remove_tabs_from_group",
    "Remove tabs from groups",
    "Removes tabs from their groups; the tabs stay open. An empty group disappears.",
    params={"tabIds": _TAB_IDS},
    output={"tabIds": list_of("integer"), "removed": "integer"},
    idempotent=True,
)
async def remove_tabs_from_group(call: BrowserCall) -> ToolResult:
    link, tabs = _chosen_tabs(call)
    groups = await call.items("getGroups", "groups", link=link)
    grouped = {number for group in groups for number in group.get("tabIds", [])}
    await _run_on_tabs(call, link, tabs, "removeFromGroup", {})
    removed = sum(tab.chrome_id in grouped for tab in tabs)
    return data_result({"tabIds": call.args["tabIds"], "removed": removed})


@browser_tool(
    "browser_update_tab_group",
    "Change a tab group",
    "Changes the title or colour of a tab group, or collapses or expands it.",
    params={"groupId": _GROUP_ID, **_LOOK, "collapsed?": "boolean", "browserId?": WHICH_BROWSER},
    output=_GROUP,
    idempotent=True,
)
async def update_tab_group(call: BrowserCall) -> ToolResult:
    wanted = call.given("title", "color", "collapsed")
    if not wanted:
        raise InvalidArguments("Nothing to change.", hint="Give title, color or collapsed.")
    link = (await call.find("getGroups", "groups", "groupId", _label)).link
    changed = await call.run(link, "updateGroup", {"groupId": call.args["groupId"], **wanted})
    return data_result(_describe(call, link, changed))


@browser_tool(
    "browser_list_tabs_in_group",
    "List a group's tabs",
    "Lists the tabs of one tab group.",
    params={"groupId": _GROUP_ID, "browserId?": WHICH_BROWSER},
    output={**_GROUP, "tabs": rows(TAB)},
    read_only=True,
)
async def list_tabs_in_group(call: BrowserCall) -> ToolResult:
    found = await call.find("getGroups", "groups", "groupId", _label)
    facts = _describe(call, found.link, found.what)
    tabs = [tab.describe() for tab_id in facts["tabIds"] if (tab := call.box.browsers.book.get(tab_id)) is not None]
    return data_result({**facts, "tabs": tabs})


def _describe(call: BrowserCall, link: ExtensionLink, group: dict[str, Any]) -> dict[str, Any]:
    tab_ids = call.hub_tab_ids(link, group.get("tabIds"))
    return {**pick_fields(group, _FIELDS), "browserId": link.browser_id, "tabIds": tab_ids}


def _label(group: dict[str, Any]) -> str:
    return str(group.get("title") or "no title")[:60]


def _chosen_tabs(call: BrowserCall) -> tuple[ExtensionLink, list[Tab]]:
    """The tabs named by `tabIds`, which must be of one browser, and the link to it."""
    refs = [call.box.browsers.tab(tab_id) for tab_id in call.args["tabIds"]]
    if len({ref.tab.browser_id for ref in refs}) > 1:
        listed = "; ".join(f"{ref.tab.tab_id} is in {ref.tab.browser_id}" for ref in refs[:_NAMED])
        raise InvalidArguments(
            "The tabs belong to different browsers, and a group is in one.", hint=f"Tab {listed}. Call once for each."
        )
    for ref in refs:
        call.box.choice.require_free(call.ctx.session, ref.tab.tab_id)
        call.ctx.visit(ref.tab.tab_id, ref.tab.site)
    return refs[0].link, [ref.tab for ref in refs]


async def _run_on_tabs(
    call: BrowserCall, link: ExtensionLink, tabs: list[Tab], command: str, params: dict[str, Any]
) -> dict[str, Any]:
    try:
        return await call.run(link, command, {**params, "tabIds": [tab.chrome_id for tab in tabs]})
    except TabNotFound:
        listed = ", ".join(str(tab.tab_id) for tab in tabs[:_NAMED])
        raise TabNotFound(
            f"One of the tabs {listed} is closed.", hint="browser_list_tabs shows what is open; nothing was changed."
        ) from None
