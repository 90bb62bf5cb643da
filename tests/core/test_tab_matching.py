"""Which tab of now is which tab of before."""

from __future__ import annotations

from tabhub.core.tab_matching import TabFingerprint, TabMatches, match_tabs
from tabhub.core.tabs import Tab

SHOP = "https://shop.example/cart?id=1"


def tab(tab_id: int, url: str, chrome_id: int | None = None) -> Tab:
    return Tab(tab_id, "b", tab_id if chrome_id is None else chrome_id, url)


def marks(*tabs: Tab) -> dict[int, TabFingerprint]:
    return {each.tab_id: TabFingerprint.of(each) for each in tabs}


def test_a_tab_with_its_old_id_is_the_same_at_its_address_or_elsewhere_on_its_site() -> None:
    before = marks(tab(1, SHOP), tab(2, "about:blank"))
    now = [tab(1, "https://shop.example/paid"), tab(2, "about:blank")]
    assert match_tabs(before, {1, 2}, now, {1, 2}) == TabMatches()


def test_another_page_under_the_old_id_is_not_it() -> None:
    now = [tab(1, "https://bank.example/"), tab(3, SHOP)]
    assert match_tabs(marks(tab(1, SHOP)), {1}, now, {1, 3}) == TabMatches(lost=[1])


def test_after_a_restart_of_the_browser_a_tab_is_found_by_its_address() -> None:
    now = [tab(11, SHOP), tab(12, "https://other.example/")]
    assert match_tabs(marks(tab(1, SHOP)), {1, 2}, now, {11, 12}) == TabMatches(moved={1: 11})


def test_two_tabs_at_the_address_or_a_taken_one_or_a_near_one_are_not_it() -> None:
    for now, free in (
        ([tab(11, SHOP), tab(12, SHOP)], {11, 12}),
        ([tab(11, SHOP)], set[int]()),
        ([tab(11, "https://shop.example/cart?id=2")], {11}),
    ):
        assert match_tabs(marks(tab(1, SHOP)), {1}, now, free) == TabMatches(lost=[1])


def test_an_empty_tab_has_no_address_to_find_it_by() -> None:
    assert match_tabs(marks(tab(1, "about:blank")), {1}, [tab(11, "about:blank")], {11}) == TabMatches(lost=[1])


def test_while_the_browser_ran_on_a_closed_tab_is_not_sought_among_the_persons() -> None:
    assert match_tabs(marks(tab(1, SHOP)), {1, 5}, [tab(5, SHOP)], {5}) == TabMatches(lost=[1])


def test_one_tab_is_found_for_one_only() -> None:
    before = marks(tab(1, SHOP), tab(2, SHOP))
    assert match_tabs(before, {1, 2}, [tab(11, SHOP)], {11}) == TabMatches(lost=[2], moved={1: 11})


def test_a_mark_does_not_hold_the_address() -> None:
    assert "cart" not in repr(TabFingerprint.of(tab(1, SHOP)))
