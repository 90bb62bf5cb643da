"""The check of tool schemas: the built-in tools pass, and each rule finds what it is for."""

from __future__ import annotations

from typing import Any

import pytest

from tabhub.core.tools import HUB, Tool
from tests.check_tool_schemas import built_in, main, own_problems, problems


@pytest.mark.req("C1")
def test_the_built_in_tools_are_accepted_by_every_api() -> None:
    assert main() == 0
    assert len({tool.name for tool in built_in()}) > 95


@pytest.mark.req("C1")
@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({"type": "object"}, "must be an object with properties"),
        ({"type": "object", "properties": {}, "anyOf": []}, "no anyOf at the top"),
        ({"type": "object", "properties": {}, "oneOf": []}, "oneOf is not understood"),
        ({"type": "object", "properties": {}, "additionalProperties": False}, "must be an object (Gemini)"),
        ({"type": "object", "properties": {"a": {}}}, "must have one type"),
        ({"type": "object", "properties": {"a": {"type": ["string", "null"]}}}, "must have one type"),
        ({"type": "object", "properties": {"a": {"type": "array"}}}, "without items"),
        ({"type": "object", "properties": {"a": {"type": "integer", "enum": [1]}}}, "enum is not understood"),
        ({"type": "object", "properties": {"a": {"type": "string", "enum": [""]}}}, "enum of other values"),
        ({"type": "object", "properties": {"a": {"type": "string", "format": "uri"}}}, "the format 'uri'"),
        ({"type": "object", "properties": {"a": {"$ref": "#"}}}, "must have one type"),
        ({"type": "object", "properties": {"a b": {"type": "string"}}}, "the property 'a b'"),
        ({"type": "object", "properties": {}, "required": ["a"]}, "required but not a property"),
    ],
)
def test_what_an_api_refuses_is_found(schema: dict[str, Any], problem: str) -> None:
    assert problem in "; ".join(problems({"name": "t", "inputSchema": schema}))


@pytest.mark.parametrize("name", ["a b", "ü", "x" * 65, ""])
def test_names_that_an_api_refuses_are_found(name: str) -> None:
    assert "the name" in "; ".join(problems({"name": name, "inputSchema": {"type": "object", "properties": {}}}))


@pytest.mark.parametrize(
    ("field", "problem"),
    [({"type": "array"}, "what its items are"), ({"description": "x"}, "nothing of what it takes")],
)
def test_a_built_in_tool_says_what_its_arguments_are(field: dict[str, Any], problem: str) -> None:
    tool = Tool("t", HUB, "x", {"type": "object", "properties": {"a": {"type": "array", "items": field}}})
    assert problem in "; ".join(own_problems(tool))


def test_long_names_and_descriptions_of_built_in_tools_are_found() -> None:
    assert len(list(own_problems(Tool("t" * 60, HUB, "x" * 1025)))) == 2
