"""A ring buffer bounded by count and by weight, which each reader can clear for itself.

The oldest entries are dropped first. It does not know what the entries mean.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Generic, Protocol, TypeVar

_MAX_READERS = 200


class Weighed(Protocol):
    """An entry with an approximate size in bytes and a sequence number."""

    n: int
    weight: int


E = TypeVar("E", bound=Weighed)


class Ring(Generic[E]):
    """Entries in order; dropped ones are counted."""

    __slots__ = ("_cleared", "_entries", "_on_drop", "bytes", "dropped", "most", "weight")

    def __init__(self, most: int, most_bytes: int, on_drop: Callable[[E], None] = lambda _: None) -> None:
        self._entries: deque[E] = deque()
        self._on_drop = on_drop
        self._cleared: dict[str, int] = {}
        """The last sequence number that each reader has cleared."""
        self.most = most
        self.bytes = most_bytes
        self.weight = 0
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[E]:
        return iter(self._entries)

    def add(self, entry: E) -> None:
        self._entries.append(entry)
        self.weight += entry.weight
        self._trim()

    def grow(self, entry: E, by: int) -> None:
        entry.weight += by
        self.weight += by
        self._trim()

    def resize(self, most: int) -> None:
        self.most = most
        self._trim()

    def drop_all(self) -> None:
        most, self.most = self.most, 0
        self._trim()
        self.most = most

    def last_uncleared(self) -> E | None:
        """The newest entry, unless a reader has cleared it."""
        last = self._entries[-1] if self._entries else None
        return last if last is None or all(n < last.n for n in self._cleared.values()) else None

    def uncleared(self, reader: str) -> list[E]:
        cleared = self._cleared.get(reader, 0)
        return [entry for entry in self._entries if entry.n > cleared]

    def clear(self, reader: str) -> None:
        """The entries stay, for other readers."""
        before = self._cleared.pop(reader, 0)
        if len(self._cleared) >= _MAX_READERS:
            del self._cleared[next(iter(self._cleared))]
        self._cleared[reader] = self._entries[-1].n if self._entries else before

    def _trim(self) -> None:
        while self._entries and (len(self._entries) > self.most or self.weight > self.bytes):
            oldest = self._entries.popleft()
            self.weight -= oldest.weight
            self.dropped += 1
            self._on_drop(oldest)
