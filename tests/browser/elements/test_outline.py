"""Lines of a snapshot: put together, and kept within a budget."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabhub.browser.elements import outline
from tabhub.core.results.tokens import estimate_tokens

LIST = [
    'heading "All" [level=1]',
    "list [ref=e1]",
    *(f' link "Item {n}" [ref=e{n}] /{n}' for n in range(2, 500)),
    '"end"',
]


@pytest.mark.parametrize(
    ("line", "ref"),
    [
        ('button "Send" [ref=e12]', "e12"),
        ('  textbox [ref=f2e7 required] = "x"', "f2e7"),
        ('button "a [ref=e1]"', None),
        (r'button "a \" [ref=e1] \"" [ref=e2 focused]', "e2"),
        ('"text [ref=e3]"', None),
        ('heading "x" [level=1]', None),
        ("link [ref=e4] /a?[ref=e5]", "e4"),
        ("main", None),
    ],
)
def test_a_ref_cannot_be_forged_by_the_page(line: str, ref: str | None) -> None:
    assert outline.ref_of(line) == ref


def test_lines_of_a_frame_are_inserted_below_its_element() -> None:
    lines = ["main", ' iframe "A" [ref=e1]', "end"]
    assert outline.insert_frames(lines, {1: ["one", " two"]}) == [
        "main",
        ' iframe "A" [ref=e1]',
        "  one",
        "   two",
        "end",
    ]


def test_lines_within_the_budget_are_unchanged() -> None:
    assert outline.fit_budget(LIST, 100_000) == (LIST, 0)


def test_a_long_list_is_cut_and_later_lines_stay() -> None:
    fitted, omitted = outline.fit_budget(LIST, 1_000)
    assert fitted[:3] == LIST[:3]
    assert fitted[-1] == '"end"'
    assert fitted[-2].startswith(" … ")
    assert re.search(r"more here: browser_snapshot with ref=e1 and maxTokens=\d+$", fitted[-2])
    assert omitted == len(LIST) - len(fitted) + 1


def test_the_note_on_omitted_lines_leads_to_all_of_them() -> None:
    lines = ["main", *(f" {line}" for line in LIST)]
    (note,) = [line for line in outline.fit_budget(lines, 1_000)[0] if "more here" in line]
    assert outline.fit_budget(LIST[:-1], int(note.rpartition("=")[2])) == (LIST[:-1], 0)
    # Where the list alone fits, its ref is enough.
    lines += [f'"Paragraph {n}"' for n in range(100)]
    small = [*LIST[:60], *lines]
    notes = [line for line in outline.fit_budget(small, 1_000)[0] if "more here" in line]
    assert notes[0].endswith("with ref=e1")


def test_lines_without_lists_are_cut_at_the_end() -> None:
    lines = [f'"Paragraph {n} with a few words"' for n in range(1000)]
    fitted, omitted = outline.fit_budget(lines, 500)
    assert fitted == lines[: len(fitted)]
    assert omitted == 1000 - len(fitted)


@given(
    st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["list [ref=e1]", '"some words"', "main"])), max_size=200),
    st.integers(100, 3_000),
)
def test_the_budget_is_respected_for_any_shape(shape: list[tuple[int, str]], budget: int) -> None:
    lines = [" " * depth + text for depth, text in shape]
    fitted, omitted = outline.fit_budget(lines, budget)
    assert estimate_tokens("\n".join(fitted)) <= budget * 1.2
    kept = [line for part in fitted for line in part.split("\n") if not line.lstrip().startswith("…")]
    assert omitted == len(lines) - len(kept)
