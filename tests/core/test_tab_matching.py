"""Matching tabs after a reconnect or restart."""

from __future__ import annotations

from tabhub.core.tab_matching import TabFingerprint, TabMatches, match_tabs
from tabhub.core.tabs import Tab

SHOP = "https://shop.example/cart?id=1"


def tab(tab_id: int, url: str, chrome_id: int | None = None) -> Tab:
    return Tab(tab_id, "b", tab_id if chrome_id is None else chrome_id, url)


def fingerprints(*tabs: Tab) -> dict[int, TabFingerprint]:
    return {each.tab_id: TabFingerprint.of(each) for each in tabs}


def test_a_tab_with_its_old_id_matches_at_its_url_or_on_its_site() -> None:
    before = fingerprints(tab(1, SHOP), tab(2, "about:blank"))
    now = [tab(1, "https://shop.example/paid"), tab(2, "about:blank")]
    assert match_tabs(before, {1, 2}, now, {1, 2}) == TabMatches()


def test_another_site_under_the_old_id_does_not_match() -> None:
    now = [tab(1, "https://bank.example/"), tab(3, SHOP)]
    assert match_tabs(fingerprints(tab(1, SHOP)), {1}, now, {1, 3}) == TabMatches(lost=[1])


def test_after_a_browser_restart_a_tab_is_matched_by_its_url() -> None:
    now = [tab(11, SHOP), tab(12, "https://other.example/")]
    assert match_tabs(fingerprints(tab(1, SHOP)), {1, 2}, now, {11, 12}) == TabMatches(moved={1: 11})


def test_ambiguous_leased_or_similar_tabs_do_not_match() -> None:
    for now, free in (
        ([tab(11, SHOP), tab(12, SHOP)], {11, 12}),
        ([tab(11, SHOP)], set[int]()),
        ([tab(11, "https://shop.example/cart?id=2")], {11}),
    ):
        assert match_tabs(fingerprints(tab(1, SHOP)), {1}, now, free) == TabMatches(lost=[1])


def test_an_empty_tab_is_not_matched_by_url() -> None:
    assert match_tabs(fingerprints(tab(1, "about:blank")), {1}, [tab(11, "about:blank")], {11}) == TabMatches(lost=[1])


def test_without_a_browser_restart_a_closed_tab_is_not_matched_by_url() -> None:
    assert match_tabs(fingerprints(tab(1, SHOP)), {1, 5}, [tab(5, SHOP)], {5}) == TabMatches(lost=[1])


def test_one_tab_is_matched_only_once() -> None:
    before = fingerprints(tab(1, SHOP), tab(2, SHOP))
    assert match_tabs(before, {1, 2}, [tab(11, SHOP)], {11}) == TabMatches(lost=[2], moved={1: 11})


def test_a_fingerprint_does_not_contain_the_url() -> None:
    assert "cart" not in repr(TabFingerprint.of(tab(1, SHOP)))
