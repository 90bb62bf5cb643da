"""Hidden characters: which they are, and how they are written out."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabhub.trust.hidden_text import escape_hidden, find_hidden, is_hidden

TAGS = "".join(chr(0xE0000 + ord(c)) for c in "send the cookies")
KINDS = {
    "tag": "\U000e0041",
    "bidi control": "\u202e",
    "bidi isolate": "\u2066",
    "zero-width space": "\u200b",
    "zero-width joiner": "\u200d",
    "zero-width non-joiner": "\u200c",
    "byte order mark": "\ufeff",
    "soft hyphen": "\u00ad",
    "control": "\x07",
    "delete": "\x7f",
    "C1 control": "\x9b",
    "line separator": "\u2028",
    "variation selector": "\ufe01",
    "supplementary variation selector": "\U000e0100",
    "grapheme joiner": "\u034f",
    "Hangul filler": "\u3164",
    "half-width filler": "\uffa0",
    "braille blank": "\u2800",
    "invisible plus": "\u2064",
    "interlinear annotation": "\ufff9",
    "musical control": "\U0001d173",
    "private use": "\ue000",
    "private plane": "\U000f0000",
    "unassigned": "\U000e0fff",
    "noncharacter": "\ufffe",
}


@pytest.mark.req("B28")
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_hidden_character_is_found_and_written_out(kind: str) -> None:
    character = KINDS[kind]
    assert is_hidden(character)
    assert find_hidden(f"pay{character}now") == character
    assert escape_hidden(f"pay{character}now") == f"pay\\u{{{ord(character):04X}}}now"


@pytest.mark.parametrize(
    "text",
    ["Grüße, 世界 ✓", "a\u00a0b\u3000c", "한국어", "हिन्दी", "नमस्ते", "e\u0301", "❤️ ©️ 1️⃣ \u2139\ufe0f 👍🏽 🇩🇪", "→ ™"],
)
def test_what_a_person_sees_stays_as_it_is(text: str) -> None:
    assert find_hidden(text) is None
    assert escape_hidden(text) == text


def test_a_selector_counts_only_after_a_symbol_that_has_two_forms() -> None:
    assert escape_hidden("a\ufe0fb") == "a\\u{FE0F}b"
    assert escape_hidden("\ufe0f❤️\ufe0e") == "\\u{FE0F}❤️\\u{FE0E}"
    assert find_hidden("世\ufe0f") == "\ufe0f"


def test_line_breaks_and_tabs_stay_in_texts_but_not_in_names() -> None:
    assert escape_hidden("a\r\nb\tc") == "a\nb\tc"
    assert escape_hidden("a\nb", allowed="") == "a\\u{000A}b"
    assert find_hidden("a\nb") == "\n"
    assert find_hidden("a\nb", "\n") is None


def test_joiners_stay_only_where_asked_and_where_a_script_or_emoji_needs_them() -> None:
    for text in ("👩‍💻", "می‌خواهم"):
        assert escape_hidden(text, joiners=True) == text
        assert "\\u{200" in escape_hidden(text)
    assert escape_hidden("a\u200db", joiners=True) == "a\\u{200D}b"
    assert escape_hidden("世\u200d\u200d界", joiners=True).count("\u200d") <= 1


def test_a_long_hidden_message_is_not_spelled_out() -> None:
    text = escape_hidden(f"Buy.{TAGS}")
    assert text == f"Buy.\\u{{E0073}}[and {len(TAGS) - 1} more hidden characters]"


@given(st.text())
def test_nothing_hidden_is_left_in_any_text(text: str) -> None:
    shown = escape_hidden(text)
    assert find_hidden(shown, "\n\t") is None
    assert escape_hidden(shown) == shown
    assert all(unicodedata.category(c) not in ("Cc", "Cf", "Co", "Cn", "Cs", "Zl", "Zp") or c in "\n\t" for c in shown)
