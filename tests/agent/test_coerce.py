"""Converting text values to the types of a schema, and the errors where that fails."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabhub.agent.coerce import coerce
from tabhub.agent.xml import plain


def read(text: str, spec: Any) -> Any:
    arguments, problems = coerce([("x", text)], {"properties": {"x": spec}, "$defs": {"n": {"type": "integer"}}})
    assert not problems, problems
    return arguments["x"]


@pytest.mark.parametrize(
    ("text", "spec", "value"),
    [
        ("5", {"type": "string"}, "5"),
        (" 5 ", {"type": "integer"}, 5),
        ("5.0", {"type": "integer"}, 5),
        ("5.5", {"type": "number"}, 5.5),
        ("-3", {"type": "number"}, -3),
        ("True", {"type": "boolean"}, True),
        ("false", {"type": "boolean"}, False),
        ('["a", 1]', {"type": "array"}, ["a", 1]),
        ('\n{"a": {}}\n', {"type": "object"}, {"a": {}}),
        ("null", {"type": ["string", "null"]}, None),
        ("none", {"type": ["string", "null"]}, "none"),
        ("7", {"type": ["string", "integer"]}, 7),
        ("7", {"anyOf": [{"type": "string"}, {"type": "null"}]}, "7"),
        ("7", {"anyOf": [{"type": "integer"}, {"type": "null"}]}, 7),
        ("2", {"enum": [1, 2]}, 2),
        ("b", {"enum": ["a", "b"]}, "b"),
        ("true", {"const": True}, True),
        ("4", {"$ref": "#/$defs/n"}, 4),
        ("4", {"$ref": "#/$defs/gone"}, "4"),
        ("4", {}, "4"),
        ("4", True, "4"),
        ("[1]", {"type": "date"}, "[1]"),
    ],
)
def test_a_text_is_converted_to_the_type_of_its_schema(text: str, spec: Any, value: Any) -> None:
    found = read(text, spec)
    assert (found, type(found)) == (value, type(value))


def test_an_unknown_parameter_stays_a_string() -> None:
    assert coerce([("other", "1")], {"properties": {"x": {"type": "integer"}}}) == ({"other": "1"}, [])
    assert coerce([("other", "1")], {}) == ({"other": "1"}, [])


@pytest.mark.parametrize(
    ("text", "spec", "problem_text"),
    [
        ("soon", {"type": "integer"}, "a whole number, not 'soon'."),
        ("1.5", {"type": "integer"}, "a whole number, not '1.5'."),
        ("NaN", {"type": "number"}, "a number, not 'NaN'."),
        ("9" * 5000, {"type": "number"}, "a number, not '9999"),
        ("yes", {"type": "boolean"}, "true or false, not 'yes'."),
        ("a, b", {"type": "array"}, "a JSON array such as [1, 2], not 'a, b'."),
        ("[" * 100_000, {"type": "array"}, "a JSON array"),
        ("[1]", {"type": "object"}, 'a JSON object such as {"key": "value"}, not \'[1]\'.'),
        ("x", {"type": ["integer", "null"]}, "a whole number or null, not 'x'."),
    ],
)
def test_unconvertible_text_is_reported_with_the_expected_type(text: str, spec: Any, problem_text: str) -> None:
    arguments, (problem,) = coerce([("x", text)], {"properties": {"x": spec}})
    assert arguments == {}
    assert problem.startswith("The parameter 'x' must be ")
    assert problem_text in problem


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner, max_size=3)))
def test_a_value_formatted_as_text_is_converted_back(value: Any) -> None:
    kinds = {type(None): "null", bool: "boolean", int: "integer", str: "string", list: "array"}
    assert json.loads(json.dumps(read(plain(value), {"type": kinds[type(value)]}))) == value
