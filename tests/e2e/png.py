"""Reads the PNG pictures a browser makes: 8 bits a channel, RGB or RGBA, not interlaced."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

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
    """Decode a whole picture; every chunk's checksum must fit."""
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
        rows.append(_unfilter(raw[start], bytearray(raw[start + 1 : start + line]), above, channels))
    return Picture(width, height, rows, channels)


def _unfilter(kind: int, row: bytearray, above: bytes, step: int) -> bytes:
    if kind == 2:
        return bytes((here + up) & 255 for here, up in zip(row, above, strict=True))
    if kind == 0:
        return bytes(row)
    for at in range(len(row)):
        left = row[at - step] if at >= step else 0
        corner = above[at - step] if at >= step else 0
        row[at] = (row[at] + (left, 0, (left + above[at]) // 2, _paeth(left, above[at], corner))[kind - 1]) & 255
    return bytes(row)


def _paeth(left: int, up: int, corner: int) -> int:
    guess = left + up - corner
    return min((left, up, corner), key=lambda value: abs(guess - value))
