"""The simple list of parameters of a tool that some clients and prompts want instead of JSON Schema (seed 001).

Owns one table. Arguments are still validated against the full schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TYPES: Mapping[str, str] = {
    "string": "string",
    "number": "number",
    "integer": "number",
    "boolean": "boolean",
    "array": "array",
    "object": "object",
}
"""What each type of JSON Schema becomes; anything else is a string."""

_CARRIED = ("description", "enum", "default")


def simple_parameters(schema: Mapping[str, Any]) -> list[dict[str, Any]]:
    properties = schema.get("properties")
    required = schema.get("required")
    wanted = set(map(str, required)) if isinstance(required, list) else set()
    if not isinstance(properties, Mapping):
        return []
    return [{"name": name, **_simple(value), "required": name in wanted} for name, value in properties.items()]


def simple_type(value: Any) -> str:
    kind = value.get("type") if isinstance(value, Mapping) else None
    return TYPES.get(kind, "string") if isinstance(kind, str) else "string"


def _simple(value: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"type": simple_type(value)}
    if isinstance(value, Mapping):
        found |= {key: value[key] for key in _CARRIED if key in value}
        if "items" in value:
            found["items"] = _simple(value["items"])
    return found
