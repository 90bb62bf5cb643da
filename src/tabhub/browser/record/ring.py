"""The newest of what a tab said, within a count and a weight.

Owns how many entries are kept and which go first. It knows nothing of what the entries mean.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Generic, Protocol, TypeVar


class Weighed(Protocol):
    """An entry that knows about how many bytes it takes, and its place in the order of all that was said."""

    n: int
    weight: int


E = TypeVar("E", bound=Weighed)


class Ring(Generic[E]):
    """Entries in the order they came; the oldest fall out, and are counted."""

    __slots__ = ("_entries", "_fallen", "bytes", "dropped", "most", "weight")

    def __init__(self, most: int, most_bytes: int, fallen: Callable[[E], None] = lambda _: None) -> None:
        self._entries: deque[E] = deque()
        self._fallen = fallen
        self.most = most
        self.bytes = most_bytes
        self.weight = 0
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[E]:
        return iter(self._entries)

    def add(self, entry: E) -> None:
        """Take one more."""
        self._entries.append(entry)
        self.weight += entry.weight
        self._trim()

    def grow(self, entry: E, by: int) -> None:
        """An entry that is kept has grown."""
        entry.weight += by
        self.weight += by
        self._trim()

    def resize(self, most: int) -> None:
        """Keep that many from now on."""
        self.most = most
        self._trim()

    def drop_all(self) -> None:
        """Let go of all there is."""
        most, self.most = self.most, 0
        self._trim()
        self.most = most

    def last(self) -> E | None:
        """The newest."""
        return self._entries[-1] if self._entries else None

    def after(self, n: int) -> list[E]:
        """The entries that came after the one of that number."""
        return [entry for entry in self._entries if entry.n > n]

    def _trim(self) -> None:
        while self._entries and (len(self._entries) > self.most or self.weight > self.bytes):
            gone = self._entries.popleft()
            self.weight -= gone.weight
            self.dropped += 1
            self._fallen(gone)
