"""Strict JSON: bytes to values, refusing what parsers disagree about.

Owns the only way JSON from outside becomes a value. orjson does the parsing (it already refuses NaN, invalid UTF-8,
lone surrogates, BOM and UTF-16); this module adds the bounds: nesting, number of keys, length of numbers, and no
duplicate keys. A text that may exceed a bound is scanned before it is parsed, so hostile input costs a scan up to the
place where it exceeds the bound, and no value is built from it.

Duplicate keys are found without a parser of our own, in a value that is within the bounds: if it encodes to the same
text, nothing was lost. Otherwise colons are counted: every key is followed by one colon outside strings, and if the
encoded value has fewer of them than the text, a key was written twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import orjson

from tabhub.errors import ParseError
from tabhub.limits import DEFAULTS, Limits

WINDOW = 64 * 1024
"""Bytes scanned at a time."""
DIGITS_WRITTEN = 32
"""More digits than any number has after encoding."""
_BRACKETS_ALIKE = bytes.maketrans(b"{}", b"[]")
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_DIGITS_ALIKE = bytes.maketrans(b"123456789", b"000000000")
_SAMPLES = 16


class Parsed(msgspec.Struct, gc=False, frozen=True):
    """The value orjson made of a text, and the text orjson makes of that value."""

    value: Any
    encoded: bytes


def decode(data: bytes | str, limits: Limits = DEFAULTS, *, parsed: Parsed | None = None) -> Any:
    """Parse one JSON text, or raise ParseError saying what is wrong with it.

    A text that was `parsed` before is only checked.
    """
    raw = data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass")
    scan: Scan | None = None
    size = len(raw)
    # Nearly all texts are within the bounds, as counting bytes without regard to strings shows.
    if (
        raw.count(b"{") + raw.count(b"[") > limits.max_depth
        or (size > limits.max_keys and raw.count(b":") > limits.max_keys)
        or (size >= limits.max_digits and _has_long_number(raw, limits.max_digits))
    ):
        scan = Scan(raw, limits)
        scan.run()
    try:
        value = orjson.loads(raw) if parsed is None else parsed.value
    except orjson.JSONDecodeError as error:
        raise ParseError(f"Not valid JSON: {error.msg} at character {error.pos}.") from None
    if b":" not in raw:
        return value
    encoded = orjson.dumps(value) if parsed is None else parsed.encoded
    if encoded == raw:  # as most programs write it
        return value
    # Encoding repeats every colon of the text unless a key was dropped. Only an escape can hide a colon in a string, so
    # the strings of texts with escapes are left out.
    if b"\\u" not in raw and encoded.count(b":") == raw.count(b":"):
        return value
    if _count_keys(encoded) != (scan.keys if scan is not None else _count_keys(raw)):
        raise ParseError("Not accepted: an object has the same key twice.")
    return value


def _has_long_number(raw: bytes, digits: int) -> bool:
    """Whether so many digits follow each other. In linear time, and mostly from a sample of the bytes."""
    step = max(digits // _SAMPLES, 1)
    if b"0" * (digits // step) not in raw[::step].translate(_DIGITS_ALIKE):
        return False
    return b"0" * digits in raw.translate(_DIGITS_ALIKE)


class Scan:
    """Checks one text against the bounds, window by window, and stops at the first window that exceeds one.

    Builds no value. Says nothing about whether the text is JSON: that is left to the parser.
    """

    __slots__ = ("_digits", "_limits", "_open", "_raw", "_window", "examined", "keys")

    def __init__(self, raw: bytes, limits: Limits, window: int = WINDOW) -> None:
        self._raw = raw
        self._limits = limits
        self._window = window
        self._open = 0
        self._digits = b""
        self.examined = 0
        """Bytes scanned so far."""
        self.keys = 0
        """Keys in them."""

    def run(self) -> None:
        """Scan to the end, or raise ParseError."""
        for bare in _without_strings(self._raw, self._window):
            self.examined = min(self.examined + self._window, len(self._raw))
            self._check_keys(bare)
            self._check_depth(bare)
            self._check_numbers(bare)
            if self._open < 0:
                return  # More is closed than was opened: the parser stops there too.

    def _check_keys(self, bare: bytes) -> None:
        self.keys += bare.count(b":")
        if self.keys > self._limits.max_keys:
            raise ParseError(f"Not accepted: more than {self._limits.max_keys} keys.")

    def _check_depth(self, bare: bytes) -> None:
        brackets = bare.translate(_BRACKETS_ALIKE, _NOT_BRACKETS)
        before = self._open
        self._open += 2 * brackets.count(b"[") - len(brackets)
        if _nested_deeper(b"[" * before + brackets + b"]" * self._open, self._limits.max_depth):
            raise ParseError(f"Not accepted: nested deeper than {self._limits.max_depth}.")

    def _check_numbers(self, bare: bytes) -> None:
        digits = self._limits.max_digits
        joined = self._digits + bare
        if _has_long_number(joined, digits):
            raise ParseError(f"Not accepted: a number has {digits} digits or more.")
        self._digits = joined[-digits:]  # A number may continue in the next window.


def _nested_deeper(brackets: bytes, depth: int) -> bool:
    """Whether balanced brackets nest deeper than this: removing the innermost pairs that many times leaves some."""
    if b"[" * (depth + 1) in brackets:
        return True
    for _ in range(depth):
        if not brackets:
            return False
        brackets = brackets.replace(b"[]", b"")
    return b"[]" in brackets


def _without_strings(raw: bytes, window: int = WINDOW) -> Iterator[bytes]:
    """The text, window by window, without what is inside strings. No regular expression, so it takes linear time."""
    inside = False
    escape = b""
    for begin in range(0, len(raw), window):
        piece = raw[begin : begin + window]
        if escape or b"\\" in piece:
            piece = (escape + piece).replace(b"\\\\", b"")
            escape = b"\\" if piece.endswith(b"\\") else b""
            piece = piece.replace(b'\\"', b"")
        parts = piece.split(b'"')
        yield b'"'.join(parts[inside::2])
        inside ^= len(parts) % 2 == 0


def _count_keys(raw: bytes) -> int:
    """Keys in a valid JSON text: each is followed by a colon outside strings."""
    return sum(bare.count(b":") for bare in _without_strings(raw))
