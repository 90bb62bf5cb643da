"""`tabhub_read_result`: the rest of a result that was too long, by page, search or path."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from tabhub.calls.engine import READ_RESULT
from tabhub.core.registry import Entry
from tabhub.core.results.result_reader import read
from tabhub.core.sessions import Session
from tabhub.core.tools import HUB, CallContext, Tool, ToolResult
from tabhub.limits import Limits
from tabhub.store.results import ResultStore

TOOL = Tool(
    name=READ_RESULT,
    source=HUB,
    title="Read a stored result",
    description=(
        "Reads on in a result that was cut: `offset`, `limit` in characters, `search` text or /regex/, "
        "`pick` a JSON path ($.items[0:5].name)."
    ),
    input_schema={
        "type": "object",
        "properties": {
            "handle": {"type": "string", "maxLength": 100},
            "offset": {"type": "integer", "minimum": 0},
            "limit": {"type": "integer", "minimum": 1, "maximum": 80_000},
            "search": {"type": "string", "minLength": 1, "maxLength": 500},
            "pick": {"type": "string", "minLength": 1, "maxLength": 500},
        },
        "required": ["handle"],
        "additionalProperties": False,
    },
    output_schema={
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "offset": {"type": "integer"},
            "nextOffset": {"type": "integer"},
            "totalChars": {"type": "integer"},
            "matches": {"type": "integer"},
        },
        "required": ["text", "offset", "totalChars"],
    },
    annotations={"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False},
)


def read_result_tool(store: ResultStore, limits: Limits, owner: Callable[[Session], str]) -> Entry:
    """`owner` gives the owner of the results of a session."""

    async def run(ctx: CallContext, args: dict[str, Any]) -> ToolResult:
        stored = await asyncio.to_thread(store.get, args["handle"], owner(ctx.session))
        options = {"limit": limits.read_chars, "max_tokens": limits.result_tokens, **args}
        del options["handle"]
        reading = await asyncio.to_thread(read, stored.data.decode("utf-8", "replace"), stored.mime, **options)
        facts: dict[str, Any] = {"text": reading.text, "offset": reading.offset, "totalChars": reading.total_chars}
        if reading.next_offset is not None:
            facts["nextOffset"] = reading.next_offset
        if reading.matches is not None:
            facts["matches"] = reading.matches
        if ctx.structured:
            return ToolResult.of([], structured=facts)
        head = f"[{reading.offset}-{reading.offset + len(reading.text)} of {reading.total_chars} characters"
        head += f"; next offset {reading.next_offset}]" if reading.next_offset is not None else "; end]"
        return ToolResult.text(f"{head}\n{reading.text}")

    return Entry(TOOL, run)
