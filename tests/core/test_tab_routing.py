"""Which tab a call goes to, and whether it may be retried."""

from __future__ import annotations

import pytest

from tabhub.core.tab_routing import Candidate, best_tab, may_retry, never_sent, site_url
from tabhub.core.tabs import Tab
from tabhub.errors import CallTimeout, CommandFailed, LinkLost, NotConnected, TabhubError, TabNotFound

SHOP = "https://shop.example"


@pytest.mark.req("S000-spec-routing-03", "S000-spec-routing-04", "S000-flows-06", "S000-hub-03")
def test_the_active_tab_is_best_then_the_one_updated_last() -> None:
    tabs = {tab: Tab(tab, "b", tab) for tab in (1, 2, 3)}
    candidates = [Candidate(1, 3.0), Candidate(2, 9.0), Candidate(3, 5.0)]

    def chosen(*without: int) -> int:
        return best_tab((each for each in candidates if each.tab_id not in without), tabs.get).tab_id

    assert chosen() == 2
    assert chosen(2) == 3
    tabs[3] = Tab(3, "b", 3, active=True)
    assert chosen() == 3
    tabs[1] = Tab(1, "b", 1, active=True, window_focused=True)
    assert chosen() == 1
    del tabs[1]
    assert chosen() == 3


@pytest.mark.req("S002-tabid-02")
def test_a_ready_tab_ranks_before_the_callers_own_and_the_focused_windows() -> None:
    tabs = {1: Tab(1, "b", 1, active=True, window_focused=True), 2: Tab(2, "b", 2), 3: Tab(3, "b", 3)}
    tabs[3] = Tab(3, "b", 3, window_focused=True)
    candidates = [Candidate(1, 9.0, ready=False), Candidate(2, 5.0), Candidate(3, 1.0)]
    assert best_tab(candidates, tabs.get) == candidates[2]
    assert best_tab(candidates, tabs.get, lambda tab: tab == 2) == candidates[1]
    assert best_tab(candidates[:1], tabs.get) == candidates[0]


@pytest.mark.req("S000-spec-routing-05")
def test_a_site_opens_where_it_was_last_or_at_its_front_page() -> None:
    assert site_url(SHOP, f"{SHOP}/cart") == f"{SHOP}/cart"
    assert site_url(SHOP, None) == f"{SHOP}/"
    assert site_url("file://", None) is None


@pytest.mark.req("S000-spec-routing-13", "S000-spec-routing-14", "F9")
@pytest.mark.parametrize(
    ("error", "unsent", "repeats"),
    [
        (TabNotFound("gone", data={"sent": False}), True, True),
        (TabNotFound("gone", data={"sent": True}), False, True),
        (TabNotFound("gone"), False, True),
        (LinkLost("lost", sent=False), True, True),
        (LinkLost("lost", sent=True), False, True),
        (NotConnected("none"), True, True),
        (CommandFailed("no"), False, False),
        (CallTimeout("late"), False, True),
    ],
)
def test_a_call_is_retried_only_if_never_sent_or_repeatable(error: TabhubError, unsent: bool, repeats: bool) -> None:
    assert never_sent(error) is unsent
    assert may_retry(error, repeatable=False) is unsent
    assert may_retry(error, repeatable=True) is repeats
