"""Lock files. The system releases a lock when its holder exits, however it exits."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from io import FileIO
from pathlib import Path

from tabhub.errors import SetupError


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock file; waits until it is free."""
    with _open(path) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def try_lock(path: Path) -> Iterator[bool]:
    """Hold a lock file for the block; yields False at once if another process holds it."""
    with _open(path) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


def _open(path: Path) -> FileIO:
    try:
        return FileIO(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600), "r+")
    except OSError as error:
        raise SetupError(
            f"Could not open the lock {path}: {error.strerror}.", hint="Check that the folder is yours and writable."
        ) from error
