"""Exponential backoff between attempts to connect.

Owns the arithmetic only: the caller sleeps, and supplies the randomness that keeps many clients from retrying at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

_MAX_DOUBLINGS = 30


@dataclass(slots=True, eq=False)
class Backoff:
    """Delays that double with every failure, from `first` up to `longest` seconds."""

    first: float
    longest: float
    jitter: Callable[[], float]
    """Returns the factor for one delay; the product stays between `first` and `longest`."""
    failures: int = 0

    def next_delay(self) -> float:
        """Seconds to wait after one more failure."""
        delay: float = self.first * 2 ** min(self.failures, _MAX_DOUBLINGS)
        self.failures += 1
        return min(max(min(delay, self.longest) * self.jitter(), self.first), self.longest)

    def reset(self) -> None:
        self.failures = 0


@dataclass(slots=True, eq=False)
class FullJitter:
    """Delays anywhere between zero and the end of a window that doubles with every failure.

    For many clients that lose the same server at the same moment.
    """

    window: float
    longest: float
    random: Callable[[], float]
    """Returns a number between 0 and 1."""
    failures: int = 0

    def next_delay(self, at_least: float = 0.0) -> float:
        """Seconds to wait after one more failure."""
        window: float = min(self.window * 2 ** min(self.failures, _MAX_DOUBLINGS), self.longest)
        self.failures += 1
        return at_least + self.random() * window

    def reset(self) -> None:
        self.failures = 0
