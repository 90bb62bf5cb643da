"""A snapshot that exceeds its budget: what is shown, and that the rest has everything else once."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabhub.browser.elements.outline_cut import Cut, cut_lines
from tabhub.core.results.tokens import count_tokens

LIST = [
    'heading "All" [level=1]',
    "list [ref=e1]",
    *(f' link "Item {n}" [ref=e{n}] /{n}' for n in range(2, 500)),
    '"end"',
]
LONG = " ".join(f"word{n}" for n in range(60))
ARTICLE = [
    "main",
    *(
        line
        for section in range(40)
        for line in (
            f' heading "Section {section}" [level=2]',
            f' link "Part {section}" [ref=e{section}]',
            f' "{LONG} {section}"',
            f' "Short {section}"',
        )
    ),
]


def joined(cut: Cut) -> Iterator[str]:
    """The lines that a reader has who has read the rest as well, without their indentation."""
    parts: dict[str, list[str]] = {}
    part: list[str] = []
    for line in cut.rest:
        if re.fullmatch(r"§\d+", line):
            part = parts.setdefault(line, [])
        else:
            part.append(line.lstrip())
    for line in cut.shown:
        if found := re.fullmatch(r" *… (§\d+): \d+ lines?", line):
            yield from parts.pop(found[1])
        elif found := re.fullmatch(r"(.*)… (§\d+)", line):
            yield f"{found[1].lstrip()} {' '.join(parts.pop(found[2]))}"
        else:
            yield line.lstrip()
    assert parts == {}


def spent(cut: Cut) -> int:
    return count_tokens("\n".join(cut.shown))


def test_lines_within_the_budget_are_unchanged() -> None:
    assert cut_lines(LIST, 100_000) == Cut(LIST)
    assert cut_lines(LIST, count_tokens("\n".join((*LIST, "")))) == Cut(LIST)


def test_the_end_of_a_long_list_is_left_out_and_what_follows_it_is_shown() -> None:
    cut = cut_lines(LIST, 1_000)
    assert cut.shown[:9] == LIST[:9]
    assert cut.shown[-1] == '"end"'
    assert re.fullmatch(r" … §1: \d+ lines", cut.shown[-2])
    assert (cut.rest[0], cut.rest[-1]) == ("§1", 'link "Item 499" [ref=e499] /499')
    assert cut.omitted == cut.omitted_elements == len(cut.rest) - 1


def test_elements_and_headings_are_shown_before_texts_and_texts_before_the_rest_of_long_ones() -> None:
    whole = count_tokens("\n".join(ARTICLE))
    cut = cut_lines(ARTICLE, whole * 9 // 10)
    assert cut.omitted == 0
    assert [line for line in ARTICLE if line not in cut.shown] == [
        line for line in ARTICLE if LONG in line and line not in cut.shown
    ]
    cut = cut_lines(ARTICLE, whole // 4)
    assert (cut.omitted > 0, cut.omitted_elements) == (True, 0)
    assert [line for line in ARTICLE if re.search(r"\[(ref|level)=", line) and line not in cut.shown] == []


def test_when_not_all_elements_fit_those_shown_have_their_short_texts() -> None:
    inbox = ["list [ref=e1]", *(part for n in range(500) for part in (f" checkbox [ref=e{n}]", f' "Subject {n}"'))]
    cut = cut_lines(inbox, 1_000)
    assert cut.shown[1:41] == inbox[1:41]


@pytest.mark.parametrize("lines", [LIST, ARTICLE, [f'"Paragraph {n} with a few words"' for n in range(1_000)]])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_at_least_nine_tenths_of_the_budget_are_used(lines: list[str], share: float) -> None:
    budget = int(count_tokens("\n".join(lines)) * share)
    assert budget * 0.9 <= spent(cut_lines(lines, budget)) <= budget


@given(
    st.lists(
        st.tuples(
            st.integers(0, 5),
            st.sampled_from(["list [ref=e1]", '"some words"', "main", f'"{LONG}"', f'row "{LONG}"', 'heading "A"']),
        ),
        max_size=120,
    ),
    st.integers(50, 3_000),
)
def test_shown_and_rest_together_have_every_line_once(shape: list[tuple[int, str]], budget: int) -> None:
    lines = [" " * depth + text for depth, text in shape]
    cut = cut_lines(lines, budget)
    assert list(joined(cut)) == [line.lstrip() for line in lines]
    assert spent(cut) <= budget
