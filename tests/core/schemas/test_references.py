"""References inside schemas: identifiers and dynamic references become plain pointers, nothing outside is read."""

from __future__ import annotations

from typing import Any

import pytest

from tabhub.core.schemas.bounds import find_problem
from tabhub.core.schemas.references import resolved
from tabhub.core.schemas.validators import compile_schema
from tabhub.errors import BadInput

TREE: dict[str, Any] = {
    "$id": "https://example.com/tree",
    "$dynamicAnchor": "node",
    "type": "object",
    "properties": {"data": True, "children": {"type": "array", "items": {"$dynamicRef": "#node"}}},
}
STRICT_TREE = {
    "$id": "https://example.com/strict",
    "$dynamicAnchor": "node",
    "$ref": "tree",
    "unevaluatedProperties": False,
    "$defs": {"tree": TREE},
}
BUNDLE = {
    "$id": "https://example.com/root.json",
    "properties": {
        "text": {"$ref": "item.json"},
        "number": {"$ref": "item.json#/$defs/n"},
        "whole": {"$ref": "https://example.com/root.json#/$defs/item"},
    },
    "$defs": {"item": {"$id": "item.json", "type": "string", "$defs": {"n": {"type": "number"}}}},
}


@pytest.mark.req("C4")
@pytest.mark.parametrize(
    ("schema", "valid", "invalid"),
    [
        ({"properties": {"a": {"$ref": "#x"}}, "$defs": {"d": {"$anchor": "x", "enum": ["s"]}}}, {"a": "s"}, {"a": 1}),
        ({"properties": {"a": {"$ref": "b"}}, "$defs": {"d": {"$id": "b", "type": "string"}}}, {"a": "s"}, {"a": 1}),
        (
            {"properties": {"a": {"$ref": "urn:b"}}, "$defs": {"d": {"$id": "urn:b", "items": {"$ref": "#/$defs/n"},
             "$defs": {"n": {"type": "number"}}}}},
            {"a": [1]}, {"a": ["s"]},
        ),
        (BUNDLE, {"text": "s", "number": 1, "whole": "s"}, {"number": "s"}),
        (TREE, {"children": [{"data": 1}]}, {"children": [1]}),
        (STRICT_TREE, {"children": [{"data": 1}]}, {"children": [{"daat": 1}]}),
        ({"properties": {"a/b~": {"$anchor": "x", "type": "string"}, "c": {"$ref": "#x"}}}, {"c": "s"}, {"c": 1}),
    ],
)  # fmt: skip
def test_identifiers_and_dynamic_references_become_plain_pointers(
    schema: dict[str, Any], valid: Any, invalid: Any
) -> None:
    plain = resolved(schema)
    assert find_problem(plain) is None
    ours, theirs = compile_schema(plain), compile_schema(schema)
    assert (ours.is_valid(valid), ours.is_valid(invalid)) == (True, False)
    assert (theirs.is_valid(valid), theirs.is_valid(invalid)) == (True, False)


def test_a_schema_with_plain_references_stays_as_it_is() -> None:
    schema = {"properties": {"a": {"$ref": "#/$defs/d"}, "$id": {"type": "string"}}, "$defs": {"d": {}}}
    assert resolved(schema) is schema


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"$id": "https://a.example/s", "properties": {"a": {"$ref": "https://b.example/s"}}}, "another document"),
        ({"$id": "x", "properties": {"a": {"$ref": "#none"}}}, "not a part"),
        ({"$id": "x", "properties": {"a": {"$ref": "#/title"}}, "title": "T"}, "not a part"),
        ({"$defs": {"a": {"$id": "x"}, "b": {"$id": "x"}}}, "twice"),
        ({"$defs": {"a": {"$anchor": "x"}, "b": {"$anchor": "x"}}}, "invalid $anchor"),
        ({"$defs": {"a": {"$id": "x", "$schema": "http://json-schema.org/draft-04/schema#"}}}, "not supported"),
        ({"$id": "x", "properties": {"a": {"$ref": 5}}}, "invalid reference"),
        (
            {"$ref": "strict", "$defs": {"a": TREE, "b": {**STRICT_TREE, "$defs": {}}, "c": {"$id": "strict"}}},
            "several meanings",
        ),
    ],
)
def test_references_out_of_the_schema_or_without_one_meaning_are_refused(schema: dict[str, Any], why: str) -> None:
    with pytest.raises(BadInput) as refused:
        resolved(schema)
    assert why in refused.value.message
