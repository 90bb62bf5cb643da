"""Results that say the same twice: a text that is the JSON of the structured content beside it.

Owns what is left out for an agent, which reads the text; programs get results as they were made.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import orjson

_LARGEST = 256 * 1024
"""Larger texts are not compared."""


def without_repeats(result: dict[str, Any]) -> dict[str, Any]:
    """The result without structured content that its only text repeats."""
    structured, content = result.get("structuredContent"), result.get("content")
    if structured is None or not isinstance(content, list) or len(content) != 1:
        return result
    text = content[0].get("text") if isinstance(content[0], Mapping) else None
    if not isinstance(text, str) or len(text) > _LARGEST or text.lstrip()[:1] != "{":
        return result
    try:
        said = orjson.loads(text)
    except orjson.JSONDecodeError:
        return result
    value = orjson.loads(bytes(structured)) if isinstance(structured, msgspec.Raw) else structured
    return {name: part for name, part in result.items() if name != "structuredContent"} if said == value else result
