"""The listed form of schemas: what every model API accepts, whatever the original says."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabhub.core.schemas.portable import portable
from tabhub.core.tools import Source, Tool
from tests.check_tool_schemas import problems

PAGE = Source("page", "https://example.com")
ANY = {"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "boolean"}, {"type": "object"},
                 {"type": "array", "items": {"type": "string"}}]}  # fmt: skip


@pytest.mark.req("C1")
@pytest.mark.parametrize(
    ("original", "listed"),
    [
        ({}, ANY),
        (True, ANY),
        ({"enum": ["a", "b"]}, {"type": "string", "enum": ["a", "b"]}),
        ({"const": "a"}, {"type": "string", "enum": ["a"]}),
        ({"enum": [1, 2, 3]}, {"type": "integer", "minimum": 1, "maximum": 3}),
        ({"enum": [1, 5], "description": "Step"}, {"type": "integer", "description": "Step (one of: [1,5])"}),
        ({"enum": ["a", None]}, {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "null"}]}),
        ({"enum": ["", "a"]}, {"type": "string", "description": '(one of: ["","a"])'}),
        ({"type": "array"}, {"type": "array", "items": ANY}),
        ({"type": "array", "items": True, "uniqueItems": True}, {"type": "array", "items": ANY}),
        ({"items": {"minLength": 1}}, {"type": "array", "items": {"type": "string", "minLength": 1}}),
        (
            {"type": ["string", "array"], "items": {"type": "string"}, "maxLength": 9, "description": "d"},
            {"description": "d", "anyOf": [{"type": "string", "maxLength": 9},
                                           {"type": "array", "items": {"type": "string"}}]},
        ),
        ({"type": "string", "format": "uri"}, {"type": "string", "description": "(format: uri)"}),
        ({"type": "string", "format": "date-time"}, {"type": "string", "format": "date-time"}),
        ({"type": "number", "exclusiveMinimum": 0}, {"type": "number", "description": "(exclusiveMinimum: 0)"}),
        ({"oneOf": [{"type": "string"}, {"type": "number"}]}, {"anyOf": [{"type": "string"}, {"type": "number"}]}),
        ({"oneOf": [{"const": "a"}, {"const": "b"}]}, {"type": "string", "enum": ["a", "b"]}),
        ({"allOf": [{"$ref": "#/$defs/text"}, {"maxLength": 5}]}, {"type": "string", "minLength": 2, "maxLength": 5}),
        ({"$ref": "#/$defs/text", "description": "d"}, {"type": "string", "minLength": 2, "description": "d"}),
        (
            {"type": "object", "properties": {"a b": {}, "c": {"type": "null"}}, "required": ["a b"]},
            {"type": "object", "properties": {"c": {"type": "null"}}, "description": '(also: ["a b"])'},
        ),
        ({"type": "object", "additionalProperties": False}, {"type": "object"}),
        (
            {"additionalProperties": {"type": "string"}},
            {"type": "object", "additionalProperties": {"type": "string"}},
        ),
        (
            {"prefixItems": [{"type": "string"}, {"type": "number"}], "items": False},
            {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "number"}]}},
        ),
        (
            {"$ref": "#/$defs/tree"},
            {"type": "object", "properties": {"children": {"type": "array", "items": {"type": "object"}}}},
        ),
    ],
)  # fmt: skip
def test_an_argument_is_listed_as_every_api_accepts_it(original: Any, listed: dict[str, Any]) -> None:
    tree = {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}}
    schema = {"properties": {"x": original}, "$defs": {"text": {"type": "string", "minLength": 2}, "tree": tree}}
    tool = Tool("t", PAGE, "", schema)
    shown = tool.listing()["inputSchema"]
    assert shown == {"type": "object", "properties": {"x": listed}}
    assert list(problems(tool.listing())) == []
    assert portable(shown) == shown


@pytest.mark.parametrize(
    ("original", "listed"),
    [
        ({"type": "object"}, {"type": "object", "properties": {}}),
        (
            {"oneOf": [
                {"properties": {"kind": {"const": "a"}, "size": {"type": "integer"}}, "required": ["kind", "size"]},
                {"properties": {"kind": {"const": "b"}}, "required": ["kind"]},
            ]},
            {"type": "object", "properties": {"kind": {"type": "string", "enum": ["a", "b"]},
                                              "size": {"type": "integer"}}, "required": ["kind"]},
        ),
        (
            {"properties": {"a": {"type": "string"}}, "required": ["a"],
             "allOf": [{"properties": {"b": {"type": "string"}}, "required": ["b"]}],
             "if": {"properties": {"a": {"const": "x"}}}, "then": {"properties": {"c": {"type": "null"}}}},
            {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}, "c": {"type": "null"}},
             "required": ["b", "a"]},
        ),
        (
            {"properties": {"a": {"type": "string"}, "b": {"type": "string"}},
             "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
            {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}},
        ),
        (
            {"$ref": "#/$defs/d", "$defs": {"d": {"properties": {"a": {"type": "string"}}, "required": ["a"]}}},
            {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
        ),
    ],
)  # fmt: skip
def test_arguments_are_listed_as_one_object_without_alternatives_at_the_top(
    original: dict[str, Any], listed: dict[str, Any]
) -> None:
    shown = portable(original)
    assert {**shown, "required": set(shown.get("required", ()))} == {
        **listed,
        "required": set(listed.get("required", ())),
    }


@pytest.mark.req("C1")
def test_validation_uses_the_original_schema() -> None:
    schema = {"type": "object", "properties": {"a": {"enum": [1, 5]}}, "anyOf": [{"required": ["a"]}],
              "additionalProperties": False}  # fmt: skip
    tool = Tool("t", PAGE, "", schema)
    assert [tool.accepts(each) for each in ({"a": 1}, {"a": 2}, {}, {"a": 1, "b": 1})] == [True, False, False, False]


def test_marks_of_arguments_that_are_repeated_in_headers_are_listed() -> None:
    marked = {"type": "string", "enum": ["a"], "x-mcp-header": "Region"}
    tool = Tool("t", PAGE, "", {"type": "object", "properties": {"a": marked}})
    assert tool.listing()["inputSchema"]["properties"]["a"] == marked
    assert tool.param_headers


def test_references_cannot_make_a_listing_much_longer_than_the_schema() -> None:
    text = {"type": "string", "description": "x" * 20_000}
    schema = {"properties": {f"p{i}": {"$ref": "#/$defs/d"} for i in range(500)}, "$defs": {"d": text}}
    assert len(orjson.dumps(portable(schema))) < 4 * len(orjson.dumps(schema))


values = st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-2, 2) | st.sampled_from(["", "a", "b"])
types = st.sampled_from(["string", "number", "integer", "boolean", "null", "array", "object"])
names = st.sampled_from(["a", "b", "a b", "$ref", "x" * 70])


def _schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    fields = {
        "type": types | st.lists(types, min_size=1, max_size=3, unique=True),
        "enum": st.lists(values, min_size=1, max_size=3),
        "const": values,
        "properties": st.dictionaries(names, inner, max_size=2),
        "required": st.lists(names, max_size=2, unique=True),
        "items": inner,
        "prefixItems": st.lists(inner, min_size=1, max_size=2),
        "additionalProperties": inner,
        "description": st.just("d"),
        "format": st.sampled_from(["uri", "date-time"]),
        "minimum": st.integers(0, 3),
        "$ref": st.sampled_from(["#", "#/$defs/a", "#/properties/a"]),
        **dict.fromkeys(("anyOf", "oneOf", "allOf"), st.lists(inner, min_size=1, max_size=2)),
        **dict.fromkeys(("if", "then", "not"), inner),
    }
    return st.fixed_dictionaries({}, optional=fields)


@given(st.recursive(st.booleans(), _schemas, max_leaves=12).filter(lambda schema: isinstance(schema, dict)))
def test_whatever_the_schema_its_listing_is_accepted_and_stays_the_same(schema: dict[str, Any]) -> None:
    shown = portable(schema)
    assert list(problems({"name": "t", "inputSchema": shown})) == []
    assert portable(shown) == shown
