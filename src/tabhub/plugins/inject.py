"""The parameters added to every plugin tool: `tabId` always, `instance` if there are several.

Owns their schema and their removal from the input before the plugin receives it. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_BRANCHES = ("allOf", "anyOf", "oneOf")


def injected(schema: Mapping[str, Any], instances: Sequence[str]) -> dict[str, Any]:
    """The input schema with these parameters; they override a plugin's own of the same name."""
    extra: dict[str, Any] = {
        "tabId": {
            "type": "integer",
            "minimum": 1,
            "description": "Run in exactly this tab (plugin_list_tabs lists them). Default: the best one.",
        }
    }
    if len(instances) > 1:
        extra["instance"] = {
            "type": "string",
            "enum": list(instances),
            "description": "Which of the configured sites to use.",
        }
    required = [name for name in schema.get("required", ()) if name not in extra]
    required += ["instance"] if "instance" in extra else []
    full = {**_with(schema, extra), "type": "object", "required": required}
    if not required:
        del full["required"]
    return full


def _with(schema: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """Add the properties, also to branches that allow no others."""
    full = dict(schema)
    own = schema.get("properties")
    full["properties"] = {**(own if isinstance(own, Mapping) else {}), **extra}
    for keyword in _BRANCHES:
        branches = schema.get(keyword)
        if isinstance(branches, list):
            full[keyword] = [_with(b, extra) if isinstance(b, Mapping) and "properties" in b else b for b in branches]
    return full


def stripped(arguments: Mapping[str, Any], instances: Sequence[str]) -> tuple[dict[str, Any], int | None, str | None]:
    """The plugin's own arguments, the tab id and the instance."""
    own = dict(arguments)
    named = own.pop("tabId", None)
    tab_id = int(named) if named is not None else None  # JSON Schema accepts 7.0 as an integer
    instance = own.pop("instance", None) if len(instances) > 1 else None
    return own, tab_id, instance
