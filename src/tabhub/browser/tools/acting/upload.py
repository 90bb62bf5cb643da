"""browser_upload_file: local files into a file field, through a button that opens one, or dropped on an element."""

from __future__ import annotations

import asyncio
import base64
import mimetypes
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tabhub.browser.actions import CHOOSER, OUTPUT, TrackedAction
from tabhub.browser.driver.cdp_values import parse_object
from tabhub.browser.driver.frames import script_value
from tabhub.browser.driver.page import Page
from tabhub.browser.driver.worlds import source
from tabhub.browser.elements.element import TARGET, Element, find_element
from tabhub.browser.tool_spec import Call, data_result, tool
from tabhub.browser.tools.acting.click import click_until_it_lands
from tabhub.core.tools import ToolResult
from tabhub.errors import CommandFailed

_MAX_FILES = 50
_MAX_CONTENT = 6 * 1024 * 1024
"""Bytes; what fits into one message to the browser as base64."""
_NOT_ALLOWED = "Not allowed"
_GROUP = "tabhub chooser"


@tool(
    "browser_upload_file",
    "Upload files",
    "Uploads files of the files folder to a file field, its button, or a drop zone.",
    params={**TARGET, "paths": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": _MAX_FILES}},
    output=OUTPUT,
    destructive=True,
    tells_changes=True,
)
async def upload_file(call: Call) -> ToolResult:
    box, page, args = call.box, await call.page(), call.args
    files = [await asyncio.to_thread(box.folder.input_path, path) for path in args["paths"]]
    with box.activity.track_action(page) as action:
        element = await find_element(page, args, wait=box.browsers.limits.element_appear)
        field = parse_object(await element.call("file_field"))
        if "ref" in field:
            if field.get("disabled"):
                raise CommandFailed(f"{element.label} is disabled.", hint="Complete what the page requires first.")
            _check_count(element, files, several=bool(field.get("multiple")))
            page.state.worlds.acted.add((element.frame.session_id, element.frame.frame_id))
            inner = Element(page, element.frame, field["ref"], element.label)
            async with inner.object_id() as handle:
                if not await _set_files_by_path(page, {"objectId": handle}, element.frame.session_id, files):
                    await inner.call("set_files", {"files": await asyncio.to_thread(_read_files, page, files)})
            dropped = False
        else:
            dropped = not await _upload_through_chooser(action, args, element, files)
        names = ", ".join(file.name for file in files[:5]) + (f" and {len(files) - 5} more" if len(files) > 5 else "")
        did = f"Dropped {names} on {element.label}" if dropped else f"Gave {names} to {element.label}"
        return data_result(await action.result(did))


def _check_count(element: Element, files: list[Path], *, several: bool) -> None:
    if len(files) > 1 and not several:
        raise CommandFailed(f"{element.label} accepts one file, not {len(files)}.", hint="Give one path.")


async def _set_files_by_path(page: Page, node: Mapping[str, Any], session: str | None, files: list[Path]) -> bool:
    """False if their content must be sent instead: a browser on another machine cannot read local paths."""
    if not page.link.local:
        return False
    try:
        await page.cdp("DOM.setFileInputFiles", {"files": [str(file) for file in files], **node}, session)
    except CommandFailed as error:
        if _NOT_ALLOWED not in error.message:
            raise
        return False
    return True


def _read_files(page: Page, files: list[Path]) -> list[dict[str, str]]:
    if sum(file.stat().st_size for file in files) > _MAX_CONTENT:
        raise CommandFailed(
            f"The files are larger than {_MAX_CONTENT // 1024 // 1024} MB together, the maximum for "
            f"{'this browser' if page.link.local else 'a browser on another machine'}. None was uploaded.",
            hint='Enable "Allow access to file URLs" in the extension details, then retry.'
            if page.link.local
            else "Give smaller files, or fewer at a time.",
        )
    return [
        {
            "name": file.name,
            "type": mimetypes.guess_type(file.name)[0] or "",
            "data": base64.b64encode(file.read_bytes()).decode(),
        }
        for file in files
    ]


async def _upload_through_chooser(
    action: TrackedAction, args: Mapping[str, Any], element: Element, files: list[Path]
) -> bool:
    """Click what opens a file chooser, and set its files; False if none opened and they were dropped on the element."""
    page = action.page
    await page.cdp(CHOOSER, {"enabled": True})
    try:
        await click_until_it_lands(action, args)
        if not await action.wait_until(lambda: action.chooser is not None, page.browsers.limits.action_settle):
            await _drop_files(page, element, files)
            return False
        chooser, action.chooser = action.chooser or {}, None
        _check_count(element, files, several=chooser.get("mode") == "selectMultiple")
        node = {"backendNodeId": chooser.get("backendNodeId")}
        if not await _set_files_by_path(page, node, element.frame.session_id, files):
            await _set_files_by_content(page, element, node, files)
        return True
    finally:
        page.cdp_nowait(CHOOSER, {"enabled": False})


async def _drop_files(page: Page, element: Element, files: list[Path]) -> None:
    result = await element.call("drop_files", {"files": await asyncio.to_thread(_read_files, page, files)})
    if not parse_object(result).get("accepted"):
        raise CommandFailed(
            f"{element.label} opened no file chooser when clicked and does not accept dropped files.",
            hint="Target the file field itself (input[type=file]), or complete what the page requires first.",
        )


async def _set_files_by_content(page: Page, element: Element, node: Mapping[str, Any], files: list[Path]) -> None:
    """Send file contents to a field known only from the chooser event; it is often not in the document."""
    session, world = element.frame.session_id, await element.frame.world()
    contents = await asyncio.to_thread(_read_files, page, files)
    query = {**node, "executionContextId": world.context_id, "objectGroup": _GROUP}
    found = await page.cdp("DOM.resolveNode", query, session)
    call = {
        "objectId": found["object"]["objectId"],
        "functionDeclaration": source("set_files"),
        "arguments": [{"value": {"files": contents}}],
        "returnByValue": True,
    }
    script_value(page, await page.cdp("Runtime.callFunctionOn", call, session))
    page.cdp_nowait("Runtime.releaseObjectGroup", {"objectGroup": _GROUP}, session)
