"""Pins: fingerprints of definitions, and the description of a change."""

from __future__ import annotations

from typing import Any

import pytest

from tabhub.trust.pins import Pin, definition, describe_hidden, diff, fingerprint, spell_hidden

DEFINITION: dict[str, Any] = {
    "name": "t",
    "description": "Does it.",
    "input_schema": {"type": "object", "a": 1, "b": [2]},
}


def test_the_order_of_keys_does_not_matter_and_everything_else_does() -> None:
    mark = fingerprint(definition(**DEFINITION))
    assert fingerprint(definition(**{**DEFINITION, "input_schema": {"b": [2], "a": 1, "type": "object"}})) == mark
    for change in (
        {"description": "Does it!"},
        {"input_schema": {"type": "object"}},
        {"output_schema": {"type": "object"}},
        {"annotations": {"readOnlyHint": True}},
        {"title": "T"},
        {"version": "2"},
        {"name": "u"},
    ):
        assert fingerprint(definition(**{**DEFINITION, **change})) != mark


def test_a_change_is_described_as_a_diff() -> None:
    text = diff(definition(**DEFINITION), definition(**{**DEFINITION, "description": "Does more."}))
    assert text.startswith("--- approved\n+++ now")
    assert '-  "Does it."' in text
    assert '+  "Does more."' in text


@pytest.mark.parametrize("character", ["\u200b", "\u202e", "\u2066", "\U000e0041", "\ufeff", "\x07", "\ufe01"])
def test_hidden_characters_are_spelled_out_and_reported(character: str) -> None:
    new = definition(**{**DEFINITION, "description": f"Does it.{character}"})
    text = diff(definition(**DEFINITION), new)
    if character != "\x07":  # JSON escapes that one itself
        assert character not in text
        assert f"U+{ord(character):04X}" in text.split("\n")[0]
    assert "Does it." in text


def test_visible_characters_are_unchanged() -> None:
    assert spell_hidden("Grüße, 世界 ✓") == "Grüße, 世界 ✓"
    assert describe_hidden("Grüße\n世界") == ""


def test_a_long_change_is_cut() -> None:
    text = diff("a", "\n".join(str(n) for n in range(20_000)))
    assert len(text) < 21_000
    assert "characters more" in text


def test_several_definitions_of_one_tool_can_be_approved() -> None:
    pin = Pin(("a",), "A")
    for mark in "bcdef":
        pin = pin.with_definition(mark, mark.upper())
    assert [pin.has(mark) for mark in "abcdef"] == [False, True, True, True, True, True]
    assert pin.text == "F"
    assert pin.with_definition("b", "B").fingerprints == ("c", "d", "e", "f", "b")
