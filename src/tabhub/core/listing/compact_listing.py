"""The compact form of a listing: what an agent needs to choose a tool and call it, and no more.

Owns which parts of a definition can be omitted without changing what a call means: titles, bounds that are checked
anyway, hints equal to their defaults, what results are like, and descriptions of arguments that mean the same in every
built-in tool (the server's instructions explain these once).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_SHARED = frozenset({"tabId", "selector", "ref", "text", "role", "session"})
_BOUNDS = frozenset(
    {
        "additionalProperties",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "maxItems",
        "maxLength",
        "maxProperties",
        "maximum",
        "minItems",
        "minLength",
        "minProperties",
        "minimum",
        "pattern",
        "uniqueItems",
    }
)
_HINT_DEFAULTS = {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False, "openWorldHint": True}
"""MCP's default of each hint."""


def compact(listing: Mapping[str, Any]) -> dict[str, Any]:
    schema = _schema(listing["inputSchema"])
    for name in _SHARED & schema.get("properties", {}).keys():
        schema["properties"][name].pop("description", None)
    entry = {"name": listing["name"], "description": listing["description"], "inputSchema": schema}
    if hints := _hints(listing.get("annotations", {})):
        entry["annotations"] = hints
    if "_meta" in listing:
        entry["_meta"] = listing["_meta"]
    return entry


def _hints(annotations: Mapping[str, Any]) -> dict[str, Any]:
    hints = {name: value for name, value in annotations.items() if value != _HINT_DEFAULTS.get(name)}
    if hints.get("readOnlyHint"):  # implies that it destroys nothing and can be repeated
        hints.pop("destructiveHint", None)
        hints.pop("idempotentHint", None)
    return hints


def _schema(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_schema(part) for part in schema]
    if not isinstance(schema, Mapping):
        return schema
    short = {}
    for name, part in schema.items():
        if name == "properties" and isinstance(part, Mapping):
            short[name] = {key: _schema(value) for key, value in part.items()}
        elif name in ("enum", "const", "default", "required"):
            short[name] = part
        elif name not in _BOUNDS:
            short[name] = _schema(part)
    return short
