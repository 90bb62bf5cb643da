"""A JSON file that the hub reads when it starts and replaces as a whole when its contents change.

Owns the maximum size, what happens to a file that cannot be read (set aside, never overwritten) and what happens when
one cannot be written (logged once, retried with the next save). Knows nothing of the contents but their type.
"""

from __future__ import annotations

import contextlib
import logging
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from tabhub.errors import SetupError
from tabhub.platform.files import write_atomic

log = logging.getLogger("tabhub.store")

T = TypeVar("T")
_LARGEST = 64 * 1024 * 1024


class JsonFile(Generic[T]):
    """One file, for this user only."""

    def __init__(self, path: Path | None, contents: type[T]) -> None:
        """Without a path nothing is stored."""
        self.path = path
        self.error: str | None = None
        """Why the file could not be read or written, while that is so."""
        self._contents = contents
        self._saved: T | None = None

    def load(self) -> T | None:
        """The contents; None if there is no file, or none that can be read."""
        if self.path is None:
            return None
        try:
            if self.path.stat().st_size > _LARGEST:
                raise ValueError(f"larger than {_LARGEST} bytes")
            return msgspec.json.decode(self.path.read_bytes(), type=self._contents)
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:  # msgspec's errors and invalid UTF-8 are ValueErrors
            aside = self.path.with_name(f"{self.path.name}.broken")
            self.error = f"{self.path} cannot be read and was set aside as {aside.name}: {error}"
            log.error("%s", self.error)
            with contextlib.suppress(OSError):
                self.path.replace(aside)
            return None

    def write(self, value: T) -> None:
        """Replace the file; raises SetupError if that fails."""
        if self.path is None:
            return
        try:
            write_atomic(self.path, msgspec.json.encode(value))
        except SetupError as error:
            if self.error != error.message:
                log.error("%s", error.text())
            self.error = error.message
            raise
        self._saved, self.error = value, None

    def save(self, value: T) -> bool:
        """Replace the file if the value changed; returns whether the file has it."""
        if value == self._saved:
            self.error = None
            return True
        with contextlib.suppress(SetupError):
            self.write(value)
        return self.error is None
