"""The parameters every plugin tool takes besides its own: `tabId` always, `instance` where there are several.

Owns their schema and their removal before the plugin sees the input (seed 002). Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_BRANCHES = ("allOf", "anyOf", "oneOf")


def injected(schema: Mapping[str, Any], instances: Sequence[str]) -> dict[str, Any]:
    """A tool's input schema with the platform's parameters in it; a plugin's own of these names give way."""
    extra: dict[str, Any] = {
        "tabId": {
            "type": "integer",
            "minimum": 1,
            "description": "Run in exactly this tab (plugin_list_tabs lists them). Left out, the best one is taken.",
        }
    }
    if len(instances) > 1:
        extra["instance"] = {
            "type": "string",
            "enum": list(instances),
            "description": "Which of the configured sites to use.",
        }
    full = _with(schema, extra)
    required = [name for name in schema.get("required", ()) if name not in extra]
    if len(instances) > 1:
        required.append("instance")
    full["type"] = "object"
    full.pop("required", None)
    if required:
        full["required"] = required
    return full


def _with(schema: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """The schema knowing the extra properties, also where a branch of it allows no others."""
    full = dict(schema)
    full["properties"] = {**_mapping(schema.get("properties")), **extra}
    for word in _BRANCHES:
        branches = schema.get(word)
        if isinstance(branches, list):
            full[word] = [_with(b, extra) if isinstance(b, Mapping) and "properties" in b else b for b in branches]
    return full


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def stripped(arguments: Mapping[str, Any], instances: Sequence[str]) -> tuple[dict[str, Any], int | None, str | None]:
    """What the plugin gets of the arguments, and the tab and instance they name."""
    own = dict(arguments)
    named = own.pop("tabId", None)
    tab_id = int(named) if named is not None else None  # 7.0 is a whole number to a schema
    instance = own.pop("instance", None) if len(instances) > 1 else None
    return own, tab_id, instance
