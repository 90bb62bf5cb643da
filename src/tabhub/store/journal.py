"""An append-only file of lines that survives a full disk, a rotation and a second writer.

Owns the file descriptor, the rotation to `<name>.1` and the lines that wait while the disk cannot be written. Knows
nothing of what a line says. One thread uses a journal; other processes may append to the same file.

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
import os
from collections import deque
from collections.abc import Iterator
from pathlib import Path

_CHUNK = 64 * 1024
_ATTEMPTS = 3


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


def lines_backward(path: Path) -> Iterator[bytes]:
    """The lines of a journal and of the file rotated before it, last first; empty ones skipped."""
    files = []
    try:
        # The newer one is opened first: a rotation in between then shows the same file twice, never a gap.
        for name in (str(path), f"{path}.1"):
            with contextlib.suppress(FileNotFoundError):
                files.append(open(name, "rb"))  # noqa: PTH123, SIM115 - closed below
        seen = set()
        for file in files:
            facts = os.fstat(file.fileno())
            if (facts.st_dev, facts.st_ino) not in seen:
                seen.add((facts.st_dev, facts.st_ino))
                yield from _backward(file.fileno(), facts.st_size)
    finally:
        for file in files:
            file.close()


def _backward(fd: int, end: int) -> Iterator[bytes]:
    """Lines from the end, reading one chunk at a time."""
    pieces: list[bytes] = []  # of the line whose beginning is not read yet, last piece first
    while end > 0:
        start = max(0, end - _CHUNK)
        chunk = os.pread(fd, end - start, start)
        end = start
        *complete, last = chunk.split(b"\n")[::-1]
        for part in complete:
            pieces.append(part)
            line = b"".join(reversed(pieces))
            pieces = []
            if line:
                yield line
        pieces.append(last)
    if line := b"".join(reversed(pieces)):
        yield line
