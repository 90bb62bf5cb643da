"""A rate limit that costs one number per key: a burst of a minute's worth, then an even rate.

Owns the arithmetic. Knows no clock: the time passed in is monotonic. For many keys with high limits, where keeping the
time of every hit (sliding_window.py) would take too much memory.
"""

from __future__ import annotations

_WINDOW = 60.0


class LeakyBucket:
    """The limit of one key."""

    __slots__ = ("_each", "_full_at")

    def __init__(self, limit: int) -> None:
        """At most `limit` per minute; 0 for no limit."""
        self._each = _WINDOW / limit if limit > 0 else 0.0
        self._full_at = 0.0
        """When the bucket will be empty."""

    def hit(self, now: float) -> float | None:
        """Count one; None if within the limit, else the seconds until one is. Refused ones do not count."""
        if not self._each:
            return None
        full_at = (self._full_at if self._full_at > now else now) + self._each
        over = full_at - now - _WINDOW
        if over > 1e-9:
            return over
        self._full_at = full_at
        return None

    def add(self, count: int, now: float) -> None:
        """Count what was used elsewhere, at most one full bucket."""
        if self._each and count > 0:
            used = max(self._full_at, now) + count * self._each
            self._full_at = min(used, now + _WINDOW)

    def empty(self, now: float) -> bool:
        """Whether a new bucket would be the same."""
        return self._full_at <= now
