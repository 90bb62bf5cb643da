"""Untrusted schemas: those that could be slow are rejected before a value is checked against them."""

from __future__ import annotations

from collections import Counter
from collections.abc import ItemsView
from typing import Any

import jsonschema_rs
import pytest

from tabhub.core.schemas.bounds import MAX_NODES, MAX_PATTERNS, find_problem
from tabhub.core.schemas.validators import compile_schema
from tabhub.errors import BadInput

REF = {"$ref": "#"}


class CountedSchema(dict[str, Any]):
    """A schema that counts how often it and each schema inside it is read."""

    def __init__(self, schema: dict[str, Any], reads: Counter[int] | None = None) -> None:
        self.reads: Counter[int] = Counter() if reads is None else reads
        super().__init__({word: self._counted(value) for word, value in schema.items()})

    def _counted(self, value: Any) -> Any:
        if isinstance(value, dict):
            return CountedSchema(value, self.reads)
        return [self._counted(item) for item in value] if isinstance(value, list) else value

    def items(self) -> ItemsView[str, Any]:  # type: ignore[override]
        self.reads[id(self)] += 1
        return super().items()


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
        ({"properties": {"a": {"$ref": "https://evil.example/s.json"}}}, "another document"),
        ({"properties": {"a": {"$ref": "file:///etc/passwd"}}}, "another document"),
        ({"properties": {"a": {"$ref": "#/$defs/none"}}}, "not a part"),
        ({"properties": {"a": {"$dynamicRef": "#x"}}}, "not supported"),
        ({"properties": {f"p{i}": {"pattern": "(a{90}){90}"} for i in range(65)}}, "patterns"),
        ({"pattern": "a" * 1001}, "patterns"),
    ],
)
def test_slow_schemas_are_rejected_after_reading_each_part_once(schema: dict[str, Any], why: str) -> None:
    counted = CountedSchema(schema)
    problem = find_problem(counted)
    assert why in str(problem)
    assert set(counted.reads.values()) <= {1}, "a part of the schema was read again for each reference to it"


def test_reading_a_schema_stops_at_the_bound_it_exceeds() -> None:
    wide = CountedSchema({"properties": {f"p{i}": {"title": "x"} for i in range(20_000)}})
    assert "parts" in str(find_problem(wide))
    assert len(wide.reads) <= MAX_NODES + 1
    patterns = CountedSchema({"properties": {f"p{i}": {"pattern": "a"} for i in range(1000)}})
    assert "patterns" in str(find_problem(patterns))
    assert len(patterns.reads) <= MAX_PATTERNS + 2  # plus the schema itself and its list of properties


def test_excessive_nesting_is_rejected() -> None:
    schema: dict[str, Any] = {}
    for _ in range(60):
        schema = {"properties": {"a": schema}}
    assert "deeper" in str(find_problem(schema))
    assert "parts" in str(find_problem({"properties": {f"p{i}": {} for i in range(6000)}}))


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
def test_ordinary_schemas_are_accepted(schema: dict[str, Any]) -> None:
    assert find_problem(schema) is None
    compile_schema(schema)


@pytest.mark.req("B17")
@pytest.mark.parametrize(
    "pattern",
    [r"(a+)+\1", "(?=a)a+$", "(?!b)a+$", "(?<=x)(a|aa)+$", "(?<!x)a+$", "(a{90}){90}"],
    ids=["back reference", "look-ahead", "negated", "look-behind", "negated behind", "huge automaton"],
)
def test_only_patterns_of_the_linear_time_engine_are_accepted(pattern: str) -> None:
    with pytest.raises(BadInput, match="not valid JSON Schema"):
        compile_schema({"properties": {"a": {"pattern": pattern}}})
    jsonschema_rs.Draft202012Validator({"pattern": pattern})  # a backtracking engine would accept it


@pytest.mark.req("B17")
def test_a_pattern_that_makes_other_engines_backtrack_is_checked_in_full() -> None:
    checker = compile_schema({"properties": {"a": {"pattern": "^(a+)+$"}}})
    assert checker.is_valid({"a": "a" * 50_000})
    assert not checker.is_valid({"a": "a" * 50_000 + "!"})
