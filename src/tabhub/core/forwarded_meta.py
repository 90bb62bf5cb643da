"""Which entries of a request's or result's `_meta` the hub forwards between an agent and a page or external server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_RESERVED = frozenset({"mcp", "modelcontextprotocol"})
"""Labels of a key's prefix that belong to the protocol, wherever in the prefix they stand."""
_OWN = "tabhub"


def forwarded_meta(meta: Any) -> dict[str, Any]:
    """Drop entries reserved for the protocol, which hold for one hop only, and for the hub, which nobody may forge."""
    if not isinstance(meta, Mapping):
        return {}
    return {key: value for key, value in meta.items() if not _is_reserved(key)}


def _is_reserved(key: str) -> bool:
    prefix, slash, _ = key.partition("/")
    if not slash:
        return key == "progressToken"
    labels = prefix.lower().split(".")
    return not _RESERVED.isdisjoint(labels) or labels[0] == _OWN
