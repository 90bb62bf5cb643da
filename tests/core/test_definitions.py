"""What agents are shown of definitions from outside: known keywords, readable texts, no hidden characters."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabhub.core.definitions import shown_annotations, shown_output_schema, shown_schema, shown_text
from tabhub.errors import BadInput
from tabhub.trust.hidden_text import find_hidden

TAG = "\U000e0041"
RICH: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "title": "Order",
    "description": "An order.\nWith a second line.",
    "properties": {
        "separator": {"enum": [",", "\t", "\n"], "default": "\t"},
        "item": {"anyOf": [{"$ref": "#/$defs/item"}, {"const": None}], "examples": ["tea"]},
        "rows": {"type": "array", "prefixItems": [{"type": "string"}], "items": False, "minItems": 1},
        "agent": {"type": "string", "x-mcp-header": "Agent"},
    },
    "required": ["item"],
    "patternProperties": {"^x-": {"type": "string", "pattern": "^[a-z]+$", "format": "uri"}},
    "additionalProperties": {"not": {"type": "null"}},
    "dependentRequired": {"item": ["rows"]},
    "$defs": {"item": {"type": "string", "maxLength": 9, "deprecated": True}},
}


def test_an_ordinary_schema_is_shown_as_it_is() -> None:
    assert shown_schema(RICH) == RICH


@pytest.mark.req("B28")
@pytest.mark.parametrize(
    "part",
    [
        {"properties": {f"a{TAG}": {}}},
        {"patternProperties": {f"a{TAG}": {}}},
        {"required": [f"a{TAG}"]},
        {"properties": {"a": {"enum": ["x", f"y{TAG}"]}}},
        {"properties": {"a": {"const": {"deep": [f"y{TAG}"]}}}},
        {"properties": {"a": {"default": {f"k{TAG}": 1}}}},
        {"items": {"examples": [f"y{TAG}"]}},
        {"anyOf": [{"pattern": f"^{TAG}$"}]},
        {"properties": {"a": {"format": f"date{TAG}"}}},
        {"properties": {"a": {"type": f"string{TAG}"}}},
        {"$defs": {f"a{TAG}": {}}},
        {"dependentRequired": {f"a{TAG}": []}},
        {"if": {"properties": {"a": {"const": "\u202e"}}}},
        {"properties": {"a\nb": {}}},
        {"properties": {"a": {"x-mcp-header": f"A{TAG}"}}},
    ],
    ids=str,
)
def test_hidden_characters_outside_of_texts_refuse_the_definition(part: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match=r"contains a hidden character \(U\+"):
        shown_schema(part)


@pytest.mark.req("B28")
def test_hidden_characters_in_texts_are_written_out_wherever_the_text_is() -> None:
    hidden = f"Buy{TAG}\u202e"
    texts = {"title": hidden, "description": hidden, "$comment": hidden}
    shown = shown_schema({**texts, "properties": {"description": texts}, "items": [texts], "allOf": [texts]})
    written = dict.fromkeys(texts, "Buy\\u{E0041}\\u{202E}")
    assert shown == {**written, "properties": {"description": written}, "items": [written], "allOf": [written]}
    assert shown_annotations({"title": hidden, "icons": [{"src": hidden}], "n": 1}) == {
        "title": written["title"], "icons": [{"src": written["title"]}], "n": 1
    }  # fmt: skip
    with pytest.raises(BadInput):
        shown_annotations({"a": {f"k{TAG}": 1}})


@pytest.mark.req("B28")
def test_unknown_keywords_are_dropped_and_properties_of_that_name_are_not() -> None:
    strange = {"x-note": f"hi{TAG}", "x-order": 1, "markdownDescription": "m", "components": {"a": {}}}
    shown = shown_schema({"type": "object", **strange, "properties": {"x-note": {"type": "string", **strange}}})
    assert shown == {"type": "object", "properties": {"x-note": {"type": "string"}}}


def test_an_output_schema_that_refers_to_what_is_not_shown_says_only_that_it_is_an_object() -> None:
    assert shown_output_schema(RICH) == RICH
    refers = {"type": "object", "properties": {"a": {"$ref": "#/components/a"}}, "components": {"a": {}}}
    assert shown_output_schema(refers) == {"type": "object"}


def test_a_text_is_cut_after_it_is_written_out() -> None:
    assert shown_text("word " * 10, 9) == "word wor…"
    assert len(shown_text(TAG * 10_000, 50)) <= 50


ODD = st.sampled_from([TAG, "\u202e", "\u200b", "\u2066", "\x07", "\U000e0100", "\ufeff", "a", "é", " ", "\n"])
TEXT = st.lists(ODD, max_size=4).map("".join)
KEYWORDS = st.sampled_from(
    [*RICH, "enum", "const", "default", "examples", "pattern", "items", "anyOf", "x-a", "$comment", "_meta", "not"]
)
SCHEMAS = st.recursive(
    st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYWORDS | TEXT, inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.req("B28")
@given(st.dictionaries(KEYWORDS, SCHEMAS, max_size=5))
def test_no_schema_that_is_shown_has_a_hidden_character(schema: dict[str, Any]) -> None:
    try:
        shown = shown_schema(schema)
    except BadInput:
        return
    assert find_hidden(json.dumps(shown, ensure_ascii=False)) is None
    assert shown_schema(shown) == shown
