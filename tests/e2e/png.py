"""Reads the PNG pictures a browser writes: 8 bits per channel, RGB or RGBA, not interlaced."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from functools import lru_cache

_CHANNELS = {2: 3, 6: 4}


@dataclass(frozen=True, slots=True)
class Picture:
    """A decoded picture."""

    width: int
    height: int
    rows: list[bytes]
    channels: int

    def at(self, x: int, y: int) -> tuple[int, int, int]:
        """The colour of one pixel."""
        start = x * self.channels
        red, green, blue = self.rows[y][start : start + 3]
        return red, green, blue


def read(data: bytes) -> Picture:
    """Decode a whole picture; the checksums of all chunks must match."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n", data[:8]
    width = height = channels = 0
    packed, place, last = b"", 8, b""
    while place < len(data):
        length, kind = struct.unpack(">I4s", data[place : place + 8])
        body = data[place + 8 : place + 8 + length]
        (check,) = struct.unpack(">I", data[place + 8 + length : place + 12 + length])
        assert zlib.crc32(kind + body) == check, kind
        if kind == b"IHDR":
            width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", body)
            assert (depth, interlaced) == (8, 0)
            channels = _CHANNELS[colour]
        elif kind == b"IDAT":
            packed += body
        place, last = place + 12 + length, kind
    assert last == b"IEND"
    raw, line = zlib.decompress(packed), width * channels + 1
    assert len(raw) == height * line
    rows: list[bytes] = []
    for start in range(0, len(raw), line):
        above = rows[-1] if rows else bytes(line - 1)
        rows.append(_unfilter(raw[start], raw[start + 1 : start + line], above, channels))
    return Picture(width, height, rows, channels)


def _unfilter(kind: int, row: bytes, above: bytes, step: int) -> bytes:
    if kind == 0:
        return row
    if kind == 2:
        return _sums(row, above)
    return _along(kind, row, above, step)


def _sums(one: bytes, other: bytes) -> bytes:
    """Bytewise sums without carry: a whole row as two numbers, because most rows are of this kind."""
    size = len(one)
    low = int.from_bytes(b"\x7f" * size)
    a, b = int.from_bytes(one), int.from_bytes(other)
    return (((a & low) + (b & low)) ^ ((a ^ b) & ~low & ((1 << 8 * size) - 1))).to_bytes(size)


@lru_cache(maxsize=512)  # pages of plain colours have many equal rows
def _along(kind: int, row: bytes, above: bytes, step: int) -> bytes:
    """The filters in which a pixel depends on the previous one."""
    done = bytearray(step) + row
    upper = bytes(step) + above
    for at in range(step, len(done)):
        left, up, corner = done[at - step], upper[at], upper[at - step]
        if kind == 1:
            guess = left
        elif kind == 3:
            guess = (left + up) // 2
        else:
            by_left, by_up, by_corner = abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)
            guess = left if by_left <= by_up and by_left <= by_corner else up if by_up <= by_corner else corner
        done[at] = (done[at] + guess) & 255
    return bytes(done[step:])
