"""Keys by name, and the key events of a text."""

from __future__ import annotations

import pytest

from tabhub.browser.elements import keys, pointer
from tabhub.errors import InvalidArguments


@pytest.mark.parametrize(
    ("given", "modifiers", "key", "bits_expected"),
    [
        ("Enter", [], "Enter", 0),
        ("enter", [], "Enter", 0),
        ("esc", [], "Escape", 0),
        ("a", [], "a", 0),
        ("A", [], "A", 8),
        ("Control+A", [], "a", 2),
        ("ctrl+shift+ArrowLeft", [], "ArrowLeft", 10),
        ("a", ["Control"], "a", 2),
        ("Shift+a", [], "A", 8),
        ("Control++", [], "+", 10),
        ("+", [], "+", 8),
        ("Space", [], " ", 0),
        (" ", [], " ", 0),
        ("?", [], "?", 8),
        ("ö", [], "ö", 0),
        ("F5", [], "F5", 0),
        ("Meta+c", [], "c", 4),
    ],
)
def test_a_key_is_parsed_by_name(given: str, modifiers: list[str], key: str, bits_expected: int) -> None:
    found, bits = keys.parse(given, modifiers)
    assert (found.key, bits) == (key, bits_expected)


@pytest.mark.parametrize(("given", "hint"), [("Entr", "Enter"), ("Foo+a", "Control"), ("", "KeyboardEvent.key")])
def test_the_error_for_an_unknown_key_suggests_similar_ones(given: str, hint: str) -> None:
    with pytest.raises(InvalidArguments) as caught:
        keys.parse(given)
    assert hint in str(caught.value.hint)


def test_modifiers_are_pressed_before_and_released_after() -> None:
    events = keys.press_events(*keys.parse("Control+Shift+Tab"))
    assert [(event["type"], event["key"], event["modifiers"]) for event in events] == [
        ("rawKeyDown", "Control", 2),
        ("rawKeyDown", "Shift", 10),
        ("rawKeyDown", "Tab", 10),
        ("keyUp", "Tab", 10),
        ("keyUp", "Shift", 2),
        ("keyUp", "Control", 0),
    ]


def test_a_key_with_control_produces_no_text() -> None:
    down = keys.press_events(*keys.parse("Control+a"))[1]
    assert "text" not in down
    assert (down["code"], down["windowsVirtualKeyCode"]) == ("KeyA", 65)


def test_command_keys_of_macos_carry_their_command() -> None:
    assert keys.press_events(*keys.parse("Meta+a"))[1]["commands"] == ["selectAll"]


def test_characters_without_a_key_are_inserted_between_key_presses() -> None:
    events = pointer.typing_events("aöb", tab_leaves=False)
    assert [(method, params.get("text")) for method, params in events] == [
        (pointer.KEY, "a"),
        (pointer.KEY, None),
        ("Input.insertText", "ö"),
        (pointer.KEY, "b"),
        (pointer.KEY, None),
    ]


def test_shift_is_released_after_characters_that_need_it() -> None:
    events = [params for _, params in pointer.typing_events("A(", tab_leaves=False)]
    assert [(event["type"], event["key"]) for event in events[-2:]] == [("keyUp", "("), ("keyUp", "Shift")]
    assert "modifiers" not in events[-1]


def test_a_tab_goes_to_the_next_field_or_is_inserted() -> None:
    assert [method for method, _ in pointer.typing_events("\t", tab_leaves=True)] == [pointer.KEY] * 2
    assert pointer.typing_events("\t", tab_leaves=False) == [(pointer.INSERT, {"text": "\t"})]
