"""Tokens that are no longer valid although their time has not come: a file, and what other nodes say.

Owns the list. One token a line: its id, a space, and when it ends by itself (so that the list does not grow for ever).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

_LINE = re.compile(r"(\S{1,128}) ([0-9]{1,12})")
_MOST = 100_000


class Revocations:
    """The revoked tokens one node knows of."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._seen: tuple[int, int] | None = None
        self._until: dict[str, int] = {}
        """Token ids, and when each token ends by itself."""

    def __contains__(self, token_id: str) -> bool:
        return token_id in self._until

    def __len__(self) -> int:
        return len(self._until)

    def reread(self, now: float) -> list[str]:
        """Take the file over if it has changed; gives the entries that are new."""
        if self._file is None:
            return []
        try:
            facts = self._file.stat()
            mark = (facts.st_mtime_ns, facts.st_size)
            if mark == self._seen:
                return []
            text = self._file.read_text("utf-8", "replace")
        except OSError:
            return []  # no list yet, or being replaced: looked at again in a moment
        self._seen = mark
        return self.add(text.splitlines(), now)

    def add(self, entries: Iterable[str], now: float) -> list[str]:
        """Take entries over; gives those that are new and still matter."""
        new = []
        for entry in entries:
            found = _LINE.fullmatch(entry.strip())
            if found is None or found[1] in self._until or int(found[2]) <= now or len(self._until) >= _MOST:
                continue
            self._until[found[1]] = int(found[2])
            new.append(found[0])
        return new

    def entries(self, now: float) -> list[str]:
        """All that still matter, for the other nodes; those that have ended by themselves are forgotten."""
        self._until = {name: until for name, until in self._until.items() if until > now}
        return [f"{name} {until}" for name, until in self._until.items()]


def append(file: Path, token_id: str, until: int) -> None:
    """Add a token to a list."""
    handle = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.write(handle, f"{token_id} {until}\n".encode())
    finally:
        os.close(handle)
