"""The table of seed 001: JSON Schema as a simple list of parameters."""

from __future__ import annotations

from typing import Any

import pytest

from tabhub.upstream.parameter_list import simple_parameters


@pytest.mark.req("S001-schema-01", "S001-schema-02", "S001-schema-03", "S001-schema-04")
@pytest.mark.parametrize(
    ("schema", "simple"),
    [
        ({"type": "string"}, "string"),
        ({"type": "number"}, "number"),
        ({"type": "integer"}, "number"),
        ({"type": "boolean"}, "boolean"),
        ({"type": "array"}, "array"),
        ({"type": "object"}, "object"),
        ({"type": "null"}, "string"),
        ({"type": ["string", "null"]}, "string"),
        ({"anyOf": []}, "string"),
        ({}, "string"),
        (True, "string"),
        ({"type": {"odd": 1}}, "string"),
    ],
)
def test_each_schema_type_has_a_simple_type(schema: Any, simple: str) -> None:
    (parameter,) = simple_parameters({"type": "object", "properties": {"p": schema}})
    assert parameter["type"] == simple


@pytest.mark.req("S001-schema-05", "S001-schema-06")
def test_required_enum_default_and_items_are_carried_over() -> None:
    schema = {
        "type": "object",
        "properties": {
            "city": {"type": "string", "enum": ["Rome", "Oslo"], "default": "Rome", "description": "Where."},
            "days": {"type": "array", "items": {"type": "integer"}},
        },
        "required": ["city"],
    }
    assert simple_parameters(schema) == [
        {
            "name": "city",
            "type": "string",
            "description": "Where.",
            "enum": ["Rome", "Oslo"],
            "default": "Rome",
            "required": True,
        },
        {"name": "days", "type": "array", "items": {"type": "number"}, "required": False},
    ]


@pytest.mark.parametrize("schema", [{}, {"properties": 5}, {"properties": {}, "required": "x"}])
def test_a_schema_without_parameters_has_none(schema: dict[str, Any]) -> None:
    assert simple_parameters(schema) == []
