"""Bookmark tools: search, add, list."""

from __future__ import annotations

import re
from typing import Any

from tabhub.browser.browser_choice import (
    BROWSER_ID,
    MORE,
    alternatives_hint,
    choose_link,
    given_args,
    list_from_browser,
    list_items,
    pick_fields,
    query_browser,
    run_command,
)
from tabhub.browser.driver.page import validate_url
from tabhub.browser.tool_spec import Call, hints, object_schema, tool
from tabhub.core.tools import ToolResult
from tabhub.errors import CommandFailed, NotInBrowser
from tabhub.links.extension import ExtensionLink

_FIELDS = {"id": "string", "title": "string", "url": "string", "parentId": "string", "dateAdded": "string"}
_FOLDER_ERROR = re.compile(r"find|id is invalid|root|not a folder|Parent", re.IGNORECASE)
"""Browser messages about an invalid folder."""
_NODE = object_schema(_FIELDS, ("id", "title"))
_PARENT = {"type": "string", "minLength": 1, "maxLength": 200, "description": "The id of a folder."}


@tool(
    "browser_search_bookmarks",
    "Search bookmarks",
    "Searches bookmarks and folders by title or URL.",
    params={"query": {"type": "string", "minLength": 1, "maxLength": 1000}, "browserId": BROWSER_ID},
    required=("query",),
    output={"bookmarks": {"type": "array", "items": _NODE}, "more": MORE},
    output_required=("bookmarks",),
    annotations=hints(read_only=True, open_world=False),
    on_tab=False,
)
async def search_bookmarks(call: Call) -> ToolResult:
    params = given_args(call, "query")
    return ToolResult.data(await list_from_browser(call, "searchBookmarks", params, "bookmarks", _FIELDS))


@tool(
    "browser_create_bookmark",
    "Add a bookmark",
    "Adds a bookmark to a folder; default: the folder for other bookmarks.",
    params={
        "title": {"type": "string", "maxLength": 1000},
        "url": {"type": "string", "minLength": 1, "maxLength": 10_000},
        "parentId": _PARENT,
        "browserId": BROWSER_ID,
    },
    required=("title", "url"),
    output=_NODE["properties"],
    output_required=_NODE["required"],
    annotations=hints(open_world=False),
    on_tab=False,
)
async def create_bookmark(call: Call) -> ToolResult:
    validate_url(call.args["url"], files=call.box.file_urls)
    link = choose_link(call)
    try:
        made = await run_command(call, link, "createBookmark", given_args(call, "title", "url", "parentId"))
    except CommandFailed as error:
        raise await _folder_error(call, link, error) from None
    return ToolResult.data(pick_fields(made, _FIELDS))


@tool(
    "browser_list_bookmark_tree",
    "List bookmarks",
    "Lists bookmarks and folders as a tree, all of them or below one folder; at most 2,000. `more` counts what is "
    "left out.",
    params={
        "parentId": _PARENT,
        "maxDepth": {"type": "integer", "minimum": 1, "maximum": 20, "description": "Levels of folders (default 20)."},
        "browserId": BROWSER_ID,
    },
    output={"roots": {"type": "array", "items": {"type": "object"}}},
    annotations=hints(read_only=True, open_world=False),
    on_tab=False,
)
async def list_bookmark_tree(call: Call) -> ToolResult:
    link = choose_link(call)
    try:
        answer = await query_browser(link, "getBookmarkTree", given_args(call, "parentId", "maxDepth"))
    except CommandFailed as error:
        raise await _folder_error(call, link, error) from None
    return ToolResult.data({"roots": [_tree_node(node) for node in list_items(answer, "roots")]})


def _tree_node(node: dict[str, Any]) -> dict[str, Any]:
    """A node and its children; the link bounds the depth."""
    facts = pick_fields(node, {**_FIELDS, "more": "integer"})
    if "children" in node:
        facts["children"] = [_tree_node(child) for child in list_items(node, "children")]
    return facts


async def _folder_error(call: Call, link: ExtensionLink, error: CommandFailed) -> CommandFailed:
    """The error for an invalid folder, with the existing ones as a hint."""
    if "parentId" not in call.args or not _FOLDER_ERROR.search(error.message):
        return error
    roots = list_items(await query_browser(link, "getBookmarkTree", {"maxDepth": 2}), "roots")
    folders = [node for root in roots for node in list_items(root, "children") if "children" in node]
    alternatives = [f"{node.get('id')} ({str(node.get('title'))[:60]})" for node in folders]
    return NotInBrowser(
        f"The folder {call.args['parentId']!r} cannot be used ({error.message})",
        hint=alternatives_hint(alternatives, "folders"),
    )


TOOLS = (search_bookmarks, create_bookmark, list_bookmark_tree)
