"""Messages that pass through a relay as they came, but for their id: read as little as is safe, never written anew.

Owns which messages these are and what they become. Everything else is read in full by relay.py, which also says what is
wrong with it; what is taken here would have been taken there, and become the same message.

A text that is the same when its value is written anew holds no key twice, no number of unusual length and nothing that
parsers disagree about, and its beginning tells where the id ends. Programs write such texts; others go the longer way.
"""

from __future__ import annotations

from typing import Any

import orjson

from tabhub.limits import Limits
from tabhub.wire.relay import CONTROL, LARGE, RELAY_WORDS
from tabhub.wire.strict_json import DIGITS_WRITTEN

_BEGINNING = b'{"jsonrpc":"2.0","id":'
_AT_ID = len(_BEGINNING)
_QUOTES = 2
_OWN = CONTROL | RELAY_WORDS


class Reader:
    """Reads what can pass, within the limits."""

    __slots__ = ("_depth", "_flat", "_longest")

    def __init__(self, limits: Limits) -> None:
        # Within this length there cannot be too many keys; and no number written anew is longer than that.
        self._longest = min(LARGE, limits.max_keys) if limits.max_digits > DIGITS_WRITTEN else 0
        self._depth = limits.max_depth
        # Too short to be nested too deep: each level takes two brackets.
        self._flat = 2 * limits.max_depth

    def _value(self, data: bytes) -> dict[str, Any] | None:
        size = len(data)
        if size > self._longest or not data.startswith(_BEGINNING):
            return None
        if size > self._flat and data.count(b"{") + data.count(b"[") > self._depth:
            return None
        try:
            value: dict[str, Any] = orjson.loads(data)
        except orjson.JSONDecodeError:
            return None
        return value if orjson.dumps(value) == data else None

    def request(self, data: bytes) -> int | None:
        """The id of an agent's request for its browser, if it is one that can pass; never a bool."""
        value = self._value(data)
        if value is None:
            return None
        ident, method = value["id"], value.get("method")
        if type(ident) is not int or type(method) is not str or not method or method in _OWN:
            return None
        keys = len(value)
        if keys == 3 or (keys == 4 and type(value.get("params")) is dict):
            return ident
        return None

    def answer(self, data: bytes) -> str | None:
        """The mapped id of a browser's result, if it is one that can pass."""
        value = self._value(data)
        if value is None or len(value) != 3 or "result" not in value:
            return None
        ident = value["id"]
        return ident if type(ident) is str else None


def mapped_request(mapped: str, own: int, data: bytes) -> bytes:
    """An agent's request under its mapped id, of which the last `own` characters are its own id."""
    return b'{"jsonrpc":"2.0","id":"%b"%b' % (mapped.encode(), data[_AT_ID + own :])


def unmapped_answer(mapped: str, ident: int, data: bytes) -> bytes:
    """A browser's answer under the agent's own id; the mapped one is that of a number, which nothing in it escapes."""
    return b'{"jsonrpc":"2.0","id":%d%b' % (ident, data[_AT_ID + _QUOTES + len(mapped) :])
