"""What a managed browser writes to its standard error, kept in a file of bounded size.

Owns that file and its predecessor. A log that cannot be written never stops the browser: its text is dropped, because a
browser whose standard error is not read would block.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from contextlib import suppress
from pathlib import Path

# These only say, many times per start, that there is no desktop session.
_NOISE = (b"dbus/", b"DBus")
_TAIL = 20
_CHUNK = 65536


class BrowserLog:
    """The log file, at most `size` bytes, and its predecessor `<name>.1`."""

    def __init__(self, path: Path, size: int) -> None:
        self.path = path
        self._size = size
        self._tail: deque[str] = deque(maxlen=_TAIL)

    def tail(self) -> str:
        """The last lines since the browser was started."""
        return "\n".join(self._tail)

    async def copy(self, stream: asyncio.StreamReader) -> None:
        """Write everything until the end of the stream."""
        self._tail.clear()
        rest = b""
        while chunk := await stream.read(_CHUNK):
            *lines, rest = (rest + chunk).split(b"\n")
            if len(rest) > _CHUNK:
                lines, rest = [*lines, rest], b""
            self._write(lines)
        self._write([rest])

    def _write(self, lines: list[bytes]) -> None:
        kept = [line for line in lines if line.strip() and not any(noise in line for noise in _NOISE)]
        if not kept:
            return
        self._tail.extend(line.decode(errors="replace") for line in kept)
        text = b"\n".join(kept) + b"\n"
        with suppress(OSError):
            if self.path.exists() and self.path.stat().st_size + len(text) > self._size:
                self.path.replace(self.path.with_name(f"{self.path.name}.1"))
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            with os.fdopen(handle, "ab") as file:
                file.write(text[-self._size :])
