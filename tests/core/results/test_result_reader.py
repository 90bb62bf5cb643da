"""A stored result is read by page, search or path, without losing anything."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabhub.core.results.result_reader import Reading, read
from tabhub.core.results.tokens import estimate_tokens
from tabhub.errors import InvalidParams

PLAIN, JSON = "text/plain", "application/json"
LINES = "".join(f"line {i}: {'Needle' if i % 100 == 50 else 'hay'}\n" for i in range(1_000))


def everything(text: str, limit: int, max_tokens: int = 25_000) -> list[Reading]:
    pages = [read(text, PLAIN, limit=limit, max_tokens=max_tokens)]
    while (offset := pages[-1].next_offset) is not None:
        pages.append(read(text, PLAIN, offset=offset, limit=limit, max_tokens=max_tokens))
    return pages


@given(
    st.text(st.characters(codec="utf-8") | st.sampled_from("\n ,"), max_size=400),
    st.integers(1, 60),
    st.integers(1, 40),
)
def test_all_pages_together_are_the_whole_text(text: str, limit: int, max_tokens: int) -> None:
    pages = everything(text, limit, max_tokens)
    assert "".join(page.text for page in pages) == text
    assert all(len(page.text) <= limit and page.total_chars == len(text) for page in pages)


def test_a_page_ends_at_a_line_end_if_one_is_near() -> None:
    page = read(LINES, PLAIN, limit=1_000)
    assert page.text.endswith("\n")
    assert 800 <= len(page.text) <= 1_000
    assert page.next_offset == len(page.text)


def test_a_page_is_within_its_tokens_whatever_its_limit() -> None:
    page = read("浏览器标签页" * 10_000, PLAIN, limit=60_000, max_tokens=1_000)
    assert estimate_tokens(page.text) <= 1_000


def test_the_last_page_has_no_next_offset() -> None:
    assert read("abc", PLAIN, offset=1).next_offset is None
    assert read("abc", PLAIN, offset=3).text == ""


@pytest.mark.parametrize(
    "options", [{"offset": -1}, {"offset": 4}, {"limit": 0}, {"search": ""}, {"search": "x" * 1_001}]
)
def test_invalid_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidParams):
        read("abc", PLAIN, **options)


# search


def test_a_search_finds_words_in_any_case_with_line_offset_and_context() -> None:
    found = read(LINES, PLAIN, search="nEEdle")
    assert found.matches == 10
    assert found.next_offset is None
    at = LINES.index("Needle")
    block = f"  49: line 48: hay\n  50: line 49: hay\n> 51 (offset {at}): line 50: Needle\n  52: line 51: hay\n"
    assert block in found.text
    assert found.text.count("\n--\n") == 9


def test_matches_near_each_other_share_their_context() -> None:
    found = read("a\nb\nx1\nc\nx2\nx3\nd\ne\nf\n", PLAIN, search="x")
    rows = found.text.splitlines()[1:]
    assert [row.split(":")[0].split(" (")[0].strip() for row in rows] == ["1", "2", "> 3", "4", "> 5", "> 6", "7", "8"]


@pytest.mark.parametrize("search", ["needle", "/Needle$/"])
def test_a_search_continues_where_it_stopped_and_misses_nothing(search: str) -> None:
    offset: int | None = 0
    seen: list[str] = []
    while offset is not None:
        found = read(LINES, PLAIN, search=search, limit=300, offset=offset)
        assert len(found.text) < 400
        seen.extend(row for row in found.text.splitlines() if row.startswith(">"))
        offset = found.next_offset
    assert len(seen) == len(set(seen)) == 10


def test_a_pattern_is_matched_by_line_and_may_ignore_case() -> None:
    assert read(LINES, PLAIN, search=r"/^line \d50: needle$/i").matches == 9
    assert read(LINES, PLAIN, search=r"/^line \d50: needle$/").matches == 0
    assert read(LINES, PLAIN, search=r"/(hay|Needle)\s*$/", offset=len(LINES) - 30).matches == 2


def test_a_search_without_matches_says_so() -> None:
    found = read(LINES, PLAIN, search="unicorn")
    assert found.matches == 0
    assert found.next_offset is None
    assert "No match for unicorn" in found.text


@pytest.mark.parametrize("pattern", ["/(?=x)/", r"/(a)\1/", "/[/", "/a{9999}{9999}/", "/(/"])
def test_a_pattern_that_cannot_be_run_in_linear_time_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidParams, match="not a supported pattern") as caught:
        read("aaaa", PLAIN, search=pattern)
    assert "lookaround" in caught.value.text()


@pytest.mark.parametrize("pattern", ["/(a+)+$/", "/(a|a)*b$/", "/(.*)*x/", "/^(([a-z])+.)+[A-Z]([a-z])+$/"])
@pytest.mark.timeout(20)
def test_patterns_that_backtrack_in_other_engines_are_fast(pattern: str) -> None:
    assert read("a" * 200_000 + "!\n", PLAIN, search=pattern).matches == 0


@pytest.mark.parametrize("search", ["needle", "/needle/"])
def test_one_long_line_gives_several_short_excerpts(search: str) -> None:
    line = ("x" * 5_000 + "needle") * 6
    found = read(line, PLAIN, search=search)
    assert found.matches == 6
    assert len(found.text) < 3_000
    if search == "needle":
        assert found.text.count("needle") == 7  # six excerpts and the heading
        assert "…" in found.text


def test_an_anchored_pattern_in_a_long_line_is_found_once() -> None:
    assert read("x" * 9_000 + "end", PLAIN, search="/end$/").matches == 1


def test_counting_stops_at_a_maximum_and_says_so() -> None:
    found = read("hit\n" * 5_000, PLAIN, search="hit", limit=500_000, max_tokens=500_000)
    assert found.matches == 1_000
    assert found.next_offset == 4_000
    assert found.text.startswith("1000+ matches")


def test_offsets_are_right_where_lower_case_is_longer() -> None:
    text = "İİİİ\nTarget here\n"
    found = read(text, PLAIN, search="target")
    assert f"(offset {text.index('Target')})" in found.text


@given(st.text(max_size=200), st.text(min_size=1, max_size=5), st.integers(1, 50))
def test_any_search_ends(text: str, query: str, limit: int) -> None:
    offset: int | None = 0
    rounds = 0
    while offset is not None and rounds <= len(text) + 1:
        try:
            following = read(text, PLAIN, search=query, limit=limit, offset=offset).next_offset
        except InvalidParams:
            return
        assert following is None or following > offset
        offset = following
        rounds += 1
    assert offset is None


def test_picked_parts_can_be_searched() -> None:
    text = json.dumps({"a": ["x"] * 300, "b": ["needle"]})
    assert read(text, JSON, pick="a", search="needle").matches == 0
    assert read(text, JSON, pick="b", search="needle").matches == 1


def test_only_json_can_be_picked_from() -> None:
    with pytest.raises(InvalidParams, match="text/plain"):
        read("[1]", PLAIN, pick="[0]")
    with pytest.raises(InvalidParams, match="not valid JSON"):
        read("[1", JSON, pick="[0]")


def test_picked_parts_are_paged() -> None:
    text = json.dumps({"items": [{"n": i} for i in range(500)]})
    first = read(text, JSON, pick="items[*].n", limit=100)
    assert first.next_offset is not None
    rest = read(text, JSON, pick="items[*].n", offset=first.next_offset)
    assert json.loads(first.text + rest.text) == list(range(500))
