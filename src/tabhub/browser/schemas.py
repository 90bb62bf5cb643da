"""JSON Schemas of the built-in tools in short form: objects of named fields, bounded texts and numbers, lists.

A field is a schema, or the name of a JSON type. It is required unless its name ends in `?`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Fields = Mapping[str, Any]
"""The fields of an object by name."""
Schema = dict[str, Any]


def object_schema(fields: Fields) -> Schema:
    """The schema of an object; a later field of the same name replaces an earlier one."""
    properties: Schema = {}
    required: dict[str, bool] = {}
    for name, field in fields.items():
        plain = name.removesuffix("?")
        properties[plain] = {"type": field} if isinstance(field, str) else field
        required[plain] = plain == name
    return {"type": "object", "properties": properties, "required": [name for name in required if required[name]]}


def closed_object(fields: Fields) -> Schema:
    """The schema of an object without other fields, as arguments have it."""
    schema = {**object_schema(fields), "additionalProperties": False}
    if not schema["required"]:
        del schema["required"]
    return schema


def list_of(
    items: str | Schema, description: str | None = None, *, least: int | None = None, most: int | None = None
) -> Schema:
    schema = {"type": items} if isinstance(items, str) else items
    return _schema("array", items=schema, minItems=least, maxItems=most, description=description)


def rows(fields: Fields) -> Schema:
    return list_of(object_schema(fields))


def text(description: str | None = None, *, least: int | None = None, most: int | None = None) -> Schema:
    return _schema("string", minLength=least, maxLength=most, description=description)


def integer(description: str | None = None, *, least: int | None = None, most: int | None = None) -> Schema:
    return _schema("integer", minimum=least, maximum=most, description=description)


def number(description: str | None = None, *, least: float | None = None, most: float | None = None) -> Schema:
    return _schema("number", minimum=least, maximum=most, description=description)


def boolean(description: str) -> Schema:
    return {"type": "boolean", "description": description}


def free_object(description: str) -> Schema:
    """An object whose fields explain themselves."""
    return {"type": "object", "description": description}


def _schema(kind: str, **keywords: Any) -> Schema:
    return {"type": kind, **known(keywords)}


def known(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The facts that are not None."""
    return {name: value for name, value in facts.items() if value is not None}


TAB_ID = integer("The tab; without it, the session's own tab.", least=0)
CHANGES = boolean("Also say what changed in the page.")
TAB = {
    "tabId": "integer",
    "title": "string",
    "url": "string",
    "active": "boolean",
    "windowId?": "integer",
    "status?": "string",
    "browserId": "string",
}
"""The fields that describe a tab."""
