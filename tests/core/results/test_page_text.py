"""The text of a page by part, by search and by its headings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabhub.core.results.page_text import Heading, PageText
from tabhub.core.results.tokens import count_tokens

MARKED = (
    "\x0e1Guide\n\nIntroduction.\n\n\x0e2Install\n\nRun the installer.\n\n\x0e2Use\n\nPress the big button twice.\n"
)
PLAIN = "Guide\n\nIntroduction.\n\nInstall\n\nRun the installer.\n\nUse\n\nPress the big button twice.\n"
LONG = PageText.of(
    "".join(
        f"\x0e{1 if section % 10 == 0 else 2}Section {section}\n\n" + f"Words of part {section}. " * 60 + "\n\n"
        for section in range(100)
    )
)


def test_marks_become_headings_with_their_offsets_in_the_plain_text() -> None:
    page = PageText.of(MARKED)
    assert page.text == PLAIN
    assert page.headings == [
        Heading(0, 1, "Guide"),
        Heading(PLAIN.index("Install\n"), 2, "Install"),
        Heading(PLAIN.index("Use\n"), 2, "Use"),
    ]


def test_the_outline_has_an_offset_for_each_heading_and_lower_levels_are_left_out_if_it_is_long() -> None:
    assert PageText.of(MARKED).outline(1_000) == "0 Guide\n 22 Install\n 51 Use"
    short = LONG.outline(200).split("\n")
    assert len(short) == 11
    assert short[-1] == "(90 headings of lower levels left out)"
    assert LONG.text[int(short[1].split()[0]) :].startswith("Section 10\n")


def test_a_search_returns_passages_below_their_headings_with_offsets() -> None:
    page = PageText.of(MARKED)
    found = page.passages("BUTTON", 0, 1_000)
    assert found.startswith("1 match for BUTTON, each passage with its offset:\n\n## Use\n[")
    assert "Press the big button twice." in found
    assert page.passages("/install(er)?/i", 30, 1_000).startswith("1 match for")
    assert page.passages("absent", 0, 1_000) == f"No match for absent from offset 0 on, in {len(PLAIN)} characters."


def test_a_long_search_says_where_to_go_on_and_shows_nothing_twice() -> None:
    shown: list[str] = []
    offset, limit = 0, 20
    while limit:
        limit -= 1
        found = LONG.passages("Section", offset, 2_000)
        head, *passages = found.split("\n\n## ")
        assert count_tokens(found) <= 2_100
        shown += [passage.split("\n")[0] for passage in passages]
        if "more from offset" not in head:
            break
        offset = int(head.split("more from offset ")[1].split()[0])
    assert shown == [f"Section {number}" for number in range(100)]


@pytest.mark.parametrize("most", [500, 100_000])
def test_parts_follow_one_another_without_a_gap_or_an_overlap(most: int) -> None:
    parts: list[str] = []
    offset = 0
    while offset < len(LONG.text):
        end = LONG.end_of_part(offset, most, 1_000)
        parts.append(LONG.text[offset:end])
        offset = end
    assert "".join(parts) == LONG.text
    assert all(count_tokens(part) <= 1_000 and len(part) <= most for part in parts)


@given(st.text(alphabet="\x0e12 ab\n", max_size=60))
def test_no_mark_is_left_in_the_text(marked: str) -> None:
    page = PageText.of(marked)
    assert "\x0e" not in page.text
    for heading in page.headings:
        assert page.text[heading.offset :].lstrip("# ").startswith(heading.title)
