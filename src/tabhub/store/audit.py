"""The audit log: one line for every answered call, on disk before the answer leaves, and the last ones in memory.

Owns the ring `/audit` shows and an append-only file that survives a full disk, a rotation and a second writer. What a
line says is audit_record.py's, reading the file is audit_reader.py's, counting the calls is call_figures.py's. Time
is the wall clock handed in; it stamps entries and never decides a deadline. One thread uses a log; other processes may
append to the same file.

Why no line is lost:
- one `write(2)` on an O_APPEND descriptor appends a whole line, even with other writers;
- rotation renames the file while holding its lock, after checking that the name still means the file in hand; a
  writer that has it open continues to write to the renamed file, which still exists;
- after every write the file's link count is checked: zero means that the file was rotated away twice or removed,
  and the line is written again, to the file that now has the name;
- a write that ends early is cut off again, or else closed by a newline, so that no later line is joined to it.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import orjson

from tabhub.limits import DEFAULTS, Limits
from tabhub.store.audit_reader import entry_time, lines_backward, matches, parse_line
from tabhub.store.audit_record import CallRecord, as_json, json_value, shortened
from tabhub.store.call_figures import Figures

if TYPE_CHECKING:
    from tabhub.core.tools import Source

_LOOKED_AT = 10_000
_ATTEMPTS = 3

_encode = msgspec.json.Encoder().encode


def canonical_json(arguments: Mapping[str, Any]) -> bytes:
    """The arguments as JSON, the same whatever the order of their keys."""
    try:
        return orjson.dumps(arguments, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        return orjson.dumps(json_value(arguments), option=orjson.OPT_SORT_KEYS)


def fingerprint(canonical: bytes) -> str:
    return hashlib.blake2s(canonical, digest_size=8).hexdigest()


def digest(arguments: Mapping[str, Any]) -> str:
    """A short fingerprint of arguments."""
    return fingerprint(canonical_json(arguments))


_second = (-1, "")


def stamp(now: float) -> str:
    """A time as `2026-02-21T10:30:00.000Z`."""
    global _second
    second, milliseconds = divmod(int(now * 1000), 1000)
    if second != _second[0]:
        _second = (second, time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second)))
    return f"{_second[1]}.{milliseconds:03d}Z"


class Batch(Protocol):
    """What all answers are written through (http.write_batch.WriteBatch)."""

    def before_write(self, hook: Callable[[], None]) -> None:
        """Run this before any answer is written."""
        ...


class AuditLog:
    """The log of one hub."""

    def __init__(
        self,
        path: Path | None,
        limits: Limits = DEFAULTS,
        *,
        clock: Callable[[], float] = time.time,
        batch: Batch | None = None,
    ) -> None:
        """Open the file and fill the ring from its end; a torn last line is skipped and counted in `torn`.

        Without a path there is no file, and the ring is all that is kept. With a batch, lines are held until it writes
        an answer, and are written before it.
        """
        self._clock = clock
        self._longest = limits.audit_line
        self._ring: deque[bytes] = deque(maxlen=max(limits.audit_ring, 1))
        self.figures = Figures(limits.metric_sites)
        self._lines: list[bytes] = []
        """Lines to be written before the next answer."""
        self._holds = batch is not None
        if batch is not None:
            batch.before_write(self._write_lines)
        self.torn = 0
        self.unreadable: str | None = None
        self._journal: Journal | Nowhere = Nowhere()
        if path is not None:
            self._journal = Journal(path, rotate_at=limits.audit_bytes, waiting=limits.audit_ring)
            self._load(path)

    @property
    def degraded(self) -> str | None:
        """Why lines do not reach the disk, while they do not."""
        return self._journal.degraded

    @property
    def lost(self) -> int:
        """Lines that were answered for and never reached the disk."""
        return self._journal.lost

    def write(self, record: CallRecord) -> None:
        """Record and count one call; it never fails the call."""
        now = self._clock()
        record.timestamp = stamp(now)
        try:
            line = _encode(record) + b"\n"
        except (TypeError, ValueError, OverflowError, RecursionError):
            line = orjson.dumps(as_json(record), option=orjson.OPT_APPEND_NEWLINE)
        if len(line) > self._longest:
            line = orjson.dumps(shortened(orjson.loads(line), self._longest), option=orjson.OPT_APPEND_NEWLINE)
        self._ring.append(line)
        self._lines.append(line)
        page = record.source.startswith("page:")
        self.figures.add(record.plugin, now, record.duration_ms / 1000, ok=record.success, page=page)
        if not self._holds:
            self._write_lines()

    def event(self, what: str, source: Source, *, tab_id: int | None, **facts: Any) -> None:
        """Record something that is no call, as pages declaring tools: on disk only, and no part of the figures."""
        base = {"timestamp": stamp(self._clock()), "tool": what, "plugin": source.key, "source": source.label}
        entry = {**base, "event": True, "success": True, "tabId": tab_id, **facts}
        try:
            line = orjson.dumps(entry, option=orjson.OPT_APPEND_NEWLINE)
        except TypeError:
            line = orjson.dumps(json_value(entry), option=orjson.OPT_APPEND_NEWLINE)
        if len(line) <= self._longest:
            self._lines.append(line)
            if not self._holds:
                self._write_lines()

    def _write_lines(self) -> None:
        if self._lines:
            text = b"".join(self._lines)
            self._lines.clear()
            self._journal.append(text)

    def recent(
        self, limit: int = 50, plugin: str | None = None, tool: str | None = None, success: bool | None = None
    ) -> list[dict[str, Any]]:
        """The last calls, newest first."""
        found: list[dict[str, Any]] = []
        for kept in reversed(self._ring):
            if len(found) >= limit:
                break
            entry: dict[str, Any] = orjson.loads(kept)
            if matches(entry, plugin, tool, success):
                found.append(entry)
        return found

    def summary(self, now: float | None = None) -> dict[str, Any]:
        """The figures of `/health`: those of the calls of this run, and of the ring it began with."""
        return self.figures.summary(self._clock() if now is None else now)

    def flush(self) -> bool:
        """Try to write what waits for the disk; True when nothing does."""
        self._write_lines()
        return self._journal.flush()

    def close(self) -> None:
        """Write what waits and close the file."""
        self._write_lines()
        self._journal.close()

    def _load(self, path: Path) -> None:
        found: list[dict[str, Any]] = []
        try:
            for number, line in enumerate(lines_backward(path)):
                entry = parse_line(line)
                if entry is not None:
                    if "event" not in entry:
                        found.append(entry)
                elif number == 0:
                    self.torn += 1
                if len(found) == self._ring.maxlen or number > _LOOKED_AT:
                    break
        except OSError as error:
            self.unreadable = f"The audit log {path} cannot be read: {error.strerror}."
        for entry in reversed(found):
            self._ring.append(orjson.dumps(entry))
            duration = entry.get("durationMs")
            seconds = duration / 1000 if type(duration) in (int, float) else 0.0
            self.figures.add(None, entry_time(entry), seconds, ok=entry.get("success") is True)


class Journal:
    """An append-only file of lines."""

    def __init__(self, path: Path, *, rotate_at: int, waiting: int) -> None:
        """Up to `waiting` lines are buffered while the file cannot be written."""
        self._path = str(path)
        self._rotated = f"{path}.1"
        self._rotate_at = rotate_at
        self._waiting: deque[bytes] = deque(maxlen=max(waiting, 1))
        self._fd = -1
        self._size = 0
        self._broken_end = False
        self._unrotated: str | None = None
        self.degraded: str | None = None
        """Why lines are not on disk, or the file grows beyond its size, while that is so."""
        self.lost = 0
        """Lines that never reached the disk, because too many waited."""
        try:
            self._open()
        except OSError as error:
            self._degrade(error)

    def append(self, text: bytes) -> None:
        """Write whole lines. They are handed to the system when this returns, or `degraded` is set.

        In the ordinary case that is one write, whether it is one line or many.
        """
        size = len(text)
        if self._size + size <= self._rotate_at and self.degraded is None and not self._broken_end:
            try:
                written = os.write(self._fd, text)
                facts = os.fstat(self._fd)
            except OSError:
                self._drop()  # the descriptor may be the fault; if the disk is, the next attempt says so
            else:
                if written == size and facts.st_nlink:
                    self._size = facts.st_size
                    return
                if written != size:
                    self._cut_back(written)
        for line in text.splitlines(keepends=True):  # so that what waits or is lost is counted in lines
            self._append_slowly(line)

    def flush(self) -> bool:
        """Try to write the buffered lines; True if none remains."""
        if self.degraded is not None or self._waiting:
            self._append_slowly(b"")
        return self.degraded is None

    def close(self) -> None:
        self.flush()
        self._drop()

    def _append_slowly(self, line: bytes) -> None:
        """Everything but the ordinary case: rotate, reopen, write buffered lines."""
        text = b"".join(self._waiting) + line
        try:
            for _ in range(_ATTEMPTS):
                if self._put(text):
                    self._waiting.clear()
                    self.degraded = self._unrotated
                    return
            raise OSError("the file is replaced again and again")
        except OSError as error:
            if line:
                self.lost += len(self._waiting) == self._waiting.maxlen
                self._waiting.append(line)
            self._degrade(error)

    def _put(self, text: bytes) -> bool:
        """One attempt; False if the open file was no longer the one of that name."""
        if self._fd >= 0 and not os.path.exists(self._path):  # noqa: PTH110 - moved or removed by hand
            self._drop()
        if self._fd < 0:
            self._open()
        self._unrotated = None
        if self._size and self._size + len(text) > self._rotate_at:
            try:
                self._rotate()
            except OSError as error:  # a file that is too long is better than a line that is missing
                self._unrotated = f"The audit log {self._path} cannot be rotated: {error.strerror or error}."
        text = b"\n" + text if self._broken_end and text else text
        written = os.write(self._fd, text) if text else 0
        if written != len(text):
            self._cut_back(written)
            raise OSError("the disk took only a part of the line, as a full one does")
        facts = os.fstat(self._fd)
        self._size = facts.st_size
        self._broken_end = self._broken_end and not text
        return facts.st_nlink > 0 or self._drop()

    def _open(self) -> None:
        self._fd = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        self._size = os.fstat(self._fd).st_size
        self._broken_end = bool(self._size) and os.pread(self._fd, 1, self._size - 1) != b"\n"

    def _rotate(self) -> None:
        """Rename the file and start a new one; if another process is rotating, leave it to that one."""
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        old, mine = self._fd, os.fstat(self._fd)
        try:
            try:
                named = os.stat(self._path)  # noqa: PTH116
                if (named.st_dev, named.st_ino) == (mine.st_dev, mine.st_ino):
                    os.rename(self._path, self._rotated)  # noqa: PTH104
            except FileNotFoundError:
                pass  # already renamed: only the new file is missing
            self._open()
        finally:
            if self._fd == old:
                fcntl.flock(old, fcntl.LOCK_UN)
            else:
                os.close(old)

    def _cut_back(self, written: int) -> None:
        """Truncate a partly written line, unless another process has written after it."""
        if not written:
            return
        was_broken, self._broken_end = self._broken_end, True
        with contextlib.suppress(OSError):
            if os.fstat(self._fd).st_size == self._size + written:
                os.ftruncate(self._fd, self._size)
                self._broken_end = was_broken

    def _degrade(self, error: OSError) -> None:
        self.degraded = f"The audit log {self._path} cannot be written: {error.strerror or error}."
        self._drop()

    def _drop(self) -> bool:
        """Close the file; the next write opens it again. Always False, for `_put`."""
        if self._fd >= 0:
            with contextlib.suppress(OSError):  # already closed is as good
                os.close(self._fd)
            self._fd = -1
        return False


class Nowhere:
    """A journal that discards its lines."""

    degraded: str | None = None
    lost = 0

    def append(self, text: bytes) -> None: ...

    def flush(self) -> bool:
        return True

    def close(self) -> None: ...
