"""Rate limits: a maximum in any window of time, for each key.

Owns the counting. Knows no clock: the time passed in is monotonic, so that a jump of the wall clock changes nothing.
"""

from __future__ import annotations

from collections import deque

_KEYS = 10_000


class SlidingWindow:
    """A sliding window for each key; memory is bounded by the number of keys times the limit."""

    def __init__(self, limit: int, window: float = 60.0, *, keys: int = _KEYS) -> None:
        """At most `limit` in `window` seconds (0: no limit); beyond `keys` busy keys, all new ones share one."""
        self.limit = limit
        self.window = window
        self._keys = keys
        self._ends: dict[str | None, deque[float]] = {}
        self._swept = float("-inf")

    def hit(self, key: str, now: float) -> float | None:
        """Count one; None if within the limit, else the seconds until the next one will be.

        Refused ones do not count, so waiting that long is always enough.
        """
        if self.limit <= 0:
            return None
        ends = self._ends.get(key) or self._begin(key, now)
        while ends and ends[0] <= now:
            ends.popleft()
        if len(ends) >= self.limit:
            return ends[0] - now
        end = now + self.window
        ends.append(end if not ends else max(end, ends[-1]))  # in order, even if the clock did not advance
        return None

    def __len__(self) -> int:
        return len(self._ends)

    def _begin(self, key: str, now: float) -> deque[float]:
        if key not in self._ends and len(self._ends) >= self._keys:
            if now >= self._swept + self.window / 10:  # sweeping all keys with every hit would be expensive
                self._swept = now
                self._ends = {name: ends for name, ends in self._ends.items() if ends and ends[-1] > now}
            if len(self._ends) >= self._keys:
                # Dropping an old key would reset the limit of a client that invents keys; sharing one does not.
                return self._ends.setdefault(None, deque())
        return self._ends.setdefault(key, deque())
