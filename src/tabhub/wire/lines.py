"""Splits bytes into lines in bounded memory. Used at both ends of the bridge socket; imports nothing."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_SHOWN = 400


class LineSplitter:
    """A line longer than `longest` is dropped, and its first bytes are reported."""

    def __init__(self, longest: int, line: Callable[[bytes], None], too_long: Callable[[bytes], None]) -> None:
        self._longest = longest
        self._line = line
        self._too_long = too_long
        self._pending = bytearray()
        self._dropping = False

    def feed(self, data: bytes) -> None:
        *whole, rest = data.split(b"\n")
        for part in whole:
            if self._dropping:
                self._dropping = False
                continue
            line = bytes(self._pending + part) if self._pending else part
            self._pending.clear()
            if len(line) > self._longest:
                self._too_long(line[:_SHOWN])
            else:
                self._line(line)
        if not self._dropping:
            self._pending += rest
            if len(self._pending) > self._longest:
                beginning = bytes(self._pending[:_SHOWN])
                self._pending.clear()
                self._dropping = True
                self._too_long(beginning)

    def end(self) -> None:
        """The last line needs no line break."""
        if self._pending:
            self._line(bytes(self._pending))
