"""The simple list of parameters of a tool that some clients and prompts want instead of JSON Schema (seed 001).

Owns the conversion. Arguments are still validated against the full schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_TYPES = ("string", "number", "boolean", "array", "object")
_CARRIED = ("description", "enum", "default")


def simple_parameters(schema: Mapping[str, Any]) -> list[dict[str, Any]]:
    properties = schema.get("properties")
    required = schema.get("required")
    wanted = set(map(str, required)) if isinstance(required, list) else set()
    if not isinstance(properties, Mapping):
        return []
    return [{"name": name, **_simple(value), "required": name in wanted} for name, value in properties.items()]


def _simple(value: Any) -> dict[str, Any]:
    kind = value.get("type") if isinstance(value, Mapping) else None
    found: dict[str, Any] = {"type": "number" if kind == "integer" else kind if kind in _TYPES else "string"}
    if isinstance(value, Mapping):
        found |= {key: value[key] for key in _CARRIED if key in value}
        if "items" in value:
            found["items"] = _simple(value["items"])
    return found
