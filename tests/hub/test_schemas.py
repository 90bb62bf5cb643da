"""Schemas from strangers: what could take long is refused before anything is checked against it."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tabhub.hub.schemas import trouble
from tabhub.hub.tools import compile_schema

REF = {"$ref": "#"}


def doubling(levels: int, word: str = "allOf") -> dict[str, Any]:
    defs: dict[str, Any] = {"d0": {"type": "object"}}
    for level in range(1, levels):
        inner = {"$ref": f"#/$defs/d{level - 1}"}
        defs[f"d{level}"] = {word: [inner, inner]}
    return {"$ref": f"#/$defs/d{levels - 1}", "$defs": defs}


def doubling_below(levels: int) -> dict[str, Any]:
    schema = doubling(levels)
    for level in range(1, levels):
        inner = {"properties": {"a": {"$ref": f"#/$defs/d{level - 1}"}}}
        schema["$defs"][f"d{level}"] = {"allOf": [inner, inner]}
    return schema


@pytest.mark.req("B17")
@pytest.mark.parametrize(
    ("schema", "why"),
    [
        (doubling(40), "steps"),
        (doubling(40, "anyOf"), "steps"),
        (doubling_below(30), "steps"),
        (REF, "without end"),
        ({"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"not": REF}}}, "without end"),
        ({"properties": {"a": {"anyOf": [REF, REF]}}}, "several ways"),
        ({"properties": {"a": REF}, "patternProperties": {"^a": REF}}, "several ways"),
        ({"allOf": [{"properties": {"a": REF}}, {"additionalProperties": REF}]}, "several ways"),
        ({"items": REF, "contains": REF}, "several ways"),
        ({"properties": {"a": {"$ref": "https://evil.example/s.json"}}}, "out of itself"),
        ({"properties": {"a": {"$ref": "file:///etc/passwd"}}}, "out of itself"),
        ({"properties": {"a": {"$ref": "#/$defs/none"}}}, "not a part"),
        ({"properties": {"a": {"$dynamicRef": "#x"}}}, "not supported"),
        ({"properties": {f"p{i}": {"pattern": "(a{90}){90}"} for i in range(65)}}, "patterns"),
        ({"pattern": "a" * 1001}, "patterns"),
    ],
)
def test_schemas_that_could_take_long_are_refused_quickly(schema: dict[str, Any], why: str) -> None:
    began = time.perf_counter()
    problem = trouble(schema)
    assert time.perf_counter() - began < 0.1
    assert problem is not None
    assert why in problem


def test_nesting_without_measure_is_refused() -> None:
    schema: dict[str, Any] = {}
    for _ in range(60):
        schema = {"properties": {"a": schema}}
    assert "deeper" in str(trouble(schema))
    assert "parts" in str(trouble({"properties": {f"p{i}": {} for i in range(6000)}}))


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}},
        {"properties": {"children": {"type": "array", "items": REF}}},
        {"properties": {"left": REF, "right": REF}},
        {"properties": {"a": REF}, "additionalProperties": REF},
        {"anyOf": [{"properties": {"and": {"items": REF}}}, {"properties": {"or": {"items": REF}}}]},
        {"type": "object", "additionalProperties": {"$ref": "#/$defs/json"}, "$defs": {"json": {"anyOf": [
            {"type": ["string", "number"]},
            {"items": {"$ref": "#/$defs/json"}}, {"additionalProperties": {"$ref": "#/$defs/json"}}]}}},
        doubling(8),
        {"properties": {"a": True, "b": False, "$ref": {"type": "string"}, "enum": {"enum": ["x"]}}},
    ],
)  # fmt: skip
def test_usual_schemas_are_taken(schema: dict[str, Any]) -> None:
    assert trouble(schema) is None
    compile_schema(schema)


@pytest.mark.req("B17")
def test_what_is_taken_is_checked_quickly_also_for_hostile_values() -> None:
    value: Any = "a" * 50_000 + "!"
    checker = compile_schema({"properties": {"a": {"pattern": "^(a+)+$"}}})
    began = time.perf_counter()
    assert not checker.is_valid({"a": value})
    assert time.perf_counter() - began < 0.1
