"""Download tools: start, list, status."""

from __future__ import annotations

import re
from typing import Any

from tabhub.browser.browser_choice import BROWSER_ID, BrowserCall, alternatives_hint, browser_tool, pick_fields
from tabhub.browser.driver.page import validate_url
from tabhub.browser.files.hidden_downloads import DELETED, NOT_DELETED
from tabhub.browser.schemas import boolean, integer, rows, text
from tabhub.browser.tool_spec import data_result
from tabhub.core.origins import origin_of
from tabhub.core.tools import ToolResult
from tabhub.errors import CommandFailed, InvalidArguments, NotInBrowser, PermissionDenied
from tabhub.links.extension import ExtensionLink

_DOWNLOAD = {
    "downloadId": "integer",
    **dict.fromkeys(("url?", "filename?"), "string"),
    "state": "string",
    **dict.fromkeys(("bytesReceived?", "totalBytes?"), "integer"),
    **dict.fromkeys(("mime?", "startTime?", "endTime?", "error?", "danger?"), "string"),
    **dict.fromkeys(("paused?", "deleted?"), "boolean"),
    "path?": text("Where browser_upload_file finds it."),
}
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


@browser_tool(
    "browser_download_file",
    "Download a file",
    "Downloads a URL with the browser and the person's logins into its downloads folder; nothing is overwritten. "
    "Returns when done, or after 3 seconds with the progress.",
    params={
        "url": text(least=1, most=2_000_000),
        "filename?": text(
            "Relative path in the downloads folder; default: the site's name for it.", least=1, most=_MAX_NAME
        ),
        "saveAs?": boolean("Let the person choose where (default false)."),
        "browserId?": BROWSER_ID,
    },
    output=_DOWNLOAD,
    open_world=True,
)
async def download_file(call: BrowserCall) -> ToolResult:
    url = validate_url(call.args["url"], files=call.box.file_urls)
    if url == "about:blank":
        raise InvalidArguments("url must be a file to download, not about:blank.")
    if "filename" in call.args:
        _validate_filename(call.args["filename"])
    call.ctx.visit(None, origin_of(url))
    link = call.link()
    try:
        wanted = {**call.given("url", "filename", "saveAs"), **({"cancelLate": True} if call.view.active else {})}
        answer = await call.run(link, "downloadFile", wanted)
    except CommandFailed as error:
        if error.message == _INVALID_FILENAME:
            raise CommandFailed(
                f"The browser rejects the file name {call.args.get('filename', '')!r}; nothing was downloaded.",
                hint="No part may begin or end with a dot or space, or be a reserved name (con, nul).",
            ) from None
        raise CommandFailed(error.message, hint="browser_list_downloads shows the browser's downloads.") from None
    if call.hides_row(answer):
        site = origin_of(str(answer.get("url"))) or str(origin_of(url))
        which = {"downloadId": answer["downloadId"]}
        raise _discarded(deleted=await call.box.hidden_downloads.delete(link, which, None, site))
    facts = _with_path(call, link, pick_fields(answer, _DOWNLOAD))
    if facts.get("state") == "interrupted":
        raise CommandFailed(
            f"The download of {url[:200]} failed: {facts.get('error', 'no reason given')}.",
            hint="Open the URL in a tab (browser_open_tab) to see the site's response.",
            data={"downloadId": facts.get("downloadId")},
        )
    return data_result(facts)


@browser_tool(
    "browser_list_downloads",
    "List downloads",
    "Lists the browser's downloads, newest first, filtered by URL or file name, or by state.",
    params={
        "query?": text(most=1000),
        "state?": {"enum": ["in_progress", "interrupted", "complete"]},
        "limit?": integer(least=1, most=500),
        "browserId?": BROWSER_ID,
    },
    output={"downloads": rows(_DOWNLOAD), "cut?": boolean("Whether there are more; raise limit.")},
    read_only=True,
)
async def list_downloads(call: BrowserCall) -> ToolResult:
    wanted = call.given("query", "state", "limit")
    found, link = await call.list_rows("getDownloads", wanted, "downloads", _DOWNLOAD), call.link()
    return data_result({**found, "downloads": [_with_path(call, link, row) for row in found["downloads"]]})


@browser_tool(
    "browser_get_download_status",
    "State of a download",
    "Reports one download: state, bytes, file name, error.",
    params={"downloadId": integer(least=0), "browserId?": BROWSER_ID},
    output=_DOWNLOAD,
    read_only=True,
)
async def get_download_status(call: BrowserCall) -> ToolResult:
    link, number = call.link(), call.args["downloadId"]
    try:
        found = await link.request("getDownload", {"downloadId": number})
        if call.hides_row(found):
            raise _hidden_download()
        return data_result(_with_path(call, link, pick_fields(found, _DOWNLOAD)))
    except CommandFailed as error:
        there = await call.items("getDownloads", "downloads", {"limit": 10}, link)
        if any(item.get("downloadId") == number for item in there):
            raise
        alternatives = (
            f"{item.get('downloadId')} ({str(item.get('filename') or item.get('url'))[-60:]})"
            for item in call.visible_rows(there)
        )
        raise NotInBrowser(error.message, hint=alternatives_hint(alternatives, "downloads")) from None


def _with_path(call: BrowserCall, link: ExtensionLink, row: dict[str, Any]) -> dict[str, Any]:
    """A download with the path by which tools read it, if they can."""
    path = call.box.downloads.path_of(link, row) if row.get("state") == "complete" else None
    return {**row, "path": path} if path else row


def _discarded(*, deleted: bool) -> PermissionDenied:
    error = PermissionDenied(DELETED if deleted else NOT_DELETED, hint="Continue without it.")
    error.outcome = "failed"
    return error


def _hidden_download() -> PermissionDenied:
    return PermissionDenied(
        "That download is from a site that the person keeps agents off.",
        hint="browser_list_downloads lists the others.",
    )
