"""Large results, stored for a limited time under a handle that only their session can read.

Owns the folder of results, a file each, and the fallback in memory while the disk cannot be written. Knows nothing of
budgets or paging. Every method may be called from any thread. Times are of the wall clock, because results outlive the
process; the time of modification of a file is that of its result.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from tabhub.errors import ResultNotFound, SetupError, TooLarge
from tabhub.limits import DEFAULTS, Limits

_HANDLE = re.compile(r"r_[A-Za-z0-9_-]{20}")


class _Header(msgspec.Struct):
    """The first line of a file."""

    session: str
    mime: str
    created: float
    size: int


@dataclass(frozen=True, slots=True)
class StoredResult:
    """One stored result."""

    handle: str
    session: str
    mime: str
    data: bytes
    created: float


class ResultStore:
    """The results of one hub."""

    def __init__(self, folder: Path | None, limits: Limits = DEFAULTS, clock: Callable[[], float] = time.time) -> None:
        """Without a folder results are stored in memory, within its own maximum."""
        self._folder = folder
        self._limits = limits
        self._clock = clock
        self._lock = threading.Lock()
        self._memory: OrderedDict[str, StoredResult] = OrderedDict()
        self.degraded: str | None = None
        """Why results are stored in memory only, while that is so."""
        self._remove_database()

    def put(self, session: str, mime: str, data: bytes) -> str:
        """Store a result and return its handle; the oldest results are dropped if it needs their space."""
        if len(data) > self._limits.result_store:
            raise TooLarge(
                f"The result has {len(data)} bytes; at most {self._limits.result_store} can be stored.",
                hint="Ask the tool for less, or raise limits.result_store.",
            )
        handle = f"r_{secrets.token_urlsafe(15)}"
        result = StoredResult(handle, session, mime, data, self._clock())
        with self._lock:
            if self._folder is not None:
                try:
                    self._write(self._folder, result)
                except OSError as error:
                    self.degraded = f"Results are stored in memory only: {self._folder} cannot be used ({error})."
                else:
                    self.degraded = None
                    return handle
            self._put_in_memory(result)
        return handle

    def get(self, handle: str, session: str) -> StoredResult:
        """The result, if it is this session's and has not expired; otherwise ResultNotFound, whatever the reason."""
        with self._lock:
            found = self._memory.get(handle) or self._read(handle)
        if found is None or found.session != session or found.created <= self._clock() - self._limits.result_ttl:
            raise ResultNotFound(
                f"There is no result {handle}." if _HANDLE.fullmatch(handle) else "That is not a result handle.",
                hint=f"Results are stored for {self._limits.result_ttl / 60:g} minutes, for the session that made the "
                "call. Call the tool again.",
            )
        return found

    def expire(self) -> int:
        """Delete expired results; returns how many."""
        oldest = self._clock() - self._limits.result_ttl
        with self._lock:
            expired = [handle for handle, result in self._memory.items() if result.created <= oldest]
            for handle in expired:
                del self._memory[handle]
            files = [entry for entry in self._files() if entry.stat().st_mtime <= oldest]
            for entry in files:
                Path(entry).unlink(missing_ok=True)
        return len(expired) + len(files)

    def _remove_database(self) -> None:
        """Delete the database in which earlier versions stored results beside the folder; nothing reads it."""
        if self._folder is not None:
            for file in self._folder.parent.glob("results.db*"):
                with contextlib.suppress(OSError):  # it only takes space, and the next start tries again
                    file.unlink()

    def _write(self, folder: Path, result: StoredResult) -> None:
        folder.mkdir(mode=0o700, exist_ok=True)
        files = self._files()
        total = sum(entry.stat().st_size for entry in files)
        for entry in files:
            if total + len(result.data) <= self._limits.result_store:
                break
            total -= entry.stat().st_size
            Path(entry).unlink(missing_ok=True)
        header = _Header(result.session, result.mime, result.created, len(result.data))
        path = folder / result.handle
        try:
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:  # noqa: PTH123
                file.writelines((msgspec.json.encode(header), b"\n", result.data))
            os.utime(path, (result.created, result.created))
        except OSError:
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
            raise

    def _read(self, handle: str) -> StoredResult | None:
        """A result on disk; None if there is none, or only a part of it because its writer was killed."""
        if self._folder is None or not _HANDLE.fullmatch(handle):
            return None
        try:
            line, _, data = (self._folder / handle).read_bytes().partition(b"\n")
            header = msgspec.json.decode(line, type=_Header)
        except (OSError, ValueError):
            return None
        if len(data) != header.size:
            return None
        return StoredResult(handle, header.session, header.mime, data, header.created)

    def _files(self) -> list[os.DirEntry[str]]:
        """The files of results, oldest first."""
        try:
            entries = [entry for entry in os.scandir(self._folder) if _HANDLE.fullmatch(entry.name)]
        except OSError:
            return []
        return sorted(entries, key=lambda entry: entry.stat().st_mtime)

    def _put_in_memory(self, result: StoredResult) -> None:
        if len(result.data) > self._limits.result_memory:
            raise SetupError(
                f"The rest of the result could not be stored. {self.degraded or ''}".strip(),
                hint="Free space on the disk, or ask the tool for less.",
            )
        self._memory[result.handle] = result
        total = sum(len(one.data) for one in self._memory.values())
        while total > self._limits.result_memory:
            total -= len(self._memory.popitem(last=False)[1].data)
