"""Tools: immutable definitions, bounded schemas, validation errors that name each field."""

from __future__ import annotations

import weakref
from typing import Any

import jsonschema_rs
import orjson
import pytest

from tabhub.core.schemas.bounds import find_problem
from tabhub.core.schemas.portable import portable
from tabhub.core.schemas.validators import compile_schema
from tabhub.core.tools import BROWSER, HUB, Source, Tool, ToolResult
from tabhub.errors import BadInput

SHOP = Source("plugin", "shop")
ORDER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "item": {"type": "string", "minLength": 1},
        "count": {"type": "integer", "minimum": 1},
        "to": {"type": "object", "properties": {"zip": {"type": "string", "pattern": "^[0-9]{5}$"}}},
    },
    "required": ["item"],
    "additionalProperties": False,
}


def tool(schema: dict[str, Any], **more: Any) -> Tool:
    return Tool("shop_order", SHOP, "Order", schema, **more)


def problems(schema: dict[str, Any], arguments: dict[str, Any]) -> dict[str, str]:
    made = tool(schema)
    assert not made.accepts(arguments)
    error = made.invalid(arguments)
    assert error.outcome == "not_sent"
    return {each["field"]: each["problem"] for each in error.details()["errors"]}


@pytest.mark.req("S002-dispatch-01")
def test_valid_arguments_pass_and_the_schema_is_compiled_once() -> None:
    made = tool(ORDER)
    assert [made.compiled] == [None]
    assert made.accepts({"item": "tea", "count": 2, "to": {"zip": "12345"}})
    compiled = made.compiled
    assert made.accepts({"item": "tea"})
    assert made.compiled is compiled is not None
    assert tool(ORDER).accepts({"item": "tea"})


def test_tools_with_equal_schemas_share_a_validator_while_one_of_them_exists() -> None:
    one, other = tool(ORDER), tool(dict(ORDER))
    assert one.accepts({"item": "tea"})
    assert other.accepts({"item": "tea"})
    assert one.compiled is other.compiled is not None
    compiled = weakref.ref(one.compiled)
    del one
    assert compiled() is other.compiled
    del other
    assert compiled() is None


def test_every_invalid_field_is_named() -> None:
    found = problems(ORDER, {"item": "", "count": 0, "to": {"zip": "x"}, "colour": "red"})
    assert set(found) == {"item", "count", "to/zip", "arguments"}
    assert "colour" in found["arguments"]
    assert "item" in problems(ORDER, {})["arguments"]


def test_errors_name_the_valid_values() -> None:
    ways = {"properties": {"way": {"enum": ["post", "van", "bike", "foot"]}}}
    assert problems(ways, {"way": "car"})["way"] == '"car" is not one of "post", "van", "bike", "foot"'
    inner = {"properties": {"to": {**ways, "additionalProperties": False}}}
    assert problems(inner, {"to": {"wya": "van"}})["to"].endswith(
        "('wya' was unexpected); there is: way; did you mean way?"
    )
    assert "there is: item, count, to" in problems(ORDER, {"item": "tea", "cuont": 2})["arguments"]


def test_a_long_invalid_value_is_truncated_in_the_error() -> None:
    problem = problems({"properties": {"few": {"maxItems": 2}}}, {"few": ["x" * 100] * 10_000})["few"]
    assert len(problem) < 500
    assert problem.endswith("has more than 2 items")


def test_the_list_of_problems_is_bounded() -> None:
    schema = {"type": "object", "additionalProperties": {"type": "integer"}}
    assert len(problems(schema, {f"f{i}": "x" for i in range(1000)})) == 10


def test_a_tool_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        tool(ORDER).description = "other"  # type: ignore[misc]


def test_the_listing_contains_the_tools_declaration() -> None:
    made = tool(
        ORDER, title="Order", output_schema={"type": "object"}, annotations={"readOnlyHint": True}, meta={"a": 1}
    )
    assert made.listing() == {
        "name": "shop_order",
        "title": "Order",
        "description": "Order",
        "inputSchema": portable(ORDER),
        "outputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": True},
        "_meta": {"a": 1},
    }
    assert set(orjson.loads(tool(ORDER).wire)) == {"name", "description", "inputSchema"}


@pytest.mark.parametrize(
    ("annotations", "read_only"),
    [
        ({}, False),
        ({"readOnlyHint": True}, True),
        ({"idempotentHint": True}, False),
        ({"readOnlyHint": "true"}, False),
        ({"readOnlyHint": 1}, False),
    ],
)
def test_only_a_plain_true_makes_a_tool_read_only(annotations: dict[str, Any], read_only: bool) -> None:
    assert tool(ORDER, annotations=annotations).read_only is read_only


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "no such type"},
        {"type": 5},
        {"properties": []},
        {"required": "name"},
        {"pattern": "("},
        {"properties": {"a": {"pattern": "(?<=x)(a|aa)+$"}}},
        {"$ref": "https://example.com/schema.json"},
        {"properties": {"a": {"$ref": "http://127.0.0.1:1/x"}}},
        {"$ref": "file:///etc/passwd"},
        {"$ref": "#/no/such/place"},
        {"properties": {f"p{i}": {"description": "x" * 100} for i in range(2000)}},
    ],
    ids=[
        "unknown type",
        "type not a text",
        "properties not an object",
        "required not a list",
        "broken pattern",
        "pattern with look-behind",
        "reference to a site",
        "reference inside to a server",
        "reference to a file",
        "reference to nowhere",
        "200 KB",
    ],
)
def test_an_unusable_schema_is_refused_with_a_reason(schema: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="schema"):
        compile_schema(schema)


def test_an_oversized_schema_is_refused_before_it_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    def compile_nothing(*_: Any, **__: Any) -> None:
        raise AssertionError("a schema that is too large was compiled")

    monkeypatch.setattr(jsonschema_rs, "Draft202012Validator", compile_nothing)
    with pytest.raises(BadInput, match="larger than 200000 bytes"):
        compile_schema({"description": "x" * 200_000})


def test_arguments_that_make_other_engines_backtrack_are_refused_with_a_short_message() -> None:
    found = problems(
        {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}, {"a": "a" * 50_000 + "!"}
    )
    assert list(found) == ["a"]
    assert "^(a+)+$" in found["a"]
    assert len(found["a"]) < 500


def test_a_recursive_schema_is_accepted() -> None:
    tree = {"type": "object", "properties": {"child": {"$ref": "#"}}, "additionalProperties": False}
    made = tool(tree)
    assert made.accepts({"child": {"child": {"child": {}}}})
    assert not made.accepts({"child": {"child": {"other": {}}}})


def test_a_reference_cycle_does_not_hang() -> None:
    schema = {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}
    compile_schema(schema).is_valid({})
    assert find_problem(schema) == "the schema refers to itself without end"  # so none from outside is compiled


def test_sources_are_named_by_kind_and_key() -> None:
    assert [str(BROWSER), str(HUB), str(SHOP)] == ["browser", "hub", "plugin:shop"]


def test_results_are_encoded_once_in_the_form_of_mcp() -> None:
    assert orjson.loads(ToolResult.text("hi").payload) == {"content": [{"type": "text", "text": "hi"}]}
    failed = ToolResult.text("no", is_error=True)
    assert failed.is_error
    assert orjson.loads(failed.payload)["isError"] is True


def test_a_copy_with_another_description_is_otherwise_the_same_tool() -> None:
    made = tool({"type": "object", "properties": {"a": {"type": "string"}}})
    assert made.accepts({})
    again = made.changed(description="other words", meta={"x": 1})
    assert (again.name, again.input_schema, again.schema) == (made.name, made.input_schema, made.schema)
    assert orjson.loads(again.wire) == {**orjson.loads(made.wire), "description": "other words", "_meta": {"x": 1}}
    assert made.description != "other words"
