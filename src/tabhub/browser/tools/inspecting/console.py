"""Console tools: messages and uncaught errors of a tab, its frames and workers."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from tabhub.browser.record.console_messages import LEVELS, Message
from tabhub.browser.record.recorder import TabRecord
from tabhub.browser.schemas import boolean, integer
from tabhub.browser.tool_spec import Call, tool, with_note
from tabhub.core.tools import ToolResult

_DEFAULT_LIMIT = 100


@tool(
    "browser_get_console_logs",
    "Console messages",
    "Console messages, uncaught errors and browser warnings of the tab, oldest first.",
    params={
        "level?": {"enum": list(LEVELS), "description": "Minimum level."},
        "limit?": integer("Newest; default 100.", least=1),
        "clear?": boolean("Show each only once."),
    },
    output={"messages": "array"},
    read_only=True,
)
async def get_console_logs(call: Call) -> ToolResult:
    page = await call.page()
    record = await call.box.record.refreshed_record(page)
    least = LEVELS.index(call.args.get("level", LEVELS[0]))
    reader = session_key(call)
    messages = [m for m in record.console.uncleared(reader) if LEVELS.index(m.level) >= least]
    shown = messages[-call.args.get("limit", _DEFAULT_LIMIT) :]
    notes = []
    if left := len(messages) - len(shown):
        notes.append(f"{left} older ones are left out; raise limit.")
    if record.console.dropped:
        notes.append(f"{record.console.dropped} older ones are no longer kept.")
    if call.args.get("clear"):
        record.console.clear(reader)
    facts = with_note({"messages": [_facts(message) for message in shown]}, *notes)
    return ToolResult.of([{"type": "text", "text": _text(shown, record, notes)}], structured=facts)


@tool(
    "browser_clear_console_logs",
    "Clear console messages",
    "Clears the tab's console messages for this session; the page's own console is unchanged.",
    output={"tabId": "integer", "cleared": "integer"},
    read_only=True,
)
async def clear_console_logs(call: Call) -> ToolResult:
    page = await call.page()
    record = await call.box.record.refreshed_record(page)
    reader = session_key(call)
    cleared = len(record.console.uncleared(reader))
    record.console.clear(reader)
    return ToolResult.data({"tabId": page.tab_id, "cleared": cleared})


def session_key(call: Call) -> str:
    """The session that `clear` applies to."""
    return str(getattr(call.ctx.session, "id", ""))


def iso_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _facts(message: Message) -> dict[str, Any]:
    facts: dict[str, Any] = {"level": message.level, "text": message.text, "time": iso_time(message.at / 1000)}
    if message.source != "console":
        facts["source"] = message.source
    if message.url:
        facts["url"] = f"{message.url}:{message.line}" if message.line else message.url
    if message.stack:
        facts["stack"] = list(message.stack)
    if message.times > 1:
        facts["times"] = message.times
    if message.child:
        facts["frame"] = True
    facts["page"] = message.page
    return facts


def _text(shown: list[Message], record: TabRecord, notes: list[str]) -> str:
    lines, page, pages = [], None, dict(record.pages)
    for message in shown:
        if message.page != page:
            page = message.page
            lines.append(f"-- page {page}: {pages.get(page, '')}")
        times = f" (x{message.times})" if message.times > 1 else ""
        place = f" ({message.url[-200:]}:{message.line})" if message.url else ""
        lines.append(f"[{message.level}] {message.text}{times}{place}")
        lines.extend(f"    at {frame}" for frame in message.stack)
    if not lines:
        lines.append(f"No messages since {iso_time(record.since)}.")
    return "\n".join([*lines, *(f"[{note}]" for note in notes)])


TOOLS = (get_console_logs, clear_console_logs)
