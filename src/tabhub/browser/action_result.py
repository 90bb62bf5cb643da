"""The result of an action: a navigation, another tab, a dialog or a download that it caused.

Owns the fields that every acting tool returns, and which ways of losing the page count as a result of the action
rather than a failure. It uses events that the browser already sent; it sends no commands.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from tabhub.browser.activity import TrackedAction
from tabhub.browser.driver.cdp_send import ignore_failure
from tabhub.browser.driver.page import Page
from tabhub.browser.tool_spec import Toolbox, with_note
from tabhub.core.tools import ToolResult
from tabhub.errors import DialogOpen, PageNavigated, TabFailed

OUTPUT: dict[str, Any] = {"did": "string"}
"""Only the field that is always present is declared, to keep the tool list short; the others explain themselves
(navigated, opened, dialog, download, closed, note)."""
T = TypeVar("T")
_PROBE_GRACE = 0.002
"""Seconds that a probe's reply may arrive after the work it was sent with."""


async def tolerate_navigation(box: Toolbox, page: Page, work: Awaitable[T]) -> T | None:
    """Await part of an action; None if the page reacted with a dialog, by navigating or by closing its tab."""
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


async def run_and_probe(work: Awaitable[Any], probe: Coroutine[Any, Any, T], retry: Callable[[], Awaitable[T]]) -> T:
    """Await part of an action and return the reply to a probe sent together with it, which saves a round trip.

    A page that stops the propagation of events does not reply by itself; then `retry` asks once more.
    """
    probing = asyncio.ensure_future(probe)
    try:
        await work
        await asyncio.wait((probing,), timeout=_PROBE_GRACE)
        if probing.done() and probing.exception() is None and (reply := probing.result()) is not None:
            return reply
        return await retry()
    finally:
        # If the probe failed, the retry or the action itself reports why.
        probing.add_done_callback(ignore_failure)


def page_left(page: Page, action: TrackedAction) -> bool:
    """Whether the page navigated, is about to, or is blocked by a dialog."""
    return action.unsettled or action.url is not None or page.dialog is not None


async def page_round_trip(box: Toolbox, page: Page, action: TrackedAction, expression: str = "0") -> Any:
    """Evaluate an expression; the page reports what the action caused before it answers. None if it navigates."""
    query = {"expression": expression, "returnByValue": True}
    return await action.unless_navigating(tolerate_navigation(box, page, page.cdp("Runtime.evaluate", query)))


def unsent_form_note(problem: Any) -> str | None:
    """The note for a form that was not submitted, if the page named the invalid field."""
    return f"The form was not submitted. The browser reports: {problem}" if isinstance(problem, str) else None


async def action_result(
    box: Toolbox, page: Page, action: TrackedAction, did: str, *, before: Any = None, now: Any = None, **more: Any
) -> ToolResult:
    """The result of an action; `before` and `now` are the page's URLs around it, where they are known."""
    if page.dialog is None:
        await action.settle(box.browsers.limits.action_settle)
    facts: dict[str, Any] = {"tabId": page.tab_id, "did": did}
    notes = [str(more.pop("note"))] if more.get("note") else []
    facts |= {name: value for name, value in more.items() if value is not None}
    if action.url is not None:
        facts["navigated"] = action.url
        if action.loading:
            notes.append("The new page is still loading.")
    elif action.navigating:
        notes.append("The tab is navigating to another page.")
    elif isinstance(before, str) and isinstance(now, str) and before != now:
        facts["navigated"] = now
    if action.external_url is not None:
        notes.append(f"It leads to {action.external_url}, which the browser opens in another program; the page stays.")
    if action.chooser is not None:
        notes.append("The page asked for a file; no file chooser was opened. Use browser_upload_file.")
    if action.opened:
        facts["opened"] = action.opened
    if action.download is not None:
        facts["download"] = action.download
    if dialog := page.dialog:
        facts["dialog"] = {"type": dialog.kind, "message": dialog.message}
        if dialog.kind == "prompt":
            facts["dialog"]["default"] = dialog.default
        notes.append("The page waits for an answer to the dialog: use browser_handle_dialog.")
    if box.browsers.book.get(page.tab_id) is None:
        facts["closed"] = True
        notes.append("The tab is closed now.")
    return ToolResult.data(with_note(facts, *notes))
