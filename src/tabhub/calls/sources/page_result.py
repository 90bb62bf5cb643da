"""Reads a page's answer to a call: validated, and marked as untrusted content of that page.

Owns the format `{success, payload}`.
"""

from __future__ import annotations

from typing import Any

import msgspec
import orjson

from tabhub.calls.sources.tab_calls import UNTRUSTED, unreadable
from tabhub.core.descriptions import visible
from tabhub.core.forwarded_meta import forwarded_meta
from tabhub.core.page_tools import PageTool
from tabhub.core.tools import ToolResult
from tabhub.wire.page_tools import read_outcome

_KINDS = frozenset({"text", "image", "audio", "resource", "resource_link"})
_ERROR = 4_000


_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])


def read_answer(raw: bytes, tool: PageTool, origin: str) -> ToolResult:
    """The result in a page's answer; CommandFailed if it is malformed."""
    try:
        answer = read_outcome(raw)
        if not answer.success:
            return _failed(msgspec.json.decode(answer.payload), origin)
        fields = _FIELDS.decode(answer.payload)
    except (msgspec.DecodeError, RecursionError) as error:
        raise unreadable(f"{origin} ran {tool.name}, but its answer is not a tool result: {error}.") from None
    blocks = msgspec.json.decode(fields.get("content", b"[]"))
    if not isinstance(blocks, list) or not all(isinstance(b, dict) and b.get("type") in _KINDS for b in blocks):
        raise unreadable(f"{origin} ran {tool.name}, but the content of its answer is not valid MCP content.")
    is_error = bytes(fields.get("isError", b"false")).strip() == b"true"
    fields["content"] = fields.get("content", msgspec.Raw(b"[]"))
    problem = None if is_error else _schema_problem(fields.get("structuredContent"), tool)
    if problem is not None:
        blocks.append({"type": "text", "text": f"[{problem}]"})
        fields["content"], is_error = msgspec.Raw(orjson.dumps(blocks)), True
        fields.pop("structuredContent", None)
    meta = forwarded_meta(msgspec.json.decode(fields.get("_meta", b"{}")))
    fields["_meta"] = msgspec.Raw(orjson.dumps({**meta, UNTRUSTED: {"origin": origin}}))
    fields.pop("isError", None)
    if is_error:
        fields["isError"] = msgspec.Raw(b"true")
    return ToolResult(msgspec.json.encode(fields), is_error)


def _schema_problem(structured: msgspec.Raw | None, tool: PageTool) -> str | None:
    """What is wrong with the structured content, by the page's own outputSchema."""
    if tool.output is None:
        return None
    if structured is None:
        return "The page promises structured content and gave none."
    if not tool.output.is_valid(orjson.loads(bytes(structured))):
        return "The page's structured content does not fit the page's own outputSchema, and is left out."
    return None


def _failed(payload: Any, origin: str) -> ToolResult:
    message = payload if isinstance(payload, str) else orjson.dumps(payload).decode()
    text = f"The page's tool failed. {origin} says: {visible(message[:_ERROR])[0] or 'nothing'}"
    return ToolResult.of([{"type": "text", "text": text}], is_error=True, meta={UNTRUSTED: {"origin": origin}})
