"""Contents of resources and messages of prompts in the form of a tool's result and back, so that one budget fits all.

Owns that form: contents are embedded resources, messages are content blocks that remember who speaks. Pure, and only
for answers on their way through the hub; it is never sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tabhub.core.resources import GET, READ

_SPEAKER = "tabhub/role"
_LISTS: Mapping[str, str] = {READ: "contents", GET: "messages"}
_OWN = frozenset({"content", "structuredContent"})
_VALUES = 100
_LONGEST_VALUE = 2_000


def as_blocks(method: str, answer: Mapping[str, Any]) -> dict[str, Any]:
    key = _LISTS[method]
    rest = {name: value for name, value in answer.items() if name != key and name not in _OWN}
    if method == READ:
        return {"content": [{"type": "resource", "resource": each} for each in answer[key]], **rest}
    return {"content": [{**each["content"], _SPEAKER: each["role"]} for each in answer[key]], **rest}


def from_blocks(method: str, result: Mapping[str, Any], uri: str) -> dict[str, Any]:
    """The inverse of as_blocks, for a result that may have been cut; added notes become content of the URI, or a
    user message."""
    rest = {name: value for name, value in result.items() if name not in _OWN}
    blocks = result["content"]
    if method == READ:
        return {"contents": [_content(block, uri) for block in blocks], **rest}
    return {"messages": [_message(block) for block in blocks], **rest}


def _content(block: Mapping[str, Any], uri: str) -> Any:
    if block["type"] == "resource":
        return block["resource"]
    return {"uri": uri, "mimeType": "text/plain", "text": block.get("text", "")}


def _message(block: Mapping[str, Any]) -> dict[str, Any]:
    content = {name: value for name, value in block.items() if name != _SPEAKER}
    return {"role": block.get(_SPEAKER, "user"), "content": content}


def completions(answer: Mapping[str, Any]) -> dict[str, Any]:
    """An answer to `completion/complete` within its bounds."""
    said = answer["completion"]
    values = [value for value in said["values"][:_VALUES] if len(value) <= _LONGEST_VALUE]
    return {**answer, "completion": {**said, "values": values}}
