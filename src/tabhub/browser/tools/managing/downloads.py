"""Download tools: start, list, status."""

from __future__ import annotations

import re

from tabhub.browser.browser_choice import (
    BROWSER_ID,
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
from tabhub.core.tabs import origin_of
from tabhub.core.tools import ToolResult
from tabhub.errors import CommandFailed, InvalidArguments, NotInBrowser

_FIELDS = {
    "downloadId": "integer",
    "url": "string",
    "filename": "string",
    "state": "string",
    "bytesReceived": "integer",
    "totalBytes": "integer",
    "mime": "string",
    "startTime": "string",
    "endTime": "string",
    "error": "string",
    "danger": "string",
    "paused": "boolean",
    "deleted": "boolean",
}
_DOWNLOAD = object_schema(_FIELDS, ("downloadId", "state"))
_MAX_NAME = 200
_MAX_PART_BYTES = 230
"""Bytes; file systems take 255, and the browser adds to the name while it loads."""
_INVALID_FILENAME = "Invalid filename"
_FORBIDDEN_CHARACTERS = re.compile(r'[\x00-\x1f\x7f\\:*?"<>|]')


def _validate_filename(given: str) -> None:
    """Require a path below the browser's downloads folder."""
    parts = given.split("/")
    if given.startswith(("/", "~")) or ".." in parts:
        raise InvalidArguments(
            f"filename {given!r} is outside the browser's downloads folder.",
            hint="Give a relative path such as reports/june.pdf.",
        )
    if _FORBIDDEN_CHARACTERS.search(given) or any(part.strip(" .") == "" for part in parts):
        raise InvalidArguments(f'filename {given!r} is not a plain path: no \\ : * ? " < > | and no empty parts.')
    if any(len(part.encode()) > _MAX_PART_BYTES for part in parts):
        raise InvalidArguments(f"filename is too long: a part of it has more than {_MAX_PART_BYTES} bytes in UTF-8.")


@tool(
    "browser_download_file",
    "Download a file",
    "Downloads a URL with the browser and the person's logins into its downloads folder; nothing is overwritten. "
    "Returns when done, or after 3 seconds with the progress.",
    params={
        "url": {"type": "string", "minLength": 1, "maxLength": 2_000_000},
        "filename": {
            "type": "string",
            "minLength": 1,
            "maxLength": _MAX_NAME,
            "description": "Relative path in the downloads folder; default: the site's name for it.",
        },
        "saveAs": {"type": "boolean", "description": "Let the person choose where (default false)."},
        "browserId": BROWSER_ID,
    },
    required=("url",),
    output=_DOWNLOAD["properties"],
    output_required=_DOWNLOAD["required"],
    on_tab=False,
)
async def download_file(call: Call) -> ToolResult:
    url = validate_url(call.args["url"], files=call.box.file_urls)
    if url == "about:blank":
        raise InvalidArguments("url must be a file to download, not about:blank.")
    if "filename" in call.args:
        _validate_filename(call.args["filename"])
    call.ctx.touch(None, origin_of(url))
    try:
        answer = await run_command(
            call, choose_link(call), "downloadFile", given_args(call, "url", "filename", "saveAs")
        )
    except CommandFailed as error:
        if error.message == _INVALID_FILENAME:
            raise CommandFailed(
                f"The browser rejects the file name {call.args.get('filename', '')!r}; nothing was downloaded.",
                hint="No part may begin or end with a dot or space, or be a reserved name (con, nul).",
            ) from None
        raise CommandFailed(error.message, hint="browser_list_downloads shows the browser's downloads.") from None
    facts = pick_fields(answer, _FIELDS)
    if facts.get("state") == "interrupted":
        raise CommandFailed(
            f"The download of {url[:200]} failed: {facts.get('error', 'no reason given')}.",
            hint="Open the URL in a tab (browser_open_tab) to see the site's response.",
            data={"downloadId": facts.get("downloadId")},
        )
    return ToolResult.data(facts)


@tool(
    "browser_list_downloads",
    "List downloads",
    "Lists the browser's downloads, newest first, filtered by URL or file name, or by state.",
    params={
        "query": {"type": "string", "maxLength": 1000},
        "state": {"enum": ["in_progress", "interrupted", "complete"]},
        "limit": {"type": "integer", "minimum": 1, "maximum": 500, "description": "Default 50."},
        "browserId": BROWSER_ID,
    },
    output={
        "downloads": {"type": "array", "items": _DOWNLOAD},
        "cut": {"type": "boolean", "description": "Whether there are more; raise limit."},
    },
    output_required=("downloads",),
    annotations=hints(read_only=True, open_world=False),
    on_tab=False,
)
async def list_downloads(call: Call) -> ToolResult:
    params = given_args(call, "query", "state", "limit")
    return ToolResult.data(await list_from_browser(call, "getDownloads", params, "downloads", _FIELDS))


@tool(
    "browser_get_download_status",
    "State of a download",
    "Reports one download: state, bytes, file name, error.",
    params={"downloadId": {"type": "integer", "minimum": 0}, "browserId": BROWSER_ID},
    required=("downloadId",),
    output=_DOWNLOAD["properties"],
    output_required=_DOWNLOAD["required"],
    annotations=hints(read_only=True, open_world=False),
    on_tab=False,
)
async def get_download_status(call: Call) -> ToolResult:
    link, number = choose_link(call), call.args["downloadId"]
    try:
        return ToolResult.data(pick_fields(await query_browser(link, "getDownload", {"downloadId": number}), _FIELDS))
    except CommandFailed as error:
        there = list_items(await query_browser(link, "getDownloads", {"limit": 10}), "downloads")
        if any(item.get("downloadId") == number for item in there):
            raise
        alternatives = [
            f"{item.get('downloadId')} ({str(item.get('filename') or item.get('url'))[-60:]})" for item in there
        ]
        raise NotInBrowser(error.message, hint=alternatives_hint(alternatives, "downloads")) from None


TOOLS = (download_file, list_downloads, get_download_status)
