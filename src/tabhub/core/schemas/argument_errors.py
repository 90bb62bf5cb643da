"""What is wrong with the arguments of a tool, and what they should be: for an agent that corrects them.

Owns the text of the errors: the argument, what was given, what is allowed, and an example. Pure; it knows no tool.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from itertools import islice
from typing import Any

import jsonschema_rs
import orjson

_MOST_PROBLEMS = 10
_MOST_NAMED = 40
_LONGEST_PROBLEM = 400
_LONGEST_VALUE = 60
_MOST_EXAMPLE_DEPTH = 3
_NAMED_EXAMPLES = {
    "url": "https://example.com/",
    "ref": "e5",
    "from": "e5",
    "to": "e9",
    "selector": "#save",
    "key": "Enter",
}
_EXAMPLES: Mapping[str, Any] = {"integer": 1, "number": 1.5, "boolean": True, "array": [], "object": {}}


def problems_of(schema: Mapping[str, Any], errors: Iterable[jsonschema_rs.ValidationError]) -> list[dict[str, str]]:
    """The invalid fields, each with its problem; at most ten."""
    return [
        {"field": "/".join(map(str, error.instance_path)) or "arguments", "problem": _problem(schema, error)}
        for error in islice(errors, _MOST_PROBLEMS)
    ]


def explain_arguments(schema: Mapping[str, Any]) -> str:
    """The arguments that a schema accepts, and an example of those that are required."""
    known = _properties(schema)
    if not known:
        return "It takes no arguments." if schema.get("additionalProperties") is False else ""
    listed = ", ".join(
        f"{name}{'' if name in _required(schema) else '?'} ({_kind(field)})"
        for name, field in islice(known.items(), _MOST_NAMED)
    )
    return f"Arguments: {listed}. Example: {_short(_example(schema), _LONGEST_PROBLEM)}."


def _problem(schema: Mapping[str, Any], error: jsonschema_rs.ValidationError) -> str:
    """What is invalid, with what would be valid; a long value is not returned whole."""
    kind, message, fits = error.kind, error.message, ""
    if isinstance(kind, jsonschema_rs.ValidationErrorKind.Enum):
        options = [_short(option) for option in list(kind.options)[:_MOST_NAMED]]
        message = f"{message.rpartition(' is not one of ')[0]} is not one of"
        fits = f" {', '.join(options)}"
    elif isinstance(kind, jsonschema_rs.ValidationErrorKind.AdditionalProperties):
        known = list(_properties(_at(schema, error.schema_path)))
        fits = f"; there is: {', '.join(known[:_MOST_NAMED])}" if known else ""
        if close := [name for given in kind.unexpected for name in get_close_matches(given, known, 1)]:
            fits += f"; did you mean {', '.join(close)}?"
    elif description := _at(schema, error.schema_path).get("description"):
        fits = f" ({str(description)[:_LONGEST_PROBLEM]})"
    half = _LONGEST_PROBLEM // 2
    short = message if len(message) <= _LONGEST_PROBLEM else f"{message[:half]}…{message[-half:]}"
    return short + fits[: _LONGEST_PROBLEM * 2]


def _at(schema: Mapping[str, Any], path: Iterable[Any]) -> Mapping[str, Any]:
    """The part of a schema that contains the keyword at the end of a path."""
    at: Any = schema
    for step in list(path)[:-1]:
        at = (
            at.get(step)
            if isinstance(at, Mapping)
            else at[step]
            if isinstance(at, list) and type(step) is int
            else None
        )
    return at if isinstance(at, Mapping) else {}


def _properties(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    known = schema.get("properties")
    return known if isinstance(known, Mapping) else {}


def _required(schema: Mapping[str, Any]) -> list[str]:
    required = schema.get("required")
    return [name for name in required if isinstance(name, str)] if isinstance(required, list) else []


def _types(field: Mapping[str, Any]) -> Iterator[str]:
    kind = field.get("type")
    for one in kind if isinstance(kind, list) else [kind]:
        if isinstance(one, str):
            yield one


def _kind(field: Any) -> str:
    if not isinstance(field, Mapping):
        return "any"
    if isinstance(options := field.get("enum"), list):
        return " | ".join(_short(option) for option in options[:_MOST_NAMED])
    name = " or ".join(_types(field)) or "any"
    items = field.get("items")
    return f"list of {_kind(items)}" if name == "array" and isinstance(items, Mapping) else name


def _example(field: Any, depth: int = 0, name: str = "") -> Any:
    if not isinstance(field, Mapping):
        return "…"
    for keyword in ("const", "default"):
        if keyword in field:
            return field[keyword]
    for keyword in ("examples", "enum"):
        if isinstance(values := field.get(keyword), list) and values:
            return values[0]
    kind = next(_types(field), "object" if _properties(field) else "string")
    if kind == "object" and depth < _MOST_EXAMPLE_DEPTH:
        return {one: _example(_properties(field).get(one), depth + 1, one) for one in _required(field)}
    if kind == "array" and depth < _MOST_EXAMPLE_DEPTH and isinstance(field.get("items"), Mapping):
        return [_example(field["items"], depth + 1)]
    if kind in ("integer", "number") and type(least := field.get("minimum")) in (int, float):
        return least
    return _NAMED_EXAMPLES.get(name, "text") if kind == "string" else _EXAMPLES.get(kind)


def _short(value: Any, longest: int = _LONGEST_VALUE) -> str:
    return orjson.dumps(value, default=str).decode()[:longest]
