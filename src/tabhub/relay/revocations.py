"""Revoked tokens: from a file on this node, and from reports of other nodes.

Owns the list. One token per line: its id, a space, and when it expires, after which its entry is dropped. If it is not
known when the token expires, that is NEVER.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterable
from pathlib import Path

from tabhub.platform.files import stamp

log = logging.getLogger("tabhub.relay")

NEVER = 999_999_999_999
"""The expiry of an entry that stays; a number, so that nodes of any version understand it."""
_LINE = re.compile(r"(\S{1,128}) ([0-9]{1,12})")
_MAX_ENTRIES = 100_000


class Revocations:
    """The revoked tokens known to one node."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._stamp: tuple[int, int, int] | None = None
        self._expiry: dict[str, int] = {}
        """Token ids, and when each token expires."""

    def names_any(self, ids: Iterable[str]) -> bool:
        """Whether one of a token's ids is listed."""
        return any(token_id in self._expiry for token_id in ids)

    def __len__(self) -> int:
        return len(self._expiry)

    def reload(self, now: float) -> list[str]:
        """Read the file if it has changed; returns the new entries."""
        if self._file is None or (found := stamp(self._file)) in (None, self._stamp):
            return []
        try:
            text = self._file.read_text("utf-8", "replace")
        except OSError:
            return []  # it is being replaced: the next tick tries again
        self._stamp = found
        return self.add(text.splitlines(), now)

    def add(self, entries: Iterable[str], now: float) -> list[str]:
        """Add entries; returns those that are new or last longer, and are not expired."""
        new, refused = [], 0
        if len(self._expiry) >= _MAX_ENTRIES:
            self._drop_expired(now)
        for entry in entries:
            found = _LINE.fullmatch(entry.strip())
            if found is None or int(found[2]) <= max(now, self._expiry.get(found[1], 0)):
                continue
            if found[1] not in self._expiry and len(self._expiry) >= _MAX_ENTRIES:
                refused += 1
                continue
            self._expiry[found[1]] = int(found[2])
            new.append(found[0])
        if refused:
            log.error("%d revoked tokens are not refused: the list is full (%d)", refused, _MAX_ENTRIES)
        return new

    def entries(self, now: float) -> list[str]:
        """Drop expired entries and return the rest, for the other nodes."""
        self._drop_expired(now)
        return [f"{name} {expiry}" for name, expiry in self._expiry.items()]

    def _drop_expired(self, now: float) -> None:
        self._expiry = {name: expiry for name, expiry in self._expiry.items() if expiry > now}


def default_file(key_file: Path) -> Path:
    """Where the list is, unless the operator chose another file."""
    return key_file.with_name(f"{key_file.name}.revoked")


def append(file: Path, token_id: str, expiry: int) -> None:
    handle = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.write(handle, f"{token_id} {expiry}\n".encode())
    finally:
        os.close(handle)
