"""`Mcp-Param-*`: arguments that a stateless client repeats as headers because the tool's schema declares it.

Owns reading the `x-mcp-header` marks of a schema and comparing headers with arguments. A schema with an invalid mark
declares no headers: clients that follow the revision do not use such a tool.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tabhub.errors import HeaderMismatch
from tabhub.wire.mcp import header_value

MARK = "x-mcp-header"
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_DECIMAL = re.compile(r"-?[0-9]+(\.0+)?")
_KINDS = frozenset({"string", "integer", "boolean"})


@dataclass(frozen=True, slots=True)
class ParamHeader:
    """An argument that is repeated in a header."""

    path: tuple[str, ...]
    header: bytes
    kind: str


def declared(schema: Mapping[str, Any]) -> tuple[ParamHeader, ...]:
    found: list[ParamHeader] = []
    if not _collect(schema, (), found) or _marks(schema) != len(found):
        return ()
    names = {each.header for each in found}
    return tuple(found) if len(names) == len(found) else ()


def _collect(schema: Mapping[str, Any], path: tuple[str, ...], found: list[ParamHeader]) -> bool:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return True
    for name, sub in properties.items():
        if not isinstance(sub, Mapping):
            continue
        if MARK in sub:
            mark, kind = sub[MARK], sub.get("type")
            if not isinstance(mark, str) or not _TOKEN.fullmatch(mark) or kind not in _KINDS:
                return False
            found.append(ParamHeader((*path, name), b"mcp-param-" + mark.lower().encode(), str(kind)))
        if not _collect(sub, (*path, name), found):
            return False
    return True


def _marks(node: Any) -> int:
    """How often the mark occurs; one outside a chain of `properties` makes the schema invalid."""
    if isinstance(node, Mapping):
        return (MARK in node) + sum(_marks(value) for key, value in node.items() if key not in ("default", "enum"))
    if isinstance(node, list):
        return sum(_marks(value) for value in node)
    return 0


def check(wanted: tuple[ParamHeader, ...], arguments: Mapping[str, Any], headers: list[tuple[bytes, bytes]]) -> None:
    """Refuse a call whose headers and arguments disagree."""
    for each in wanted:
        given = [value for name, value in headers if name == each.header]
        shown = each.header.decode().title()
        if len(given) > 1:
            raise HeaderMismatch(f"The {shown} header appears more than once.")
        value: Any = arguments
        for step in each.path:
            value = value.get(step) if isinstance(value, Mapping) else None
        if value is None or isinstance(value, dict | list):
            if given:
                raise HeaderMismatch(f"The {shown} header has no argument to go with it.")
            continue
        text = header_value(given[0]) if given else None
        if text is None or not _same(each.kind, value, text):
            raise HeaderMismatch(f"The {shown} header is missing or differs from the argument {'.'.join(each.path)}.")


def _same(kind: str, value: Any, text: str) -> bool:
    if isinstance(value, bool):
        return text == ("true" if value else "false")
    if kind == "integer" and isinstance(value, int | float) and _DECIMAL.fullmatch(text) and len(text) < 400:
        return float(value).is_integer() and int(text.partition(".")[0]) == int(value)
    return text == str(value)
