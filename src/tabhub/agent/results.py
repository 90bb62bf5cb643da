"""MCP results for a model: one text, and images. Results are within the hub's budget; a longer one is truncated."""

from __future__ import annotations

import json
from typing import Any

from tabhub.store.conversations import Call, Picture, Result

_LONGEST = 400_000
_PICTURES = ("image/png", "image/jpeg", "image/webp", "image/gif")


def result_of(call: Call, answer: dict[str, Any]) -> Result:
    content = answer.get("content")
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    pictures = [
        Picture(str(block["mimeType"]), block["data"])
        for block in blocks
        if block.get("type") == "image" and block.get("mimeType") in _PICTURES and isinstance(block.get("data"), str)
    ]
    text = "\n".join(part for part in map(_text, blocks) if part)
    if not text and answer.get("structuredContent") is not None:
        text = json.dumps(answer["structuredContent"], ensure_ascii=False)
    if len(text) > _LONGEST:
        text = f"{text[:_LONGEST]}\n[cut here: the result has {len(text)} characters]"
    if not text and not pictures:
        text = "(no output)"
    failed = answer.get("isError") is True
    return Result(call.id, call.name, text, failed=failed, pictures=pictures, denied=failed and _denied(answer))


def _denied(answer: dict[str, Any]) -> bool:
    meta = answer.get("_meta")
    error = meta.get("tabhub/error") if isinstance(meta, dict) else None
    return isinstance(error, dict) and error.get("category") == "permission"


def _text(block: dict[str, Any]) -> str:
    kind = block.get("type")
    if kind == "text":
        return str(block.get("text", ""))
    if kind in ("image", "audio"):
        return "" if block.get("mimeType") in _PICTURES else f"[{kind}: {block.get('mimeType', 'unknown')}]"
    if kind == "resource" and isinstance(resource := block.get("resource"), dict):
        return str(resource["text"]) if "text" in resource else f"[resource: {resource.get('uri', '')}]"
    if kind == "resource_link":
        return f"[resource: {block.get('uri', '')}]"
    return json.dumps(block, ensure_ascii=False)
