"""browser_upload_file: files of this machine into a file field, also one that a button opens."""

from __future__ import annotations

import asyncio
import base64
import mimetypes
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tabhub.browser.activity import Doing
from tabhub.browser.outcome import ALWAYS, GIVES, outcome
from tabhub.browser.spec import Call, Toolbox, hints, tool
from tabhub.browser.tab import Page
from tabhub.browser.target import TARGET, Element, find
from tabhub.browser.tools.click import strike
from tabhub.errors import CommandFailed
from tabhub.hub.tools import ToolResult

_MOST = 50
_CARRIED = 6 * 1024 * 1024
"""What fits into one message to the browser, as base64."""
_NOT_ALLOWED = "Not allowed"


@tool(
    "browser_upload_file",
    "Upload files",
    "Gives files of the folder for files to a file field, or to the button that opens it.",
    takes={
        **TARGET,
        "paths": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": _MOST},
    },
    required=("paths",),
    gives=GIVES,
    always=ALWAYS,
    annotations=hints(destructive=True),
)
async def upload_file(call: Call) -> ToolResult:
    """Give the files to the field."""
    return ToolResult.data(await upload(call.box, await call.page(), call.args))


async def upload(box: Toolbox, page: Page, args: Mapping[str, Any]) -> dict[str, Any]:
    """Give files to the field that the arguments name."""
    files = [await asyncio.to_thread(box.folder.existing, path) for path in args["paths"]]
    box.activity.wake(page)
    with box.activity.doing(page) as doing:
        element = await find(page, args, wait=box.browsers.limits.element_appear)
        field = await element.call("file_field")
        if isinstance(field, dict) and isinstance(field.get("ref"), str):
            _fits(element, field, len(files))
            meant = Element(page, element.frame, field["ref"], element.label)
            await _give(page, meant, files)
        else:
            await _through_chooser(box, page, doing, args, element, files)
        names = ", ".join(file.name for file in files[:5]) + (f" and {len(files) - 5} more" if len(files) > 5 else "")
        return await outcome(box, page, doing, f"Gave {names} to {element.label}")


def _fits(element: Element, field: Mapping[str, Any], count: int) -> None:
    if field.get("disabled"):
        raise CommandFailed(f"{element.label} is disabled.", hint="Do first what the page wants.")
    if count > 1 and not field.get("multiple"):
        raise CommandFailed(f"{element.label} takes one file, not {count}.", hint="Give one path.")


async def _give(page: Page, field: Element, files: list[Path]) -> None:
    handle = await field.object_id()
    try:
        named = {"files": [str(file) for file in files], "objectId": handle}
        await page.cdp("DOM.setFileInputFiles", named, field.frame.session_id)
    except CommandFailed as error:
        if _NOT_ALLOWED not in error.message:
            raise
        await field.call("take_files", {"files": await asyncio.to_thread(_contents, files)})
    finally:
        field.release()


def _contents(files: list[Path]) -> list[dict[str, str]]:
    if sum(file.stat().st_size for file in files) > _CARRIED:
        raise CommandFailed(
            f"The files are larger than {_CARRIED // 1024 // 1024} MB together, and the browser lets no extension name "
            "files of this machine.",
            hint='Switch on "Allow access to file URLs" in the details of the extension, then try again.',
        )
    return [
        {
            "name": file.name,
            "type": mimetypes.guess_type(file.name)[0] or "application/octet-stream",
            "data": base64.b64encode(file.read_bytes()).decode(),
        }
        for file in files
    ]


async def _through_chooser(
    box: Toolbox, page: Page, doing: Doing, args: Mapping[str, Any], element: Element, files: list[Path]
) -> None:
    """Click what opens the chooser, which is kept from the person's screen, and answer it."""
    await page.cdp("Page.setInterceptFileChooserDialog", {"enabled": True})
    try:
        await strike(box, page, doing, args)
        if not await doing.until(lambda: doing.chooser is not None, box.browsers.limits.action_settle):
            raise CommandFailed(
                f"{element.label} was clicked, but it opened no file chooser.",
                hint="Name the file field itself (input[type=file]), or do first what the page wants.",
            )
        chooser = doing.chooser or {}
        if len(files) > 1 and chooser.get("mode") != "selectMultiple":
            raise CommandFailed(f"{element.label} asks for one file, not {len(files)}.", hint="Give one path.")
        node = {"backendNodeId": chooser.get("backendNodeId")}
        session = element.frame.session_id
        try:
            await page.cdp("DOM.setFileInputFiles", {"files": [str(file) for file in files], **node}, session)
        except CommandFailed as error:
            if _NOT_ALLOWED not in error.message:
                raise
            await _hand_over(page, element, node, files)
    finally:
        page.ahead("Page.setInterceptFileChooserDialog", {"enabled": False})


async def _hand_over(page: Page, element: Element, node: Mapping[str, Any], files: list[Path]) -> None:
    """The bytes instead of the names, for a field that only the chooser named."""
    session, world = element.frame.session_id, await element.frame.world()
    wish = {**node, "executionContextId": world.context_id, "objectGroup": "tabhub chooser"}
    found = await page.cdp("DOM.resolveNode", wish, session)
    call = {
        "objectId": found["object"]["objectId"],
        "functionDeclaration": "function () { return tabhubKit.ref(this); }",
        "returnByValue": True,
    }
    ref = await page.cdp("Runtime.callFunctionOn", call, session)
    field = Element(page, element.frame, str(ref.get("result", {}).get("value")), element.label)
    await field.call("take_files", {"files": await asyncio.to_thread(_contents, files)})
    page.ahead("Runtime.releaseObjectGroup", {"objectGroup": "tabhub chooser"}, session)


TOOLS = (upload_file,)
