"""Contents of resources and messages of prompts in the form of a tool's result and back, so that one budget applies.

Owns that form: contents are embedded resources, messages are content blocks with their role. It is used only inside
the hub and never sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tabhub.core.resources import GET, READ
from tabhub.core.results.valid_results import valid_contents, valid_messages

_ROLE = "tabhub/role"
_LISTS: Mapping[str, str] = {READ: "contents", GET: "messages"}
_TOOL_RESULT_FIELDS = frozenset({"content", "structuredContent"})
_MAX_VALUES = 100
_MAX_VALUE_LENGTH = 2_000


def valid_answer(method: str, answer: Mapping[str, Any], uri: str = "") -> dict[str, Any]:
    """The answer of a server or page to a request for a resource or prompt, as MCP defines it."""
    if method == READ:
        return {**answer, "contents": valid_contents(answer.get("contents"), uri)}
    messages = [{"role": role, "content": block} for role, block in valid_messages(answer.get("messages"))]
    described = {} if isinstance(answer.get("description"), str) else {"description": ""}
    return {**answer, **described, "messages": messages}


def as_blocks(method: str, answer: Mapping[str, Any]) -> dict[str, Any]:
    key = _LISTS[method]
    rest = {name: value for name, value in answer.items() if name != key and name not in _TOOL_RESULT_FIELDS}
    if method == READ:
        return {"content": [{"type": "resource", "resource": each} for each in answer[key]], **rest}
    return {"content": [{**each["content"], _ROLE: each["role"]} for each in answer[key]], **rest}


def from_blocks(method: str, result: Mapping[str, Any], uri: str) -> dict[str, Any]:
    """The inverse of as_blocks, for a result that may have been cut; added notes become content of the URI, or a
    user message."""
    rest = {name: value for name, value in result.items() if name not in _TOOL_RESULT_FIELDS}
    blocks = result["content"]
    if method == READ:
        return {"contents": [_content(block, uri) for block in blocks], **rest}
    return {"messages": [_message(block) for block in blocks], **rest}


def _content(block: Mapping[str, Any], uri: str) -> Any:
    if block["type"] == "resource":
        return block["resource"]
    return {"uri": uri, "mimeType": "text/plain", "text": block.get("text", "")}


def _message(block: Mapping[str, Any]) -> dict[str, Any]:
    content = {name: value for name, value in block.items() if name != _ROLE}
    return {"role": block.get(_ROLE, "user"), "content": content}


def completions(answer: Mapping[str, Any]) -> dict[str, Any]:
    """An answer to `completion/complete` within its bounds."""
    completion = answer.get("completion")
    completion = completion if isinstance(completion, Mapping) else {}
    given = completion.get("values")
    given = given if isinstance(given, list) else []
    values = [v for v in given[:_MAX_VALUES] if isinstance(v, str) and len(v) <= _MAX_VALUE_LENGTH]
    kept: dict[str, Any] = {"values": values}
    for name, kind in (("total", int), ("hasMore", bool)):
        if type(completion.get(name)) is kind:
            kept[name] = completion[name]
    return {**answer, "completion": kept}
