"""Exponential backoff between attempts to connect.

Owns the arithmetic only: the caller sleeps, and supplies the randomness that keeps many clients from retrying at once.
"""

from __future__ import annotations

from collections.abc import Callable

_MAX_DOUBLINGS = 30


class Backoff:
    """Delays that double with every failure, from `first` up to `longest` seconds."""

    def __init__(self, first: float, longest: float, *, jitter: Callable[[], float]) -> None:
        """`jitter` returns the factor for one delay; the product stays between `first` and `longest`."""
        self._first = first
        self._longest = longest
        self._jitter = jitter
        self._failures = 0

    def next_delay(self) -> float:
        """Seconds to wait after one more failure."""
        delay: float = self._first * 2 ** min(self._failures, _MAX_DOUBLINGS)
        self._failures += 1
        return min(max(min(delay, self._longest) * self._jitter(), self._first), self._longest)

    def reset(self) -> None:
        self._failures = 0
