"""Strict JSON: bytes to values, refusing what parsers disagree about.

Owns the one way JSON from outside becomes a value. orjson does the parsing (it already refuses NaN, invalid UTF-8,
lone surrogates, BOM and UTF-16); this module adds the bounds: nesting, number of keys, length of numbers, and no
duplicate keys. The bounds are checked on the bytes, so hostile input costs a scan and never a deep object.

How duplicates are found without a parser of our own: a value that is written anew as the very same text has lost
nothing. Otherwise colons are counted: every key is followed by one colon outside strings, and if the parsed value has
fewer keys than the text has such colons, a key was written twice.
"""

from __future__ import annotations

import re
from typing import Any

import orjson

from tabhub.errors import ParseError
from tabhub.limits import DEFAULTS, Limits

# The closing quote may be missing: a string without an end is taken out in one go instead of being tried anew from
# each quote in it, which would take quadratic time. The parser refuses it afterwards. Neighbours go in one match.
_STRINGS = re.compile(rb'(?:"(?:[^"\\]+|\\.)*+"?[,\s]*+)++', re.DOTALL)
_ALIKE = bytes.maketrans(b"{}", b"[]")
_MANY = 10_000
DIGITS_WRITTEN = 32
"""More than any number has when it is written anew."""
_REST = bytes(set(range(256)) - set(b"[]{}"))


def decode(data: bytes | bytearray | memoryview | str, limits: Limits = DEFAULTS) -> Any:
    """Parse one JSON text, or raise ParseError saying what is wrong with it."""
    if type(data) is bytes:
        raw = data
    else:
        raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else bytes(data)
    # Most texts are too short for very many keys, and as programs write them: the same text when written anew, which
    # has no long number either. Nothing else needs to be counted in them.
    if (
        len(raw) <= limits.max_keys
        and limits.max_digits > DIGITS_WRITTEN
        and raw.count(b"{") + raw.count(b"[") <= limits.max_depth
    ):
        value = _parsed(raw)
        if orjson.dumps(value) == raw:
            return value
    return _decode_in_full(raw, limits)


def _decode_in_full(raw: bytes, limits: Limits) -> Any:
    nests = raw.count(b"{") + raw.count(b"[")
    colons = raw.count(b":")
    skeleton: bytes | None = None
    suspect = (
        nests > limits.max_depth
        or colons > limits.max_keys
        or (len(raw) >= limits.max_digits and _long_number(raw, limits))
    )
    # What could become very many objects is looked at before it is parsed; else the parser is the quicker judge.
    if suspect and nests + colons > _MANY:
        skeleton = _checked_skeleton(raw, limits)
    value = _parsed(raw)
    if suspect and skeleton is None:
        skeleton = _checked_skeleton(raw, limits)
    # Quick and certain: written anew, the value has every colon of the text again, unless a key was dropped. Only an
    # escape could hide a colon, so texts with escapes are counted in full.
    if not colons or (b"\\u" not in raw and orjson.dumps(value).count(b":") == colons):
        return value
    keys = _count_keys(value)
    if keys != colons and keys != (skeleton if skeleton is not None else _STRINGS.sub(b"", raw)).count(b":"):
        raise ParseError("Not accepted: an object has the same key twice.")
    return value


def _parsed(raw: bytes) -> Any:
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise ParseError(f"Not valid JSON: {error.msg} at character {error.pos}.") from None


def _long_number(raw: bytes, limits: Limits) -> bool:
    if len(raw) - len(raw.translate(None, b"0123456789")) < limits.max_digits:
        return False  # far quicker than looking for the digits one by one
    return re.search(rb"[0-9]{%d}" % limits.max_digits, raw) is not None


def _checked_skeleton(raw: bytes, limits: Limits) -> bytes:
    """The text with its strings taken out, if that is within the bounds."""
    skeleton = _STRINGS.sub(b"", raw)
    if skeleton.count(b":") > limits.max_keys:
        raise ParseError(f"Not accepted: more than {limits.max_keys} keys.")
    if _deeper(skeleton.translate(_ALIKE, _REST), limits.max_depth):
        raise ParseError(f"Not accepted: nested deeper than {limits.max_depth}.")
    if _long_number(skeleton, limits):  # last, for it takes the longest
        raise ParseError(f"Not accepted: a number has {limits.max_digits} digits or more.")
    return skeleton


def _deeper(brackets: bytes, depth: int) -> bool:
    """Whether brackets nest deeper than this: taking the innermost pairs out so many times leaves some over.

    Brackets without a partner are left to the parser.
    """
    if b"[" * (depth + 1) in brackets:
        return True
    for _ in range(depth):
        if not brackets:
            return False
        brackets = brackets.replace(b"[]", b"")
    return b"[]" in brackets


def _count_keys(value: Any) -> int:
    """Keys in the whole of a value whose depth is already bounded."""
    kind = type(value)
    if kind is dict:
        total = len(value)
        for item in value.values():
            if type(item) in (dict, list):
                total += _count_keys(item)
        return total
    total = 0
    if kind is list:
        for item in value:
            if type(item) in (dict, list):
                total += _count_keys(item)
    return total


def encode(value: Any) -> bytes:
    """Write a value of ours as JSON."""
    return orjson.dumps(value)
