"""How many tokens a text costs: counted as o200k_base counts them, without its vocabulary.

Owns the split of a text into pieces, the table of what is a token, and the count. A piece that is a token counts as
one. Any other is split into the longest tokens from its start on, which gives nearly as many as merging byte pairs does
(tests/core/results/test_tokens.py has the differences). Decision 0033 says why this is no dependency.

The table `tokens.crc32` has the CRC-32 of every token in ascending order, written by `scripts/token_table`. It is read
when something is counted for the first time.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from functools import cache
from importlib.resources import files
from typing import Final
from zlib import crc32

_UPPER = (
    "A-ZÀ-ÖØ-ÞĀĂĄĆĈĊČĎĐĒĔĖĘĚĜĞĠĢĤĦĨĪĬĮİĴĶĹĻĽĿŁŃŅŇŌŎŐŒŔŖŘŚŜŞŠŢŤŦŨŪŬŮŰŲŴŶŸŹŻŽ"
    "\u0386-\u038f\u0391-\u03ab\u0400-\u042f\u0531-\u0556\uff21-\uff3a"
)
_LOWER = (
    "a-zªµºß-öø-ÿāăąćĉċčďđēĕėęěĝğġģĥħĩīĭįıĵķĸĺļľŀłńņňŉŋōŏőœŕŗřśŝşšţťŧũūŭůűųŵŷźżžſ"
    "\u0180-\u02c1\u0300-\u036f\u0390\u03ac-\u03ff\u0430-\u0481\u0483-\u0530\u0559-\u0588"
    "\u0591-\u05bd\u05bf\u05c1-\u05c7\u05d0-\u05f2\u0610-\u061a\u0620-\u065f\u066e-\u06d3\u06d5-\u06dc\u06e1-\u06ef"
    "\u06fa-\u07bf\u07ca-\u0963\u0971-\u09e5\u09f0-\u0a65\u0a70-\u0ae5\u0b01-\u0b65\u0b71-\u0be5\u0c00-\u0c65"
    "\u0c80-\u0ce5\u0d00-\u0d65\u0d80-\u0de5\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u0edc-\u0f17\u0f35-\u0f39"
    "\u0f3e-\u103f\u1050-\u108f\u10a0-\u167f\u1681-\u17d3\u1820-\u1aad\u1b00-\u1b4b\u1b80-\u1baf\u1c00-\u1c37"
    "\u1c4d-\u1c7d\u1c80-\u1fff\u2071\u207f\u2090-\u209c\u20d0-\u20f0\u2102-\u2115\u2c00-\u2cf1\u2d00-\u2dff"
    "\u3005\u3006\u302a-\u3035\u3041-\u309f\u30a1-\u30fa\u30fc-\u318e\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\ua48c\ua4d0-\uabe9\uac00-\ud7ff\uf900-\ufdfb\ufe00-\ufe0f\ufe20-\ufe2f\ufe70-\ufefc\uff41-\uff5a"
    "\uff66-\uffdc\U00010000-\U000102ff\U00020000-\U0003ffff"
)
"""Letters that are not upper case, and marks on letters; whole blocks where a script has no cases."""
_NUMBER = (
    "0-9²³¹¼-¾\u0660-\u0669\u06f0-\u06f9\u0966-\u096f\u0e50-\u0e59\u2070\u2074-\u2079\u2080-\u2089\u2150-\u2189"
    "\u2460-\u249b\u3007\u3021-\u3029\uff10-\uff19"
)


def _pieces(upper: str, lower: str, number: str) -> re.Pattern[str]:
    """A word with what stands before it, up to three digits, punctuation with what ends its line, or blanks."""
    letter = f"{upper}{lower}"
    suffix = "(?:'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL]))?"
    return re.compile(
        rf"[^\r\n{letter}{number}]?(?:[{upper}]*[{lower}]+|[{upper}]+){suffix}"
        rf"|[{number}]{{1,3}}"
        rf"| ?[^\s{letter}{number}]+[\r\n/]*"
        r"|\s*[\r\n]+|\s+(?!\S)|\s+"
    )


_ASCII: Final = _pieces("A-Z", "a-z", "0-9")
_ANY: Final = _pieces(_UPPER, _LOWER, _NUMBER)
_LONGEST_ASCII = 16
"""Longest token that is looked for inside a piece, in characters; longer ones are whole pieces."""
_LONGEST = 10
_EXAMINED = 64
"""Characters of a piece that are split; the rest of a longer one counts in proportion."""
_CACHED = 20_000
_SLICE = 1_024
_SLICES = 64


@cache
def _table() -> array[int]:
    table: array[int] = array("I", files("tabhub.core.results").joinpath("tokens.crc32").read_bytes())
    if array("H", (1,)).tobytes() == b"\0\1":  # the machine is big-endian, the file is not
        table.byteswap()
    return table


def _is_token(data: bytes) -> bool:
    table, wanted = _table(), crc32(data)
    at = bisect_left(table, wanted)
    return at < len(table) and table[at] == wanted


def _split(piece: str) -> int:
    """The number of tokens of a piece that is none itself."""
    longest = _LONGEST_ASCII if piece.isascii() else _LONGEST
    size = min(len(piece), _EXAMINED)
    at = tokens = 0
    while at < size:
        for end in range(min(len(piece), at + longest), at, -1):
            data = piece[at:end].encode("utf-8", "surrogatepass")
            if len(data) == 1 or _is_token(data):
                at, tokens = end, tokens + 1
                break
        else:
            at, tokens = at + 1, tokens + len(data) // 2 + len(data) % 2
    return tokens * len(piece) // at


class _PieceCounts(dict[str, int]):
    """The tokens of each piece met lately."""

    def __missing__(self, piece: str) -> int:
        found = 1 if _is_token(piece.encode("utf-8", "surrogatepass")) else _split(piece)
        if len(self) >= _CACHED:
            self.clear()
        if len(piece) <= _EXAMINED:
            self[piece] = found
        return found


_tokens_of: Final = _PieceCounts().__getitem__


def count_tokens(text: str) -> int:
    """The tokens of a text, all of it examined."""
    return sum(map(_tokens_of, (_ASCII if text.isascii() else _ANY).findall(text)))


def estimate_tokens(data: bytes | str) -> int:
    """The tokens a model needs for it; long data is sampled."""
    text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
    size = len(text)
    if size <= _SLICE * _SLICES:
        return count_tokens(text)
    step = (size - _SLICE) / (_SLICES - 1)
    sample = sum(count_tokens(text[at : at + _SLICE]) for at in (int(step * i) for i in range(_SLICES)))
    return sample * size // (_SLICE * _SLICES) + 1
