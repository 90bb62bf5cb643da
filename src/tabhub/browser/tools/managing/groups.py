"""Tab group tools: list, create, add and remove tabs, change."""

from __future__ import annotations

from typing import Any

from tabhub.browser.browser_choice import (
    TAB_IDS,
    WHICH_BROWSER,
    Found,
    alternatives_hint,
    chosen_tabs,
    find_by_number,
    given_args,
    hub_tab_ids,
    list_items,
    pick_fields,
    query_all_browsers,
    query_browser,
    run_command,
    run_on_tabs,
)
from tabhub.browser.tool_spec import TAB, Call, hints, object_schema, tool, with_note
from tabhub.core.tools import ToolResult
from tabhub.errors import InvalidArguments, NotInBrowser
from tabhub.links.extension import ExtensionLink

_COLORS = ["grey", "blue", "red", "yellow", "green", "pink", "purple", "cyan", "orange"]
_FIELDS = {"groupId": "integer", "title": "string", "color": "string", "collapsed": "boolean", "windowId": "integer"}
_GROUP = object_schema(
    {**_FIELDS, "browserId": "string", "tabIds": {"type": "array", "items": {"type": "integer"}}},
    ("groupId", "browserId", "tabIds"),
)
_GROUP_ID = {"type": "integer", "minimum": 0}
_TITLE = {"type": "string", "maxLength": 200}
_COLOR = {"enum": _COLORS}


def _facts(call: Call, link: ExtensionLink, group: dict[str, Any]) -> dict[str, Any]:
    tab_ids = hub_tab_ids(call, link, group.get("tabIds"))
    return {**pick_fields(group, _FIELDS), "browserId": link.browser_id, "tabIds": tab_ids}


async def _find(call: Call) -> Found:
    return await find_by_number(call, "getGroups", "groups", "groupId", call.args["groupId"], _label)


def _label(group: dict[str, Any]) -> str:
    return str(group.get("title") or "no title")[:60]


@tool(
    "browser_list_tab_groups",
    "List tab groups",
    "Lists the tab groups of all browsers with their tabs, or those of one window.",
    params={"windowId": {"type": "integer", "minimum": 0, "description": "Only groups of this window."}},
    output={"groups": {"type": "array", "items": _GROUP}, "note": "string"},
    annotations=hints(read_only=True, open_world=False),
    on_tab=False,
)
async def list_tab_groups(call: Call) -> ToolResult:
    answers, problems = await query_all_browsers(call, "getGroups")
    groups = [_facts(call, answer.link, group) for answer in answers for group in list_items(answer.what, "groups")]
    if (window := call.args.get("windowId")) is not None:
        groups = [group for group in groups if group.get("windowId") == window]
        windows = sorted({tab.window_id for tab in call.box.browsers.book})
        if not groups and window not in windows:
            raise NotInBrowser(
                f"There is no windowId {window}.", hint=alternatives_hint([str(n) for n in windows], "windows")
            )
    return ToolResult.data(with_note({"groups": groups}, *problems))


@tool(
    "browser_create_tab_group",
    "Create a tab group",
    "Puts tabs of one browser into a new group. Tabs of other windows move to the window of the first one.",
    params={"tabIds": TAB_IDS, "title": _TITLE, "color": _COLOR},
    required=("tabIds",),
    output=_GROUP["properties"],
    output_required=_GROUP["required"],
    annotations=hints(open_world=False),
    on_tab=False,
)
async def create_tab_group(call: Call) -> ToolResult:
    link, tabs = chosen_tabs(call)
    made = await run_on_tabs(call, link, tabs, "createGroup", given_args(call, "title", "color"))
    return ToolResult.data(_facts(call, link, made))


@tool(
    "browser_add_tabs_to_group",
    "Add tabs to a group",
    "Puts tabs into a group of the same browser. Tabs of other windows move to the group's window.",
    params={"groupId": _GROUP_ID, "tabIds": TAB_IDS},
    required=("groupId", "tabIds"),
    output=_GROUP["properties"],
    output_required=_GROUP["required"],
    annotations=hints(idempotent=True, open_world=False),
    on_tab=False,
)
async def add_tabs_to_group(call: Call) -> ToolResult:
    link, tabs = chosen_tabs(call)
    number = call.args["groupId"]
    groups = list_items(await query_browser(link, "getGroups"), "groups")
    if not any(group.get("groupId") == number for group in groups):
        alternatives = [f"{group.get('groupId')} ({_label(group)})" for group in groups]
        raise NotInBrowser(
            f"The browser of these tabs ({link.browser_id}) has no groupId {number}.",
            hint=alternatives_hint(alternatives, "groups"),
        )
    grown = await run_on_tabs(call, link, tabs, "addToGroup", {"groupId": number})
    return ToolResult.data(_facts(call, link, grown))


@tool(
    "browser_remove_tabs_from_group",
    "Remove tabs from groups",
    "Removes tabs from their groups; the tabs stay open. An empty group disappears.",
    params={"tabIds": TAB_IDS},
    required=("tabIds",),
    output={"tabIds": {"type": "array", "items": {"type": "integer"}}, "removed": "integer"},
    annotations=hints(idempotent=True, open_world=False),
    on_tab=False,
)
async def remove_tabs_from_group(call: Call) -> ToolResult:
    link, tabs = chosen_tabs(call)
    grouped = {
        number
        for group in list_items(await query_browser(link, "getGroups"), "groups")
        for number in group.get("tabIds", [])
    }
    await run_on_tabs(call, link, tabs, "removeFromGroup", {})
    removed = sum(tab.chrome_id in grouped for tab in tabs)
    return ToolResult.data({"tabIds": call.args["tabIds"], "removed": removed})


@tool(
    "browser_update_tab_group",
    "Change a tab group",
    "Changes the title or colour of a tab group, or collapses or expands it.",
    params={"groupId": _GROUP_ID, "title": _TITLE, "color": _COLOR, "collapsed": "boolean", "browserId": WHICH_BROWSER},
    required=("groupId",),
    output=_GROUP["properties"],
    output_required=_GROUP["required"],
    annotations=hints(idempotent=True, open_world=False),
    on_tab=False,
)
async def update_tab_group(call: Call) -> ToolResult:
    wanted = given_args(call, "title", "color", "collapsed")
    if not wanted:
        raise InvalidArguments("Nothing to change.", hint="Give title, color or collapsed.")
    found = await _find(call)
    changed = await run_command(call, found.link, "updateGroup", {"groupId": call.args["groupId"], **wanted})
    return ToolResult.data(_facts(call, found.link, changed))


@tool(
    "browser_list_tabs_in_group",
    "List a group's tabs",
    "Lists the tabs of one tab group.",
    params={"groupId": _GROUP_ID, "browserId": WHICH_BROWSER},
    required=("groupId",),
    output={**_GROUP["properties"], "tabs": {"type": "array", "items": TAB}},
    output_required=(*_GROUP["required"], "tabs"),
    annotations=hints(read_only=True, open_world=False),
    on_tab=False,
)
async def list_tabs_in_group(call: Call) -> ToolResult:
    found = await _find(call)
    facts = _facts(call, found.link, found.what)
    tabs = [call.box.browsers.tab(tab_id).tab.describe() for tab_id in facts["tabIds"]]
    return ToolResult.data({**facts, "tabs": tabs})


TOOLS = (
    list_tab_groups,
    create_tab_group,
    add_tabs_to_group,
    remove_tabs_from_group,
    update_tab_group,
    list_tabs_in_group,
)
