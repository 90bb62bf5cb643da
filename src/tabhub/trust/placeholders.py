"""`{{secret:NAME}}` and `{{totp:NAME}}`: where they stand in arguments.

Owns their form. What they stand for, and where they may be used, is decided elsewhere. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

Kind = Literal["secret", "totp"]
Path = tuple[str | int, ...]

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_BEGINNINGS = ("{{secret:", "{{totp:")
_PLACEHOLDER = re.compile(r"\{\{(secret|totp):([^{}]{0,200})\}\}")


def has_placeholder(text: str) -> bool:
    return "{{" in text and any(beginning in text for beginning in _BEGINNINGS)


def placeholders(text: str) -> Iterator[tuple[Kind, str]]:
    for found in _PLACEHOLDER.finditer(text):
        yield "totp" if found[1] == "totp" else "secret", found[2]


def fill(text: str, value: Callable[[Kind, str], str]) -> str:
    return _PLACEHOLDER.sub(lambda found: value("totp" if found[1] == "totp" else "secret", found[2]), text)


def places(value: Any, path: Path = ()) -> Iterator[Path]:
    """The paths of all strings with a placeholder; a name with one is at the path of its object."""
    if isinstance(value, str):
        if has_placeholder(value):
            yield path
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            if isinstance(key, str) and has_placeholder(key):
                yield path
            yield from places(inner, (*path, key))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from places(inner, (*path, number))
