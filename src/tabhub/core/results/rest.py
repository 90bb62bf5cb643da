"""What a tool left out of its answer to keep to the budget: it travels with the answer until it is stored.

Owns the block that has it and the note that replaces the block. Knows nothing of where it is stored. Inside the answer
it is masked like everything else that leaves the hub.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

_MARK: Final = "tabhub/rest"
MIME: Final = "text/plain"


def rest_block(text: str) -> dict[str, Any]:
    """The content block with what was left out."""
    return {"type": "text", "text": text, "_meta": {_MARK: True}}


def take_rest(payload: bytes) -> tuple[dict[str, Any], str]:
    """The decoded answer without its block, and the text of that."""
    body = orjson.loads(payload)
    blocks = [block for block in body["content"] if _MARK not in block.get("_meta", ())]
    (rest,) = (block["text"] for block in body["content"] if _MARK in block.get("_meta", ()))
    return {**body, "content": blocks}, rest


def with_handle(body: dict[str, Any], rest: str, handle: str) -> bytes:
    """The encoded answer with a note on how to read on."""
    note = f'[The rest, in order: tabhub_read_result {{"handle": "{handle}"}}; "search": "words" finds a part of it.]'
    content = [*body["content"], {"type": "text", "text": note}]
    details = {"handle": handle, "totalChars": len(rest), "mime": MIME}
    return orjson.dumps({**body, "content": content, "_meta": {**body.get("_meta", {}), "tabhub/result": details}})
