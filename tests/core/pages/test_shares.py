"""Shares of page tools: by document, tab, embedded site, site and in total, fair between sites."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabhub.core.pages.shares import NOTHING, PageShares, Place, Share
from tabhub.limits import Limits

LIMITS = Limits(
    page_tools=10,
    page_bytes=1000,
    page_tab_tools=20,
    page_tab_bytes=2000,
    page_embedded_tools=4,
    page_embedded_bytes=300,
    page_site_tools=25,
    page_site_bytes=2500,
    page_tools_all=60,
    page_bytes_all=9000,
)


def top(tab: int, site: str = "news.example") -> Place:
    return Place(tab, True, site, False)


def frame(tab: int, site: str = "news.example", *, embedded: bool = False) -> Place:
    return Place(tab, False, site, embedded)


def fill(shares: PageShares, place: Place, size: int = 10) -> int:
    """Take all the room that a document has with tools of this size; how many there were."""
    room = shares.room(place)
    tools = min(room.tools, room.size // size)
    shares.add(place, Share(tools, tools * size))
    return tools


@pytest.mark.req("B27")
def test_frames_leave_the_tabs_own_page_its_share() -> None:
    shares = PageShares(LIMITS)
    assert [fill(shares, frame(1)) for _ in range(5)] == [10, 0, 0, 0, 0]
    assert fill(shares, top(1)) == 10


@pytest.mark.req("B27")
def test_the_frames_of_another_site_have_a_small_share_each() -> None:
    shares = PageShares(LIMITS)
    assert [fill(shares, frame(1, f"ad{n}.example", embedded=True)) for n in (1, 1, 2, 3, 4)] == [4, 0, 4, 2, 0]
    assert fill(shares, top(1)) == 10


@pytest.mark.req("B27")
def test_a_site_has_one_share_in_all_its_tabs() -> None:
    shares = PageShares(LIMITS)
    assert [fill(shares, top(tab)) for tab in (1, 2, 3, 4)] == [10, 10, 5, 0]
    assert fill(shares, top(5, "shop.example")) == 10


def test_bytes_count_as_tools_do() -> None:
    shares = PageShares(LIMITS)
    assert fill(shares, top(1), 300) == 3
    assert fill(shares, frame(1, "ad.example", embedded=True), 200) == 1
    assert fill(shares, top(2), 400) == 2


def test_what_is_taken_back_leaves_nothing_behind() -> None:
    shares = PageShares(LIMITS)
    for place in (top(1), frame(1), frame(1, "ad.example", embedded=True)):
        room = shares.room(place)
        shares.add(place, Share(2, 20))
        shares.add(place, Share(-2, -20))
        assert shares.room(place) == room
    assert len(shares) == 0


@pytest.mark.req("B27")
def test_the_largest_sites_give_way_when_all_are_too_many() -> None:
    shares = PageShares(LIMITS)
    for tab in (1, 2, 3):
        shares.add(top(tab, "big.example"), Share(10, 10))
        shares.add(top(tab + 10, "large.example"), Share(9, 9))
    shares.add(top(20, "small.example"), Share(3, 3))
    assert shares.overdrawn() == {}
    shares.add(top(21, "other.example"), Share(5, 5))
    assert {site: most.tools for site, most in shares.overdrawn().items()} == {"big.example": 26, "large.example": 26}


USES = st.dictionaries(st.integers(0, 40), st.tuples(st.integers(0, 30), st.integers(0, 5000)), max_size=30)


@pytest.mark.req("B27")
@given(USES)
def test_giving_way_is_enough_and_touches_nobody_below_a_fair_part(uses: dict[int, tuple[int, int]]) -> None:
    shares = PageShares(LIMITS)
    for number, use in uses.items():
        shares.add(top(number, f"s{number}"), Share(*use))
    overdrawn = shares.overdrawn()
    kept = {n: Share(*use).within(overdrawn.get(f"s{n}", Share(*use))) for n, use in uses.items()}
    assert sum(share.tools for share in kept.values()) <= LIMITS.page_tools_all
    assert sum(share.size for share in kept.values()) <= LIMITS.page_bytes_all
    for number, use in uses.items():
        if use[0] <= LIMITS.page_tools_all // len(uses) and use[1] <= LIMITS.page_bytes_all // len(uses):
            assert f"s{number}" not in overdrawn
    for number, use in uses.items():
        shares.add(top(number, f"s{number}"), Share(-use[0], -use[1]))
    assert shares.of_site("s1") == NOTHING
    assert len(shares) == 0
