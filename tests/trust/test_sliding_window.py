"""Rate limits: a maximum in any window of time, for each key."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from tabhub.trust.sliding_window import SlidingWindow


def test_the_limit_is_reached_and_frees_up_as_time_passes() -> None:
    rate = SlidingWindow(3, 60)
    assert [rate.hit("a", t) for t in (0.0, 10.0, 20.0)] == [None, None, None]
    assert rate.hit("a", 30.0) == 30.0
    assert rate.hit("a", 59.0) == 1.0
    assert rate.hit("a", 60.0) is None
    assert rate.hit("a", 60.0) == 10.0


def test_keys_are_independent() -> None:
    rate = SlidingWindow(1)
    assert rate.hit("a", 0) is None
    assert rate.hit("b", 0) is None
    assert rate.hit("a", 1) == 59


def test_a_limit_of_zero_means_none() -> None:
    rate = SlidingWindow(0)
    assert all(rate.hit("a", 0) is None for _ in range(1000))
    assert len(rate) == 0


def test_memory_is_bounded_and_invented_keys_gain_nothing() -> None:
    rate = SlidingWindow(2, 60, keys=10)
    passed = sum(rate.hit(f"key {n}", n / 1000) is None for n in range(1000))
    assert len(rate) <= 11
    assert passed == 10 + 2
    assert rate.hit("key 0", 1) is None
    assert rate.hit("key 0", 1) is not None
    assert rate.hit("a new one, when the old are past", 100) is None
    assert len(rate) <= 2


def test_time_that_stops_or_goes_back_never_admits_more() -> None:
    rate = SlidingWindow(2, 10)
    assert rate.hit("a", 100) is None
    assert rate.hit("a", 95) is None
    assert rate.hit("a", 95) == 15
    assert rate.hit("a", 109) is not None
    assert rate.hit("a", 110) is None


@given(
    limit=st.integers(1, 5),
    window=st.floats(0.5, 60),
    gaps=st.lists(st.floats(0, 30), max_size=60),
)
def test_no_window_exceeds_the_limit_and_the_stated_wait_is_enough(
    limit: int, window: float, gaps: list[float]
) -> None:
    rate = SlidingWindow(limit, window)
    now = 0.0
    passed: list[float] = []
    for gap in gaps:
        now += gap
        wait = rate.hit("key", now)
        if wait is not None:
            assert 0 < wait <= window + 1e-9
            assert len([t for t in passed if t + window > now]) == limit
            now = math.nextafter(now + wait, math.inf)
            assert rate.hit("key", now) is None
        passed.append(now)
        assert len([t for t in passed if t + window > now]) <= limit
