"""Console tools: messages and uncaught errors of a tab, its frames and workers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from tabhub.browser.driver.page import Page
from tabhub.browser.record.console_messages import LEVELS, Message
from tabhub.browser.record.recorder import TabRecord
from tabhub.browser.record.visible_records import visible_messages
from tabhub.browser.schemas import boolean, integer, known
from tabhub.browser.tool_spec import Call, data_result, text_result, tool
from tabhub.core.tools import ToolResult
from tabhub.trust.redact import redact, redact_url

_DEFAULT_LIMIT = 100


@tool(
    "browser_get_console_logs",
    "Console messages",
    "Console messages and uncaught errors, oldest first.",
    params={
        "level?": {"enum": list(LEVELS), "description": "Minimum level."},
        "limit?": integer("default 100", least=1),
        "clear?": boolean("Show each only once."),
    },
    output={"messages": "array"},
    read_only=True,
    repeats_page=True,
)
async def get_console_logs(call: Call) -> ToolResult:
    _, record, reader = await open_record(call)
    least = LEVELS.index(call.args.get("level", LEVELS[0]))
    uncleared = visible_messages(call.view, record, record.console.uncleared(reader))
    messages = [m for m in uncleared if LEVELS.index(m.level) >= least]
    shown = [_redacted(call, message) for message in messages[-call.args.get("limit", _DEFAULT_LIMIT) :]]
    notes = []
    if left := len(messages) - len(shown):
        notes.append(f"{left} older ones are left out; raise limit.")
    if record.console.dropped:
        notes.append(f"{record.console.dropped} older ones are no longer kept.")
    if call.args.get("clear"):
        record.console.clear(reader)
    text = text_by_page("messages", ((message.page, _lines(message)) for message in shown), record)
    return text_result(text, {"messages": [_describe(message) for message in shown]}, *notes)


@tool(
    "browser_clear_console_logs",
    "Clear console messages",
    "Clears the tab's console messages for this session; the page's own console is unchanged.",
    output={"tabId": "integer", "cleared": "integer"},
    read_only=True,
)
async def clear_console_logs(call: Call) -> ToolResult:
    page, record, reader = await open_record(call)
    cleared = len(visible_messages(call.view, record, record.console.uncleared(reader)))
    record.console.clear(reader)
    return data_result({"tabId": page.tab_id, "cleared": cleared})


async def open_record(call: Call) -> tuple[Page, TabRecord, str]:
    """The tab, its record with all events up to now, and the session that `clear` applies to."""
    page = await call.page()
    return page, await call.box.record.refreshed_record(page), str(getattr(call.ctx.session, "id", ""))


def iso_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def text_by_page(what: str, entries: Iterable[tuple[int | None, list[str]]], record: TabRecord) -> str:
    """The lines of the entries, below the page of the tab that each belongs to."""
    lines: list[str] = []
    current, pages = None, dict(record.pages)
    for page, entry in entries:
        if page != current:
            current = page
            lines.append(f"-- page {page}: {redact_url(pages.get(page, '')) if page is not None else ''}")
        lines += entry
    return "\n".join(lines) or f"No {what} since {iso_time(record.since)}."


def _redacted(call: Call, message: Message) -> Message:
    stack = tuple(map(redact_url, message.stack))
    return replace(message, text=redact(call.mask_text(message.text)), url=redact_url(message.url), stack=stack)


def _describe(message: Message) -> dict[str, Any]:
    place = f"{message.url}:{message.line}" if message.line else message.url
    return known(
        {
            "level": message.level,
            "text": message.text,
            "time": iso_time(message.at / 1000),
            "source": message.source if message.source != "console" else None,
            "url": place if message.url else None,
            "stack": list(message.stack) or None,
            "times": message.times if message.times > 1 else None,
            "frame": True if message.child else None,
            "page": message.page,
        }
    )


def _lines(message: Message) -> list[str]:
    times = f" (x{message.times})" if message.times > 1 else ""
    place = f" ({message.url[-200:]}:{message.line})" if message.url else ""
    return [f"[{message.level}] {message.text}{times}{place}", *(f"    at {frame}" for frame in message.stack)]
