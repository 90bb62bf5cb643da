"""browser_handle_dialog: answers alert, confirm, prompt and beforeunload dialogs."""

from __future__ import annotations

from typing import Any

from tabhub.browser.actions import OUTPUT
from tabhub.browser.tool_spec import Call, data_result, tool
from tabhub.core.origins import origin_of
from tabhub.core.tools import ToolResult
from tabhub.errors import CommandFailed


@tool(
    "browser_handle_dialog",
    "Answer a dialog",
    "Answers the alert, confirm, prompt or beforeunload dialog of a tab.",
    params={"action": {"enum": ["accept", "dismiss"]}, "promptText?": "string"},
    output=OUTPUT,
    destructive=True,
    tells_changes=True,
)
async def handle_dialog(call: Call) -> ToolResult:
    box, page, args = call.box, await call.page(), call.args
    accept, dialog = args["action"] == "accept", page.dialog
    params: dict[str, Any] = {"accept": accept}
    if "promptText" in args:
        params["promptText"] = args["promptText"]
    elif accept and dialog is not None and dialog.kind == "prompt":
        # Accepting a prompt means its default text; without promptText the browser would answer with an empty one.
        params["promptText"] = dialog.default
    if dialog is not None and (site := origin_of(dialog.url)) is not None:
        await page.require_frame(dialog.frame_id or None, [site])
    with box.activity.track_action(page) as action:
        try:
            if dialog is None:
                # The debugger may have attached after the dialog opened.
                await page.cdp("Page.handleJavaScriptDialog", params)
            else:
                command = {"method": "Page.handleJavaScriptDialog", "params": params}
                await action.tolerate_navigation(page.command("forwardCDPCommand", command))
        except CommandFailed as error:
            if "No dialog is showing" not in error.message:
                raise
            raise CommandFailed(
                f"No dialog is open in tab {page.tab_id} ({page.tab.url[:200]}).",
                hint="It was already answered, or it is part of the page: take a browser_snapshot.",
            ) from None
        if dialog is page.state.dialog:
            page.state.dialog = None  # the browser's event may arrive only after the reply to the command
        await action.round_trip()  # the script behind the dialog continues and may open another
        asked = f'{dialog.kind} "{dialog.message[:100]}"' if dialog else "dialog"
        note = None
        if dialog is not None and "promptText" in args and dialog.kind != "prompt":
            note = f"A {dialog.kind} takes no text; promptText was not used."
        return data_result(await action.result(f"{'Accepted' if accept else 'Dismissed'} the {asked}", note=note))
