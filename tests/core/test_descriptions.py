"""Descriptions of page tools: the page's text, marked as such, without hidden characters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabhub.core.descriptions import ToolLocation, describe, one_line, visible


@pytest.mark.req("S000-spec-architecture-06")
def test_a_description_says_where_the_tool_is_and_marks_the_pages_text() -> None:
    place = ToolLocation("shop.example", "Cart: Shop", 2, active=True)
    assert describe("Adds to the cart.", place) == (
        "[shop.example · tab 2 · “Cart: Shop” · active tab] The page says: Adds to the cart."
    )
    assert describe("", ToolLocation("a.b", number=1)) == "[a.b · tab 1] The page gives no description."
    assert describe("x", ToolLocation("a.b", tabs=2)).startswith("[a.b · in 2 open tabs]")
    assert describe("x", ToolLocation("a.b")).startswith("[a.b · opens the site]")
    assert "embedded in shop.example" in describe(
        "x", ToolLocation("pay.example", number=1, embedded_in="shop.example")
    )


def test_hidden_characters_are_written_out() -> None:
    hidden = "Buy\u202e now\u200b\x07 👩\u200d💻"
    text = describe(hidden, ToolLocation("a.b", "Sh\u2066op", 1))
    assert text == "[a.b · tab 1 · “Sh\\u{2066}op”] The page says: Buy\\u{202E} now\\u{200B}\\u{0007} 👩\\u{200D}💻"


def test_scripts_and_emoji_keep_the_joiners_they_need() -> None:
    for text in ("👩‍💻", "می‌خواهم", "❤️", "a\nb\tc"):
        assert visible(text) == (text, 0)
    assert visible("a\u200db") == ("ab", 1)


def test_long_texts_and_titles_are_cut() -> None:
    text = describe("word " * 10_000, ToolLocation("a.b", "t" * 500, 1))
    assert len(text) < 2_300
    assert one_line("a\n\n  b\u202ec") == "a b\\u{202E}c"
    assert len(one_line("x" * 500)) == 80


@given(st.text(max_size=200))
def test_every_hidden_character_of_a_pages_content_is_removed_and_counted(text: str) -> None:
    seen, hidden = visible(text)
    assert len(seen) + hidden + text.count("\r") == len(text)
    assert visible(seen) == (seen, 0) or "\u200d" in text or "\u200c" in text
    assert "\u202e" not in describe(text, ToolLocation("a.b", text, 1))
