"""What came of an action, told cheaply: another page, another tab, a dialog, a download.

Owns the fields every acting tool answers with, and which ends of a page are an outcome of the action rather than a
failure. It looks at what the browser told by itself; it asks nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from tabhub.browser.activity import TrackedAction
from tabhub.browser.driver.page import Page
from tabhub.browser.tool_spec import Toolbox
from tabhub.core.tools import ToolResult
from tabhub.errors import DialogOpen, PageNavigated, TabFailed

OUTPUT: dict[str, Any] = {"did": {"type": "string"}}
"""Only what is always there is declared: the list of tools is read by every agent, and what else came of it speaks for
itself (navigated, opened, dialog, download, closed, note)."""
OUTPUT_REQUIRED = ("did",)
T = TypeVar("T")
_GRACE = 0.002
"""Seconds an answer may take longer than the work it was asked for with."""


async def tolerate_navigation(box: Toolbox, page: Page, work: Awaitable[T]) -> T | None:
    """Do a part of an action; None if the page answered it with a dialog, by going elsewhere or by closing its tab."""
    try:
        return await work
    except DialogOpen as error:
        if error.outcome == "not_sent":
            raise
    except PageNavigated:
        return None
    except TabFailed:
        if box.browsers.book.get(page.tab_id) is not None and not box.activity.opened_external(page):
            raise
    return None


async def run_and_probe(work: Awaitable[Any], asked: Coroutine[Any, Any, T], again: Callable[[], Awaitable[T]]) -> T:
    """Do a part of an action, and give what was asked of the page together with it, which saves a round trip.

    A page that keeps events to itself does not answer by itself; it is then asked again.
    """
    asking = asyncio.ensure_future(asked)
    try:
        await work
        await asyncio.wait((asking,), timeout=_GRACE)
        if asking.done() and asking.exception() is None and (told := asking.result()) is not None:
            return told
        return await again()
    finally:
        asking.add_done_callback(_overlook)


def unsent_form_note(kept: Any) -> str | None:
    """What is to be said of a form that is not sent, where the page named what keeps it."""
    return f"The form was not sent. The browser says of {kept}" if isinstance(kept, str) else None


def _overlook(asking: asyncio.Future[Any]) -> None:
    """It was asked again, or the action itself failed, which says why."""
    if not asking.cancelled():
        asking.exception()


async def action_result(
    box: Toolbox, page: Page, doing: TrackedAction, did: str, *, before: Any = None, now: Any = None, **more: Any
) -> ToolResult:
    """The answer of an action; `before` and `now` are the page's addresses around it, where they were seen."""
    chrome_id = page.tab.chrome_id
    if box.watch.open_dialog(page.link, chrome_id) is None:
        await doing.settle(box.browsers.limits.action_settle)
    facts: dict[str, Any] = {"tabId": page.tab_id, "did": did}
    notes = [str(more.pop("note"))] if more.get("note") else []
    facts |= {name: value for name, value in more.items() if value is not None}
    if doing.url is not None:
        facts["navigated"] = doing.url
        if doing.loading:
            notes.append("The new page is still loading.")
    elif doing.navigating:
        notes.append("The tab is on its way to another page.")
    elif isinstance(before, str) and isinstance(now, str) and before != now:
        facts["navigated"] = now
    if doing.external_url is not None:
        notes.append(f"It leads to {doing.external_url}, which the browser leaves to another program; the page stays.")
    if doing.chooser is not None:
        notes.append("The page asked for a file; no chooser was opened. browser_upload_file gives it one.")
    if doing.opened:
        facts["opened"] = doing.opened
    if doing.download is not None:
        facts["download"] = doing.download
    if dialog := box.watch.open_dialog(page.link, chrome_id):
        facts["dialog"] = {"type": dialog.kind, "message": dialog.message}
        if dialog.kind == "prompt":
            facts["dialog"]["default"] = dialog.default
        notes.append("The page waits for an answer to the dialog: browser_handle_dialog gives it.")
    if box.browsers.book.get(page.tab_id) is None:
        facts["closed"] = True
        notes.append("The tab is closed now.")
    if notes:
        facts["note"] = " ".join(notes)
    return ToolResult.data(facts)
