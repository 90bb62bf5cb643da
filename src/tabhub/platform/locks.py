"""Lock files. The system releases a lock when its holder exits, however it exits."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from tabhub.errors import SetupError


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock file; waits until it is free."""
    fd = _open(path)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


@contextlib.contextmanager
def try_lock(path: Path) -> Iterator[bool]:
    """Hold a lock file for the block; yields False at once if another process holds it."""
    fd = _open(path)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(fd)


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise SetupError(
            f"Could not open the lock {path}: {error.strerror}.", hint="Check that the folder is yours and writable."
        ) from error
