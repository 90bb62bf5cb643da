"""Revoked tokens: from a file on this node, and from reports of other nodes.

Owns the list and its digest. One line per entry: an id, a space, and when the entry ends. The id is a token's, or
`user-sha256-<hash>@<time>`: all tokens of a user that were issued up to that time. An entry ends when what it names has
expired; if that is not known, it is NEVER.
"""

from __future__ import annotations

import logging
import os
import re
from bisect import bisect_right, insort
from collections.abc import Iterable
from hashlib import blake2b, sha256
from pathlib import Path

from tabhub.limits import DEFAULTS
from tabhub.platform.files import stamp
from tabhub.trust.jwt import Claims

log = logging.getLogger("tabhub.relay")

NEVER = 999_999_999_999
"""The end of an entry that stays; a number, so that nodes of any version understand it."""
_LINE = re.compile(r"(\S{1,128}) ([0-9]{1,12})")
_USER = re.compile(r"(user-sha256-[0-9a-f]{64})@([0-9]{1,12})")
_KEPT = 5
"""Minutes for which an entry that has ended still counts in digests, because clocks differ."""

Digest = tuple[int, int]
"""The number of entries, and a hash of them that does not depend on their order."""


def user_key(user: str) -> str:
    return "user-sha256-" + sha256(user.encode("utf-8", "surrogatepass")).hexdigest()


class Revocations:
    """The revoked tokens known to one node."""

    def __init__(self, file: Path | None, most: int = DEFAULTS.relay_revoked) -> None:
        self._file = file
        self._most = most
        self._stamp: tuple[int, int, int] | None = None
        self._ends: dict[str, int] = {}
        """Ids, and when each entry ends."""
        self._users: dict[str, int] = {}
        """Users, by key, and the latest time up to which their tokens are revoked."""
        self._minutes: dict[int, dict[str, int]] = {}
        """The entries by the minute in which they end, and the hash of each."""
        self._order: list[int] = []
        """Those minutes, in order."""
        self._hash = 0
        """Of all entries."""
        self.refused = 0
        """Entries that the full list has not taken: their tokens are still valid."""

    def __len__(self) -> int:
        return len(self._ends)

    def revokes(self, claims: Claims) -> bool:
        if any(token_id in self._ends for token_id in claims.ids):
            return True
        until = self._users.get(user_key(claims.user)) if self._users else None
        return until is not None and (claims.issued is None or claims.issued <= until)

    def change_limit(self, most: int) -> None:
        self._most = most
        self._stamp = None  # the file may have entries that now fit

    def reload(self, now: float) -> list[str]:
        """Read the file if it has changed; returns the new entries."""
        if self._file is None or (found := stamp(self._file)) in (None, self._stamp):
            return []
        try:
            text = self._file.read_text("utf-8", "replace")
        except OSError:
            return []  # it is being replaced: the next tick tries again
        self._stamp = found
        self.refused = 0
        return self.add(text.splitlines(), now)

    def add(self, entries: Iterable[str], now: float) -> list[str]:
        """Add entries; returns those that are new or last longer, and have not ended."""
        new, refused = [], 0
        if len(self._ends) >= self._most:
            self.drop_ended(now, kept=0)
        for entry in entries:
            found = _LINE.fullmatch(entry.strip())
            if found is None or int(found[2]) <= max(now, self._ends.get(found[1], 0)):
                continue
            if found[1] not in self._ends and len(self._ends) >= self._most:
                refused += 1
                continue
            self._set(found[1], int(found[2]))
            new.append(found[0])
        if refused:
            self.refused += refused
            log.error("%d revoked tokens are not refused: the list is full (%d)", refused, self._most)
        return new

    def entries(self, now: float) -> list[str]:
        return [f"{name} {end}" for name, end in self._ends.items() if end > now]

    def digest(self, minute: int) -> Digest:
        """Of the entries that end after this minute: the same on all nodes that have the same entries."""
        count, total = len(self._ends), self._hash
        for at in self._order[: bisect_right(self._order, minute)]:  # a few: they are dropped soon
            count -= len(self._minutes[at])
            for each in self._minutes[at].values():
                total ^= each
        return count, total

    def drop_ended(self, now: float, kept: int = _KEPT) -> None:
        """Drop entries that have ended a while ago."""
        minute = int(now) // 60 - kept
        for at in self._order[: bisect_right(self._order, minute)]:
            for name in list(self._minutes[at]):
                if self._ends[name] <= now:
                    self._forget(name)

    def _set(self, name: str, end: int) -> None:
        if name in self._ends:
            self._forget(name)
        self._ends[name] = end
        hashed = int.from_bytes(blake2b(f"{name} {end}".encode(), digest_size=8).digest())
        if end // 60 not in self._minutes:
            self._minutes[end // 60] = {}
            insort(self._order, end // 60)
        self._minutes[end // 60][name] = hashed
        self._hash ^= hashed
        if (user := _USER.fullmatch(name)) is not None:
            self._users[user[1]] = max(int(user[2]), self._users.get(user[1], 0))

    def _forget(self, name: str) -> None:
        end = self._ends.pop(name)
        hashes = self._minutes[end // 60]
        self._hash ^= hashes.pop(name)
        if not hashes:
            del self._minutes[end // 60]
            self._order.remove(end // 60)
        if (user := _USER.fullmatch(name)) is not None:
            times = [int(found[2]) for each in self._ends if (found := _USER.fullmatch(each)) and found[1] == user[1]]
            self._users.pop(user[1])
            if times:
                self._users[user[1]] = max(times)


def default_file(key_file: Path) -> Path:
    """Where the list is, unless the operator chose another file."""
    return key_file.with_name(f"{key_file.name}.revoked")


def append(file: Path, token_id: str, end: int) -> None:
    handle = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.write(handle, f"{token_id} {end}\n".encode())
    finally:
        os.close(handle)
