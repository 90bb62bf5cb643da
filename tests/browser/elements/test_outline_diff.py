"""What changed between two snapshots."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabhub.browser.elements.outline_diff import diff_lines

TABLE = [
    "table",
    *(line for row in "ABCDE" for line in (f' row "{row} 1 open"', f'  cell "{row}"', '  cell "1"', '  cell "open"')),
]


def table(order: str) -> list[str]:
    at = {row: TABLE[1 + 4 * number : 5 + 4 * number] for number, row in enumerate("ABCDE")}
    return [TABLE[0], *(line for row in order for line in at[row])]


def test_new_changed_and_removed_lines_are_shown_with_their_parents() -> None:
    before = ["main", ' button "A" [ref=e1]', ' button "B" [ref=e2]', ' "words"', "footer"]
    after = ["main", ' button "A" [ref=e1 disabled]', " list", '  button "C" [ref=e3]', "footer"]
    assert diff_lines(before, after) == [
        "  main",
        '~  button "A" [ref=e1 disabled]',
        "+  list",
        '+   button "C" [ref=e3]',
        '- button "B" [ref=e2]',
        '- "words"',
    ]
    assert diff_lines(after, after) == []


def test_equal_lines_are_counted() -> None:
    assert diff_lines(['"a"'], ['"a"', '"a"']) == ['+ "a"']
    assert diff_lines(['"a"', '"a"'], ['"a"']) == ['- "a"']


@pytest.mark.req("A2")
def test_an_item_that_moved_is_a_change() -> None:
    items = [f' button "Item {n}" [ref=e{n}]' for n in range(1, 5)]
    last_first = ["list", items[3], *items[:3]]
    assert diff_lines(["list", *items], last_first) == ["  list", '>  button "Item 4" [ref=e4] (now first)']
    first_last = ["list", *items[1:], items[0]]
    assert diff_lines(["list", *items], first_last) == ["  list", '>  button "Item 1" [ref=e1] (now after e4)']


@pytest.mark.req("A2")
def test_a_sorted_table_shows_the_rows_that_moved_without_their_cells() -> None:
    assert diff_lines(TABLE, table("ABCED")) == [
        "  table",
        '>  row "E 1 open" (now after row "C 1 open")',
    ]
    assert [line[:8] for line in diff_lines(TABLE, table("EDCBA"))] == ["  table", *4 * ['>  row "']]


@pytest.mark.req("A2")
def test_a_removed_subtree_is_one_line() -> None:
    assert diff_lines(TABLE, table("ABDE")) == ['- row "C 1 open" (3 inside)']


def test_only_the_cell_of_a_row_that_changed_is_shown() -> None:
    after = [line.replace("C 1 open", "C 1 closed") for line in TABLE]
    after[12] = '  cell "closed"'
    assert diff_lines(TABLE, after) == ["  table", '~  row "C 1 closed"', '~   cell "closed"']


def test_an_item_in_another_list_has_moved() -> None:
    before = ["main", " list", '  listitem "Card"', '   button "Open" [ref=e1]', ' list "Done" [ref=e9]']
    after = ["main", " list", ' list "Done" [ref=e9]', '  listitem "Card"', '   button "Open" [ref=e1]']
    changed = diff_lines(before, after)
    assert '>   listitem "Card" (now first)' in changed
    assert not [line for line in changed if line[0] in "+-"]


def test_what_a_new_box_is_put_around_has_not_changed() -> None:
    before = ["main", ' button "A" [ref=e1]', ' "words"']
    after = ["main", " region", '  button "A" [ref=e1]', '  "words"']
    assert diff_lines(before, after) == ["  main", "+  region"]


@st.composite
def outlines(draw: st.DrawFn) -> list[str]:
    lines: list[str] = []
    depth = 0
    for ref in draw(st.permutations(range(draw(st.integers(0, 12))))):
        depth = draw(st.integers(0, min(depth + 1, 4))) if lines else 0
        own = f"button [ref=e{ref}]" if draw(st.booleans()) else draw(st.sampled_from(['"a"', '"b"', "list", "row"]))
        lines.append(" " * depth + own)
    return lines


@given(outlines(), outlines())
def test_any_difference_is_reported_and_no_other(before: list[str], after: list[str]) -> None:
    changed = diff_lines(before, after)
    assert bool(changed) is (before != after)
    news = [line for line in changed if line[0] in "+~>"]
    assert len(news) <= len(after)
    for line in changed:
        assert line[0] in "+~>- "
