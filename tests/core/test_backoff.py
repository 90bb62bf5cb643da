"""Delays between attempts to connect."""

from __future__ import annotations

import pytest

from tabhub.core.backoff import Backoff, FullJitter


def delays(backoff: Backoff, count: int) -> list[float]:
    return [backoff.next_delay() for _ in range(count)]


def test_delays_double_up_to_the_longest_and_start_over_after_a_reset() -> None:
    backoff = Backoff(0.5, 3.0, jitter=lambda: 1.0)
    assert delays(backoff, 5) == [0.5, 1.0, 2.0, 3.0, 3.0]
    backoff.reset()
    assert delays(backoff, 2) == [0.5, 1.0]


@pytest.mark.parametrize(("factor", "expected"), [(0.5, [1.0, 1.0, 2.0, 2.5]), (1.5, [1.5, 3.0, 5.0, 5.0])])
def test_jitter_stays_between_the_first_and_the_longest_delay(factor: float, expected: list[float]) -> None:
    assert delays(Backoff(1.0, 5.0, jitter=lambda: factor), 4) == expected


def test_many_failures_do_not_overflow() -> None:
    assert delays(Backoff(1.0, 60.0, jitter=lambda: 1.0), 5000)[-1] == 60.0


def test_full_jitter_spreads_clients_over_a_window_that_doubles() -> None:
    def ends(number: float) -> list[float]:
        backoff = FullJitter(5.0, 30.0, lambda: number)
        return [backoff.next_delay() for _ in range(5)]

    assert ends(1.0) == [5.0, 10.0, 20.0, 30.0, 30.0]
    assert ends(0.5) == [2.5, 5.0, 10.0, 15.0, 15.0]
    assert ends(0.0) == [0.0] * 5
    backoff = FullJitter(5.0, 30.0, lambda: 1.0, failures=5000)
    assert backoff.next_delay(7.0) == 37.0
    backoff.reset()
    assert backoff.next_delay() == 5.0
