"""The simple form of parameters: the table of types, and what is carried over."""

from __future__ import annotations

from typing import Any

import pytest

from tabhub.upstream.schema import simple_parameters, simple_type


def only(spec: Any, **more: Any) -> dict[str, Any]:
    (parameter,) = simple_parameters({"type": "object", "properties": {"it": spec}, **more})
    return parameter


@pytest.mark.req("S001-schema-01")
def test_string_becomes_string() -> None:
    assert only({"type": "string"})["type"] == "string"


@pytest.mark.req("S001-schema-02")
def test_number_and_integer_become_number() -> None:
    assert [only({"type": each})["type"] for each in ("number", "integer")] == ["number", "number"]


@pytest.mark.req("S001-schema-03")
def test_boolean_array_and_object_stay_themselves() -> None:
    assert [only({"type": each})["type"] for each in ("boolean", "array", "object")] == ["boolean", "array", "object"]


@pytest.mark.req("S001-schema-04")
@pytest.mark.parametrize(
    "spec",
    [{}, {"type": "null"}, {"type": "date"}, {"type": 3}, {"type": []}, {"anyOf": [{"type": "number"}]}, True, "no", 7],
)
def test_any_other_or_missing_type_becomes_string(spec: Any) -> None:
    assert only(spec)["type"] == "string"


@pytest.mark.req("S001-schema-05")
def test_properties_in_required_are_marked_required() -> None:
    schema = {"properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "required": ["b", "gone", 4]}
    found = simple_parameters(schema)
    assert [(each["name"], each["required"]) for each in found] == [("a", False), ("b", True)]


@pytest.mark.req("S001-schema-06")
def test_enum_default_and_items_are_carried_over() -> None:
    spec = {
        "type": "array",
        "enum": [["a"], ["b"]],
        "default": ["a"],
        "items": {"type": "integer", "enum": [1]},
        "description": "Which ones",
        "maxItems": 3,
    }
    assert only(spec) == {
        "name": "it",
        "type": "array",
        "required": False,
        "enum": [["a"], ["b"]],
        "default": ["a"],
        "items": {"type": "number", "enum": [1]},
        "description": "Which ones",
    }
    assert "default" not in only({"type": "string"})
    assert only({"type": "string", "default": None})["default"] is None


@pytest.mark.parametrize("schema", [{}, {"properties": []}, {"properties": None, "required": "a"}, {"required": 5}])
def test_a_schema_without_properties_has_no_parameters(schema: Any) -> None:
    assert simple_parameters(schema) == []


def test_what_is_no_schema_is_a_string() -> None:
    assert simple_type(None) == simple_type([]) == "string"
