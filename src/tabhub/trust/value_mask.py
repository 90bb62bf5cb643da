"""The masking of secret values in whatever goes to agents and logs: named secrets that were used, and what the secret
fields of a tab hold.

Owns which written forms of a value are recognised: plain, and as JSON, HTML and URLs escape it. Costs nothing until a
secret is used. Pure.
"""

from __future__ import annotations

import html
import json
import re
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import quote, quote_plus

import orjson

from tabhub.errors import TabhubError

FIELD_MASK = "•••"
"""What is shown instead of the value of a secret field, as in `browser/js/kit/secret_fields.js`."""
_MOST_CODES = 100
_PREFIX = 8
_CUT = "…".encode()
_LONGEST_CUT = 1000
_SHORTEST_ANYWHERE = 6
"""Values of fewer characters are masked only where they are a whole text or number: they may occur anywhere."""
_SHORTEST = 3
_MOST_FIELDS = 200
_LONGEST_FIELD = 4000
_ENCODED = ("data", "base64", "blob")
"""Members of a result whose text is encoded: a value cannot be found there, only something that looks like it."""
_GROUPED = re.compile(r"[0-9][0-9 -]{10,22}[0-9]")


class ValueMask:
    """Replaces every occurrence of the values by the names of their secrets."""

    def __init__(self) -> None:
        self._names: dict[bytes, bytes] = {}
        """By written form of a value: what replaces it."""
        self._codes: deque[str] = deque()
        self._pattern: re.Pattern[bytes] | None = None
        self.in_use = False
        """Whether there are any values."""

    def add(self, name: str, value: str) -> None:
        """Mask a value until the hub ends."""
        self.hide((value,), f"[secret {name}]")

    def hide(self, values: Iterable[str], instead: str) -> None:
        replaced = instead.encode()
        forms = (form for value in values for form in _forms(value))
        fresh = {form: replaced for form in forms if form not in self._names}
        if fresh:
            self._names |= fresh
            self._compile()

    def add_code(self, name: str, code: str) -> None:
        """Mask a one-time code, until so many others were used that it is long invalid."""
        if code in self._codes:
            return
        self._codes.append(code)
        if len(self._codes) > _MOST_CODES:
            self._names.pop(self._codes.popleft().encode(), None)
        self.add(name, code)

    def data(self, data: bytes) -> bytes:
        return data if self._pattern is None else self._pattern.sub(self._replaced, data)

    def text(self, text: str) -> str:
        if self._pattern is None:
            return text
        return self.data(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")

    def result(self, payload: bytes) -> bytes:
        """An encoded tool result. A number that is masked becomes a text, so that the result stays JSON."""
        if self._pattern is None or self._pattern.search(payload) is None:
            return payload
        return _mask_result(payload, self.text)

    def value(self, value: Any) -> Any:
        """Anything that can be written as JSON."""
        if self._pattern is None:
            return value
        return json.loads(self.text(json.dumps(value, ensure_ascii=False)))

    def _compile(self) -> None:
        forms = sorted(self._names, key=len, reverse=True)
        self.in_use = True
        # A long value that something cut: its beginning, up to the mark of the cut.
        begun = {re.escape(form[:_PREFIX]) for form in forms if len(form) > _PREFIX}
        cut = [rb"(?:%b)[^\s\"]{0,%d}?%b" % (b"|".join(sorted(begun)), _LONGEST_CUT, _CUT)] if begun else []
        self._pattern = re.compile(b"|".join([*map(_exactly, forms), *cut]))

    def _replaced(self, found: re.Match[bytes]) -> bytes:
        text = found[0]
        if text in self._names:
            return self._names[text]
        begun = text.removesuffix(_CUT)
        return next((name + _CUT for form, name in self._names.items() if form.startswith(begun)), text)


class FieldMask:
    """The values that the secret fields of one tab held lately."""

    def __init__(self) -> None:
        self.in_use = False
        """Whether there are any values."""
        self._values: dict[str, None] = {}
        self._mask = ValueMask()
        self._short: frozenset[str] = frozenset()
        self._has_short: re.Pattern[bytes] | None = None
        self._stale = False
        """Whether values were added since the patterns were compiled, which only masking needs."""

    def update(self, values: Iterable[str]) -> None:
        """Add the values of fields as they are now; the oldest ones give way."""
        given = [value for value in values if _SHORTEST <= len(value.strip()) <= _LONGEST_FIELD]
        fresh = any(value not in self._values for value in given)
        for value in given:
            self._values.pop(value, None)
            self._values[value] = None
        while len(self._values) > _MOST_FIELDS:
            del self._values[next(iter(self._values))]
        self._stale = self._stale or fresh
        self.in_use = bool(self._values)

    def result(self, payload: bytes) -> bytes:
        """An encoded tool result."""
        self._compile()
        if self._has_short is not None and self._has_short.search(payload) is not None:
            return _mask_result(payload, self.text)
        return self._mask.result(payload)

    def text(self, text: str) -> str:
        self._compile()
        return FIELD_MASK if text.strip() in self._short else self._mask.text(text)

    def error(self, error: TabhubError) -> None:
        """The texts of an error, among them what a page said in a dialog."""
        error.message = self.text(error.message)
        error.hint = error.hint and self.text(error.hint)
        error.data = _mask_value(error.data, self.text)

    def data(self, data: bytes) -> bytes:
        """What is written to a file."""
        self._compile()
        return self._mask.data(data)

    def _compile(self) -> None:
        if not self._stale:
            return
        self._stale = False
        self._mask = ValueMask()
        anywhere = (value for value in self._values if len(value) >= _SHORTEST_ANYWHERE)
        self._mask.hide((form for value in anywhere for form in _spellings(value)), FIELD_MASK)
        self._short = frozenset(each.strip() for each in self._values if len(each) < _SHORTEST_ANYWHERE)
        short = b"|".join(re.escape(json.dumps(each, ensure_ascii=False)[1:-1].encode()) for each in self._short)
        self._has_short = re.compile(rb"(?<![0-9A-Za-z])(?:%b)(?![0-9A-Za-z])" % short) if short else None


def _spellings(value: str) -> set[str]:
    """A value, and for a long number such as that of a card also without separators, and with the usual ones."""
    if not _GROUPED.fullmatch(value.strip()):
        return {value}
    digits = re.sub(r"[ -]", "", value)
    groups = [digits[at : at + 4] for at in range(0, len(digits), 4)]
    return {value, digits, " ".join(groups), "-".join(groups)}


def _exactly(form: bytes) -> bytes:
    """The pattern of a written form; digits do not match inside a longer number."""
    return rb"(?<![0-9])%b(?![0-9])" % form if form.isdigit() else re.escape(form)


def _mask_result(payload: bytes, mask: Callable[[str], str]) -> bytes:
    """A tool result with all its texts and numbers masked; a text that is JSON stays JSON."""
    body = orjson.loads(payload)
    masked = _mask_value(body, mask)
    for block, given in zip(masked.get("content") or (), body.get("content") or (), strict=True):
        if isinstance(given, dict) and (value := _json_value(given.get("text"))) is not None:
            block["text"] = orjson.dumps(_mask_value(value, mask)).decode()
    return orjson.dumps(masked)


def _json_value(text: Any) -> Any:
    """The object in a text that is JSON as we write it."""
    if not isinstance(text, str) or text[:1] != "{":
        return None
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return value if orjson.dumps(value).decode() == text else None


def _mask_value(value: Any, mask: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, dict):
        return {
            mask(key): inner if key in _ENCODED and isinstance(inner, str) else _mask_value(inner, mask)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [_mask_value(inner, mask) for inner in value]
    if type(value) in (int, float):
        written = orjson.dumps(value).decode()
        return value if (shown := mask(written)) == written else shown
    return value


def _forms(value: str) -> set[bytes]:
    """The value as it may be written: a result is JSON, often inside a JSON string, and pages write HTML and URLs."""
    plain = {value, " ".join(value.split()), quote(value, safe=""), quote(value), quote_plus(value)}
    plain |= {html.escape(value), html.escape(value, quote=False)}
    once = {written for text in plain for written in (_json(text), _json(text, ascii_only=True))}
    twice = {_json(text) for text in once}
    return {text.encode("utf-8", "surrogatepass") for text in plain | once | twice if text}


def _json(text: str, *, ascii_only: bool = False) -> str:
    return json.dumps(text, ensure_ascii=ascii_only)[1:-1]
