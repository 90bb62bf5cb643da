"""The NATS servers of one relay: which one to connect to next.

Owns the order only. Nodes shuffle the servers they were given, so that each server has about as many nodes as any
other. Servers that these name (`connect_urls`) come after them, and those that ended a connection, or announced that
they shut down (lame duck mode), come last.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from urllib.parse import urlsplit

_MAX_KNOWN = 64
"""Servers of one cluster that are remembered."""


class NatsServers:
    """All servers that are known."""

    def __init__(self, url: str, shuffle: Callable[[list[str]], None] = random.shuffle) -> None:
        self._given = [part.strip() for part in url.split(",") if part.strip()]
        self._shuffle = shuffle
        self._named: list[str] = []
        self._avoided: set[str] = set()
        """Those that the last connection ended with, or that shut down."""
        self._round: list[str] = []
        """Those still to be tried before all are tried again."""

    def __len__(self) -> int:
        return len(self._given) + len(self._named)

    def next(self) -> str:
        if not self._round:
            self._shuffle(self._given)
            self._shuffle(self._named)
            self._round = sorted([*self._given, *self._named], key=lambda url: _place(url) in self._avoided)
            self._avoided.clear()
        return self._round.pop(0)

    def lost(self, url: str) -> None:
        """The connection to this server ended, or is about to: the others are tried first."""
        self._avoided.add(_place(url))
        self._round = []

    def named(self, url: str, others: Iterable[object]) -> None:
        """The server at `url` names the servers of its cluster, as HOST:PORT."""
        parts = urlsplit(url)
        login = f"{parts.netloc.rpartition('@')[0]}@" if "@" in parts.netloc else ""
        known = {_place(each) for each in self._given}
        found = [f"{parts.scheme}://{login}{each}" for each in others if isinstance(each, str) and _is_place(each)]
        self._named = [each for each in dict.fromkeys(found) if _place(each) not in known][:_MAX_KNOWN]


def _place(url: str) -> str:
    return url.rpartition("@")[2].rpartition("//")[2]


def _is_place(text: str) -> bool:
    """Whether it is HOST:PORT and nothing else."""
    try:
        parts = urlsplit(f"nats://{text}")
        return parts.netloc == text and "@" not in text and bool(parts.hostname) and parts.port is not None
    except ValueError:
        return False
