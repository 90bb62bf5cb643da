"""A rate limit of one number: a burst of a minute's worth, then an even rate."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabhub.trust.leaky_bucket import LeakyBucket


def test_a_burst_of_a_minutes_worth_is_followed_by_an_even_rate() -> None:
    pace = LeakyBucket(60)
    assert [pace.hit(0.0) for _ in range(60)] == [None] * 60
    wait = pace.hit(0.0)
    assert wait == pytest.approx(1.0)
    assert pace.hit(0.9) == pytest.approx(0.1)
    assert pace.hit(1.0) is None
    assert pace.hit(1.0) is not None


def test_zero_means_no_limit() -> None:
    pace = LeakyBucket(0)
    assert all(pace.hit(0.0) is None for _ in range(10_000))


def test_use_elsewhere_counts_up_to_one_full_bucket() -> None:
    pace = LeakyBucket(60)
    pace.add(1000, 0.0)
    assert pace.hit(0.5) is not None
    assert pace.hit(1.0) is None


@given(st.integers(1, 50), st.lists(st.floats(0, 30), max_size=200))
def test_never_more_than_twice_the_limit_in_a_minute_and_waiting_is_enough(limit: int, gaps: list[float]) -> None:
    pace = LeakyBucket(limit)
    now = 0.0
    taken: list[float] = []
    for gap in gaps:
        now += gap
        wait = pace.hit(now)
        if wait is not None:
            now += wait + 1e-6
            assert pace.hit(now) is None
        taken.append(now)
    for start in taken:
        assert sum(1 for at in taken if start <= at < start + 60) <= 2 * limit + 1
