"""Bookmark tools: search, add, list."""

from __future__ import annotations

import re
from typing import Any

from tabhub.browser.browser_choice import BROWSER_ID, MORE, BrowserCall, alternatives_hint, browser_tool, pick_fields
from tabhub.browser.driver.page import validate_url
from tabhub.browser.schemas import integer, list_of, rows, text
from tabhub.browser.tool_spec import data_result
from tabhub.core.tools import ToolResult
from tabhub.errors import CommandFailed, NotInBrowser
from tabhub.links.extension import ExtensionLink

_BOOKMARK = {"id": "string", "title": "string", "url?": "string", "parentId?": "string", "dateAdded?": "string"}
_FOLDER_ERROR = re.compile(r"find|id is invalid|root|not a folder|Parent", re.IGNORECASE)
"""Browser messages about an invalid folder."""
_PARENT = text("The id of a folder.", least=1, most=200)


@browser_tool(
    "browser_search_bookmarks",
    "Search bookmarks",
    "Searches bookmarks and folders by title or URL.",
    params={"query": text(least=1, most=1000), "browserId?": BROWSER_ID},
    output={"bookmarks": rows(_BOOKMARK), "more?": MORE},
    read_only=True,
)
async def search_bookmarks(call: BrowserCall) -> ToolResult:
    return data_result(await call.list_rows("searchBookmarks", call.given("query"), "bookmarks", _BOOKMARK))


@browser_tool(
    "browser_create_bookmark",
    "Add a bookmark",
    "Adds a bookmark to a folder; default: the folder for other bookmarks.",
    params={
        "title": text(most=1000),
        "url": text(least=1, most=10_000),
        "parentId?": _PARENT,
        "browserId?": BROWSER_ID,
    },
    output=_BOOKMARK,
)
async def create_bookmark(call: BrowserCall) -> ToolResult:
    validate_url(call.args["url"], files=call.box.file_urls)
    link = call.link()
    try:
        made = await call.run(link, "createBookmark", call.given("title", "url", "parentId"))
    except CommandFailed as error:
        raise await _folder_error(call, link, error) from None
    return data_result(pick_fields(made, _BOOKMARK))


@browser_tool(
    "browser_list_bookmark_tree",
    "List bookmarks",
    "Lists bookmarks and folders as a tree, all of them or below one folder; at most 2,000. `more` counts what is "
    "left out.",
    params={
        "parentId?": _PARENT,
        "maxDepth?": integer("Levels of folders (default 20).", least=1, most=20),
        "browserId?": BROWSER_ID,
    },
    output={"roots": list_of("object")},
    read_only=True,
)
async def list_bookmark_tree(call: BrowserCall) -> ToolResult:
    link = call.link()
    try:
        roots = await call.items("getBookmarkTree", "roots", call.given("parentId", "maxDepth"), link)
    except CommandFailed as error:
        raise await _folder_error(call, link, error) from None
    return data_result({"roots": [_tree_node(call, root) for root in roots]})


def _tree_node(call: BrowserCall, node: dict[str, Any]) -> dict[str, Any]:
    """A node and its children; the link bounds the depth."""
    facts = pick_fields(node, {**_BOOKMARK, "more": "integer"})
    if node.get("children") is not None:
        facts["children"] = [_tree_node(call, child) for child in call.visible_rows(node["children"])]
    return facts


async def _folder_error(call: BrowserCall, link: ExtensionLink, error: CommandFailed) -> CommandFailed:
    if "parentId" not in call.args or not _FOLDER_ERROR.search(error.message):
        return error
    roots = await call.items("getBookmarkTree", "roots", {"maxDepth": 2}, link)
    folders = [node for root in roots for node in root.get("children") or () if "children" in node]
    alternatives = (f"{node['id']} ({str(node.get('title'))[:60]})" for node in folders)
    return NotInBrowser(
        f"The folder {call.args['parentId']!r} cannot be used ({error.message})",
        hint=alternatives_hint(alternatives, "folders"),
    )
