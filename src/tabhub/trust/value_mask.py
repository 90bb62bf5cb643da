"""The secret values used since the hub started, and their masking in whatever goes to agents and logs.

Owns which written forms of a value are recognised: plain, and as JSON, HTML and URLs escape it. Costs nothing until a
secret is used. Pure.
"""

from __future__ import annotations

import html
import json
import re
from collections import deque
from typing import Any
from urllib.parse import quote, quote_plus

_MOST_CODES = 100
_PREFIX = 8
_CUT = "…".encode()
_LONGEST_CUT = 1000


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
        replaced = f"[secret {name}]".encode()
        fresh = {form: replaced for form in _forms(value) if form not in self._names}
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
        self._pattern = re.compile(b"|".join([*map(re.escape, forms), *cut]))

    def _replaced(self, found: re.Match[bytes]) -> bytes:
        text = found[0]
        if text in self._names:
            return self._names[text]
        begun = text.removesuffix(_CUT)
        return next((name + _CUT for form, name in self._names.items() if form.startswith(begun)), text)


def _forms(value: str) -> set[bytes]:
    """The value as it may be written: a result is JSON, often inside a JSON string, and pages write HTML and URLs."""
    plain = {value, " ".join(value.split()), quote(value, safe=""), quote(value), quote_plus(value)}
    plain |= {html.escape(value), html.escape(value, quote=False)}
    once = {written for text in plain for written in (_json(text), _json(text, ascii_only=True))}
    twice = {_json(text) for text in once}
    return {text.encode("utf-8", "surrogatepass") for text in plain | once | twice if text}


def _json(text: str, *, ascii_only: bool = False) -> str:
    return json.dumps(text, ensure_ascii=ascii_only)[1:-1]
