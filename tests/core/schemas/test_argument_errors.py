"""Argument errors: they name the argument, what was given, what is allowed, and give an example."""

from __future__ import annotations

from typing import Any

import pytest

from tabhub.core.schemas.argument_errors import explain_arguments
from tabhub.core.tools import BROWSER, Tool

POINT = {
    "type": "object",
    "properties": {
        "action": {"enum": ["move", "click"]},
        "x": {"type": "number", "minimum": 0, "description": "CSS pixels"},
        "keys": {"type": "array", "items": {"enum": ["Alt", "Shift"]}},
        "at": {"type": "object", "properties": {"url": {"type": "string"}}, "required": ["url"]},
    },
    "required": ["action", "x", "at"],
    "additionalProperties": False,
}


def text(arguments: dict[str, Any]) -> str:
    return Tool("use_mouse", BROWSER, "Use the mouse", POINT).invalid(arguments).text()


@pytest.mark.req("A12")
def test_the_arguments_of_the_tool_and_an_example_follow_the_problem() -> None:
    error = text({"action": "move", "x": "left", "at": {"url": "u"}})
    assert 'x: "left" is not of type "number" (CSS pixels)' in error
    assert 'Arguments: action ("move" | "click"), x (number), keys? (list of "Alt" | "Shift"), at (object).' in error
    assert error.endswith('Example: {"action":"move","x":0,"at":{"url":"https://example.com/"}}.')


def test_a_misspelt_argument_is_answered_with_the_one_that_is_meant() -> None:
    assert "did you mean action?" in text({"acton": "move", "x": 1, "at": {"url": "u"}})


def test_unusual_schemas_are_explained_as_far_as_possible() -> None:
    schemas: list[tuple[dict[str, Any], str]] = [
        ({}, ""),
        ({"type": "object", "additionalProperties": False}, "It takes no arguments."),
        ({"properties": {"any": True}, "required": ["any"]}, 'Arguments: any (any). Example: {"any":"…"}.'),
        (
            {"properties": {"a": {"type": ["string", "null"]}}, "required": ["a"]},
            'Arguments: a (string or null). Example: {"a":"text"}.',
        ),
        ({"properties": {"a": {"const": 7}}, "required": ["a", 3]}, 'Arguments: a (any). Example: {"a":7}.'),
    ]
    for schema, expected in schemas:
        assert explain_arguments(schema) == expected
