"""Converts the text values of an XML call to the types of the tool's schema.

Owns the conversion and its error messages. The arguments as a whole are validated where every call is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

_SHOWN = 80
_REFERENCES = 5
_NO = object()


def coerce(values: Iterable[tuple[str, str]], schema: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The arguments, and a sentence for every value that does not fit its schema."""
    arguments: dict[str, Any] = {}
    problems: list[str] = []
    known = schema.get("properties")
    properties = known if isinstance(known, Mapping) else {}
    for name, text in values:
        kinds = _kinds(properties.get(name), schema)
        value = _value(text, kinds)
        if value is _NO:
            shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
            expected = " or ".join(_TYPES[kind][0] for kind in kinds if kind in _TYPES)
            problems.append(f"The parameter {name!r} must be {expected}, not {shown!r}.")
        else:
            arguments[name] = value
    return arguments, problems


def _kinds(spec: Any, schema: Mapping[str, Any], depth: int = 0) -> list[str]:
    """The types a property may have; empty if the schema does not say."""
    if not isinstance(spec, Mapping) or depth > _REFERENCES:
        return []
    kind = spec.get("type")
    if isinstance(kind, str):
        return [kind]
    if isinstance(kind, list):
        return [each for each in kind if isinstance(each, str)]
    for choice in ("anyOf", "oneOf"):
        if isinstance(spec.get(choice), list):
            found = [_kinds(each, schema, depth + 1) for each in spec[choice]]
            return list(dict.fromkeys(kind for kinds in found for kind in kinds)) if all(found) else []
    listed = spec.get("enum", [spec["const"]] if "const" in spec else None)
    if isinstance(listed, list):
        return list(dict.fromkeys(_kind(each) for each in listed))
    reference = spec.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/"):
        place: Any = schema
        for step in reference[2:].split("/"):
            place = place.get(step) if isinstance(place, Mapping) else None
        return _kinds(place, schema, depth + 1)
    return []


def _kind(value: Any) -> str:
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return kinds.get(type(value), "null")


def _value(text: str, kinds: list[str]) -> Any:
    for kind, (_, read) in _TYPES.items():  # the stricter ones first: any text is a string
        if kind in kinds:
            value = read(text)
            if value is not _NO:
                return value
    return text if "string" in kinds or not any(kind in _TYPES for kind in kinds) else _NO


def _json(text: str, *types: type) -> Any:
    try:
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return _NO
    return value if type(value) in types else _NO


def _refuse(name: str) -> Any:
    raise ValueError(name)


def _integer(text: str) -> Any:
    value = _json(text, int, float)
    if isinstance(value, float):
        return int(value) if value.is_integer() else _NO
    return value


_TYPES: Final[Mapping[str, tuple[str, Callable[[str], Any]]]] = {
    "null": ("null", lambda text: None if text.strip() == "null" else _NO),
    "boolean": ("true or false", lambda text: {"true": True, "false": False}.get(text.strip().lower(), _NO)),
    "integer": ("a whole number", _integer),
    "number": ("a number", lambda text: _json(text, int, float)),
    "array": ("a JSON array such as [1, 2]", lambda text: _json(text, list)),
    "object": ('a JSON object such as {"key": "value"}', lambda text: _json(text, dict)),
}
"""How each type is described, and read from a text."""
