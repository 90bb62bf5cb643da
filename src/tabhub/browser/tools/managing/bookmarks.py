"""The bookmark tools: search, add, list."""

from __future__ import annotations

import re
from typing import Any

from tabhub.browser.browser_choice import (
    BROWSER_ID,
    MORE,
    do,
    items,
    link_for,
    listing,
    look,
    row,
    rows,
    schema,
    wishes,
)
from tabhub.browser.driver.page import checked_url
from tabhub.browser.tool_spec import Call, hints, tool
from tabhub.core.tools import ToolResult
from tabhub.errors import CommandFailed, NotInBrowser
from tabhub.links.extension import ExtensionLink

_FIELDS = {"id": "string", "title": "string", "url": "string", "parentId": "string", "dateAdded": "string"}
_FOLDER = re.compile(r"find|id is invalid|root|not a folder|Parent", re.IGNORECASE)
"""What a browser says of a folder that is none."""
_NODE = schema(_FIELDS, ("id", "title"))
_PARENT = {"type": "string", "minLength": 1, "maxLength": 200, "description": "The id of a folder."}


@tool(
    "browser_search_bookmarks",
    "Search bookmarks",
    "Finds bookmarks by words of title or address.",
    takes={"query": {"type": "string", "minLength": 1, "maxLength": 1000}, "browserId": BROWSER_ID},
    required=("query",),
    gives={"bookmarks": {"type": "array", "items": _NODE}, "more": MORE},
    always=("bookmarks",),
    annotations=hints(read_only=True, open_world=False),
    on_tab=False,
)
async def search_bookmarks(call: Call) -> ToolResult:
    """Folders are found, too: they have no url."""
    answer = await look(link_for(call), "searchBookmarks", wishes(call, "query"))
    return ToolResult.data({"bookmarks": rows(answer, "bookmarks", _FIELDS), **row(answer, {"more": "integer"})})


@tool(
    "browser_create_bookmark",
    "Add a bookmark",
    "Adds a bookmark to a folder; without `parentId`, to the browser's folder for other bookmarks.",
    takes={
        "title": {"type": "string", "maxLength": 1000},
        "url": {"type": "string", "minLength": 1, "maxLength": 10_000},
        "parentId": _PARENT,
        "browserId": BROWSER_ID,
    },
    required=("title", "url"),
    gives=_NODE["properties"],
    always=_NODE["required"],
    annotations=hints(open_world=False),
    on_tab=False,
)
async def create_bookmark(call: Call) -> ToolResult:
    """Bookmarks that are scripts are not made."""
    checked_url(call.args["url"], files=call.box.file_urls)
    link = link_for(call)
    try:
        made = await do(call, link, "createBookmark", wishes(call, "title", "url", "parentId"))
    except CommandFailed as error:
        raise await _no_folder(call, link, error) from None
    return ToolResult.data(row(made, _FIELDS))


@tool(
    "browser_list_bookmark_tree",
    "List bookmarks",
    "Lists bookmarks and folders as a tree, all of them or below one folder; at most 2,000. `more` counts what is "
    "left out.",
    takes={
        "parentId": _PARENT,
        "maxDepth": {"type": "integer", "minimum": 1, "maximum": 20, "description": "Levels of folders (default 20)."},
        "browserId": BROWSER_ID,
    },
    gives={"roots": {"type": "array", "items": {"type": "object"}}},
    always=("roots",),
    annotations=hints(read_only=True, open_world=False),
    on_tab=False,
)
async def list_bookmark_tree(call: Call) -> ToolResult:
    """The tree as the browser keeps it."""
    link = link_for(call)
    try:
        answer = await look(link, "getBookmarkTree", wishes(call, "parentId", "maxDepth"))
    except CommandFailed as error:
        raise await _no_folder(call, link, error) from None
    return ToolResult.data({"roots": [_branch(node) for node in items(answer, "roots")]})


def _branch(node: dict[str, Any]) -> dict[str, Any]:
    """A node and what is below it; how deep that is, the link has seen to."""
    facts = row(node, {**_FIELDS, "more": "integer"})
    if "children" in node:
        facts["children"] = [_branch(child) for child in items(node, "children")]
    return facts


async def _no_folder(call: Call, link: ExtensionLink, error: CommandFailed) -> CommandFailed:
    """The error for a folder that is not there or takes nothing, with those that are."""
    if "parentId" not in call.args or not _FOLDER.search(error.message):
        return error
    roots = items(await look(link, "getBookmarkTree", {"maxDepth": 2}), "roots")
    folders = [node for root in roots for node in items(root, "children") if "children" in node]
    words = [f"{node.get('id')} ({str(node.get('title'))[:60]})" for node in folders]
    return NotInBrowser(
        f"The folder {call.args['parentId']!r} cannot be used ({error.message})", hint=listing(words, "folders")
    )


TOOLS = (search_bookmarks, create_bookmark, list_bookmark_tree)
