"""The compact form of a listing: what an agent needs to choose a tool and call it, and no more.

Owns which parts of a definition can be omitted without changing what a call means: titles, bounds that are checked
anyway, hints equal to their defaults, what results are like, and descriptions of arguments that mean the same in every
built-in tool (the server's instructions explain these once). The finder shows a definition in full.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_SHARED = frozenset({"tabId", "browserId", "changes", "selector", "ref", "text", "role", "session"})
_TARGET = frozenset({"selector", "ref", "text", "role", "label"})
_LESS_USED = ("role", "label")
"""Ways to name an element that are listed where a form is filled in or something clicked, and accepted everywhere."""
_LEFT_OUT = {"tabhub_list_tools": ("detail", "limit")}
_FULL_TARGET = frozenset({"browser_click_element", "browser_type_text"})
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
_HINT_DEFAULTS = {"readOnlyHint": False, "destructiveHint": True}
"""The hints that clients act on, each with MCP's default."""


def compact(listing: Mapping[str, Any]) -> dict[str, Any]:
    schema = _schema(listing["inputSchema"])
    properties = schema.get("properties", {})
    for name in _SHARED & properties.keys():
        properties[name].pop("description", None)
    for name in _LEFT_OUT.get(listing["name"], ()):
        del properties[name]
    if properties.keys() >= _TARGET and listing["name"] not in _FULL_TARGET:
        for name in _LESS_USED:
            if "enum" not in properties[name] and "anyOf" not in properties[name]:
                del properties[name]
    entry = {"name": listing["name"], "description": listing["description"], "inputSchema": schema}
    if hints := _hints(listing.get("annotations", {})):
        entry["annotations"] = hints
    if "_meta" in listing:
        entry["_meta"] = listing["_meta"]
    return entry


def _hints(annotations: Mapping[str, Any]) -> dict[str, Any]:
    hints = {
        name: annotations[name]
        for name, usual in _HINT_DEFAULTS.items()
        if name in annotations and annotations[name] != usual
    }
    if hints.get("readOnlyHint"):  # implies that it destroys nothing
        hints.pop("destructiveHint", None)
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
