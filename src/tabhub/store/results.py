"""Large results, stored for a limited time under a handle that only their session can read.

Owns the SQLite file and the fallback in memory while the disk cannot be written. Knows nothing of budgets or paging.
Every method may be called from any thread. Times are of the wall clock, because results outlive the process.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import sqlite3
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tabhub.errors import ResultNotFound, SetupError, TooLarge
from tabhub.limits import DEFAULTS, Limits

_HANDLE = re.compile(r"r_[A-Za-z0-9_-]{20}")
_SCHEMA = """
CREATE TABLE IF NOT EXISTS results (
    number INTEGER PRIMARY KEY, handle TEXT NOT NULL UNIQUE, session TEXT NOT NULL,
    mime TEXT NOT NULL, created REAL NOT NULL, size INTEGER NOT NULL, data BLOB NOT NULL
)"""
_CORRUPT = ("file is not a database", "malformed", "no such column", "unsupported file format")


@dataclass(frozen=True, slots=True)
class StoredResult:
    """One stored result."""

    handle: str
    session: str
    mime: str
    data: bytes
    created: float
    expires: float


class ResultStore:
    """The results of one hub."""

    def __init__(self, path: Path | None, limits: Limits = DEFAULTS, clock: Callable[[], float] = time.time) -> None:
        """Without a path results are stored in memory, within its own bound."""
        self._path = path
        self._limits = limits
        self._clock = clock
        self._lock = threading.Lock()
        self._db: sqlite3.Connection | None = None
        self._suspect = False  # a write failed: the next one tries a new connection, reads use the old one
        self._total = 0
        self._memory: OrderedDict[str, StoredResult] = OrderedDict()
        self.degraded: str | None = None
        """Why results are stored in memory only, while that is so."""
        self.problem: str | None = None
        """What happened to a corrupt file."""
        with self._lock:
            self._connected()

    def put(self, session: str, mime: str, data: bytes) -> str:
        """Store a result and return its handle; the oldest results are dropped if it needs their space."""
        if len(data) > self._limits.result_store:
            raise TooLarge(
                f"The result has {len(data)} bytes; at most {self._limits.result_store} can be stored.",
                hint="Ask the tool for less, or raise limits.result_store.",
            )
        handle = f"r_{secrets.token_urlsafe(15)}"
        now = self._clock()
        result = StoredResult(handle, session, mime, data, now, now + self._limits.result_ttl)
        with self._lock:
            for _ in range(2):  # a second time on a fresh file, if the first turned out to be corrupt
                db = self._connected(reopen=self._suspect)
                if db is None:
                    break
                try:
                    self._insert(db, result)
                except sqlite3.Error as error:
                    if self._failed(error):
                        continue
                    break
                self.degraded = None
                return handle
            self._put_in_memory(result)
        return handle

    def get(self, handle: str, session: str) -> StoredResult:
        """The result, if it is this session's and has not expired; otherwise ResultNotFound, whatever the reason."""
        with self._lock:
            found = self._memory.get(handle) or self._select(handle)
        if found is None or found.session != session or found.expires <= self._clock():
            raise ResultNotFound(
                f"There is no result {handle}." if _HANDLE.fullmatch(handle) else "That is not a result handle.",
                hint=f"Results are stored for {self._limits.result_ttl / 60:g} minutes, for the session that made the "
                "call. Call the tool again.",
            )
        return found

    def expire(self) -> int:
        """Delete expired results and free their space; returns how many."""
        now = self._clock()
        with self._lock:
            old = [handle for handle, result in self._memory.items() if result.expires <= now]
            for handle in old:
                del self._memory[handle]
            db = self._connected()
            if db is None:
                return len(old)
            try:
                with db:
                    horizon = now - self._limits.result_ttl
                    deleted = db.execute("DELETE FROM results WHERE created <= ?", (horizon,)).rowcount
                db.execute("PRAGMA incremental_vacuum").fetchall()
                self._total = self._sum(db)
            except sqlite3.Error as error:
                self._failed(error)
                return len(old)
            return len(old) + deleted

    def close(self) -> None:
        with self._lock:
            self._disconnect()

    def _insert(self, db: sqlite3.Connection, result: StoredResult) -> None:
        size, total = len(result.data), self._total
        with db:  # one transaction
            if total + size > self._limits.result_store:
                total = self._evict(db, size)
            db.execute(
                "INSERT INTO results (handle, session, mime, created, size, data) VALUES (?, ?, ?, ?, ?, ?)",
                (result.handle, result.session, result.mime, result.created, size, result.data),
            )
        self._total = total + size

    def _evict(self, db: sqlite3.Connection, size: int) -> int:
        """Delete the oldest results until a new one of that size fits; returns the bytes that remain."""
        total = self._sum(db)
        for number, freed in db.execute("SELECT number, size FROM results ORDER BY number").fetchall():
            if total + size <= self._limits.result_store:
                break
            db.execute("DELETE FROM results WHERE number = ?", (number,))
            total -= freed
        return total

    def _select(self, handle: str) -> StoredResult | None:
        db = self._connected()
        if db is None or not _HANDLE.fullmatch(handle):
            return None
        try:
            row = db.execute("SELECT session, mime, data, created FROM results WHERE handle = ?", (handle,)).fetchone()
        except sqlite3.Error as error:
            self._failed(error)
            return None
        if row is None:
            return None
        session, mime, data, created = row
        return StoredResult(handle, session, mime, bytes(data), created, created + self._limits.result_ttl)

    def _put_in_memory(self, result: StoredResult) -> None:
        """Store a result in memory, within its bound."""
        if len(result.data) > self._limits.result_memory:
            raise SetupError(
                f"The rest of the result could not be stored. {self.degraded or ''}".strip(),
                hint="Free space on the disk, or ask the tool for less.",
            )
        self._memory[result.handle] = result
        total = sum(len(one.data) for one in self._memory.values())
        while total > self._limits.result_memory:
            total -= len(self._memory.popitem(last=False)[1].data)

    def _connected(self, *, reopen: bool = False) -> sqlite3.Connection | None:
        """The connection to the file; None, with `degraded` set, if it cannot be opened."""
        if self._path is not None and (self._db is None or reopen):
            for _ in range(2):
                try:
                    fresh = self._open(self._path)
                except (sqlite3.Error, OSError) as error:
                    if not self._failed(error):
                        break
                else:
                    self._disconnect()
                    self._db = fresh
                    break
        return self._db

    def _open(self, path: Path) -> sqlite3.Connection:
        try:
            # Only for a new file: closing a descriptor of a file that SQLite has open would drop SQLite's locks.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        except FileExistsError:
            path.chmod(0o600)  # SQLite gives its side files the same mode
        db = sqlite3.connect(path, timeout=1.0, isolation_level="IMMEDIATE", check_same_thread=False)
        try:
            db.execute("PRAGMA auto_vacuum = INCREMENTAL")
            db.execute("PRAGMA journal_mode = WAL").fetchall()
            db.execute("PRAGMA synchronous = NORMAL")
            db.execute(f"PRAGMA journal_size_limit = {4 * 1024 * 1024}").fetchall()
            db.execute(_SCHEMA)
            self._total = self._sum(db)
        except sqlite3.Error:
            db.close()
            raise
        return db

    @staticmethod
    def _sum(db: sqlite3.Connection) -> int:
        return int(db.execute("SELECT coalesce(sum(size), 0) FROM results").fetchone()[0])

    def _failed(self, error: sqlite3.Error | OSError) -> bool:
        """Record a failure; True if a new file has replaced a corrupt one."""
        path = self._path
        if path is not None and isinstance(error, sqlite3.Error) and any(sign in str(error) for sign in _CORRUPT):
            self._disconnect()
            try:
                aside = path.with_name(f"{path.name}.corrupt")
                path.replace(aside)
                for side in ("-wal", "-shm"):
                    Path(f"{path}{side}").unlink(missing_ok=True)
            except OSError as moving:
                error = moving
            else:
                self.problem = f"The file of stored results was corrupt ({error}); it was moved to {aside}."
                return True
        self._suspect = True
        self.degraded = f"Results are stored in memory only: {path} cannot be used ({error})."
        return False

    def _disconnect(self) -> None:
        if self._db is not None:
            with contextlib.suppress(sqlite3.Error):  # what is committed is on disk
                self._db.close()
            self._db = None
        self._suspect = False
