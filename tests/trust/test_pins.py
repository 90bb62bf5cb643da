from __future__ import annotations

from typing import Any

import pytest

from tabhub.trust.pins import Pin, definition, describe_hidden, diff, fingerprint, spell_hidden

SAID: dict[str, Any] = {"name": "t", "description": "Does it.", "input_schema": {"type": "object", "a": 1, "b": [2]}}


def test_the_order_of_keys_does_not_matter_and_everything_else_does() -> None:
    mark = fingerprint(definition(**SAID))
    assert fingerprint(definition(**{**SAID, "input_schema": {"b": [2], "a": 1, "type": "object"}})) == mark
    for change in (
        {"description": "Does it!"},
        {"input_schema": {"type": "object"}},
        {"output_schema": {"type": "object"}},
        {"annotations": {"readOnlyHint": True}},
        {"title": "T"},
        {"version": "2"},
        {"name": "u"},
    ):
        assert fingerprint(definition(**{**SAID, **change})) != mark


def test_a_change_is_described_as_a_diff() -> None:
    told = diff(definition(**SAID), definition(**{**SAID, "description": "Does more."}))
    assert told.startswith("--- approved\n+++ now")
    assert '-  "Does it."' in told
    assert '+  "Does more."' in told


@pytest.mark.parametrize("character", ["\u200b", "\u202e", "\u2066", "\U000e0041", "\ufeff", "\x07", "\ufe01"])
def test_hidden_characters_are_spelled_out_and_reported(character: str) -> None:
    new = definition(**{**SAID, "description": f"Does it.{character}"})
    told = diff(definition(**SAID), new)
    if character != "\x07":  # JSON spells that one out itself
        assert character not in told
        assert f"U+{ord(character):04X}" in told.split("\n")[0]
    assert "Does it." in told


def test_visible_characters_are_unchanged() -> None:
    assert spell_hidden("Grüße, 世界 ✓") == "Grüße, 世界 ✓"
    assert describe_hidden("Grüße\n世界") == ""


def test_a_long_change_is_cut() -> None:
    told = diff("a", "\n".join(str(n) for n in range(20_000)))
    assert len(told) < 21_000
    assert "characters more" in told


def test_several_definitions_of_one_tool_can_be_approved() -> None:
    pin = Pin(("a",), "A")
    for mark in "bcdef":
        pin = pin.with_form(mark, mark.upper())
    assert [pin.has(mark) for mark in "abcdef"] == [False, True, True, True, True, True]
    assert pin.text == "F"
    assert pin.with_form("b", "B").fingerprints == ("c", "d", "e", "f", "b")
