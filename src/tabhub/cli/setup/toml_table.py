"""TOML text edited in place: one table is set or removed, everything else stays unchanged.

Owns finding a table's lines and writing its values. It knows nothing of files or clients.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from typing import Any

from tabhub.errors import TomlError

_HEADER = re.compile(r"^\s*\[\[?\s*(?P<name>[^\]]+?)\s*\]\]?\s*(?:#.*)?$")
_BARE = re.compile(r"[A-Za-z0-9_-]+")


def read(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TomlError(str(error)) from None


def set_table(text: str, section: str, name: str, values: Mapping[str, Any]) -> str:
    """The text with the table [section.name] set to these values; TomlError rather than any other change."""
    before = read(text)
    tables = before.get(section, {})
    if not isinstance(tables, dict):
        raise TomlError(f"{section} is not a table")
    newline = "\r\n" if "\r\n" in text else "\n"
    body = newline.join(f"{_key(key)} = {_value(value)}" for key, value in values.items()) + newline
    if name not in tables:
        gap = "" if not text.strip() else newline if text.endswith("\n") else newline * 2
        changed = f"{text}{gap}[{section}.{name}]{newline}{body}"
    else:
        changed = _replaced(text, f"{section}.{name}", body, newline)
    return _safe(changed, {**before, section: {**tables, name: dict(values)}}, f"{section}.{name}")


def remove_table(text: str, section: str, name: str) -> str:
    """The text without the table [section.name], which must be there; TomlError rather than any other change."""
    before = read(text)
    others = {key: value for key, value in before[section].items() if key != name}
    after = {key: value for key, value in before.items() if key != section} | ({section: others} if others else {})
    return _safe(_replaced(text, f"{section}.{name}", None, ""), after, f"{section}.{name}")


def _safe(changed: str, expected: dict[str, Any], table: str) -> str:
    """The changed text, if it says what was expected."""
    unsafe = TomlError(f"[{table}] is written in a way that cannot be changed safely")
    try:
        after = read(changed)
    except TomlError:
        raise unsafe from None
    if after != expected:
        raise unsafe
    return changed


def _replaced(text: str, table: str, body: str | None, newline: str) -> str:
    """Replace the lines of a table and of the tables within it, or remove them without a body; comments stay."""
    kept: list[str] = []
    inside, written = False, False
    for row in text.splitlines(keepends=True):
        header = _HEADER.match(row)
        if header is not None:
            name = ".".join(part.strip().strip("\"'") for part in header["name"].split("."))
            inside = name == table or name.startswith(f"{table}.")
            if inside and not written and body is not None:
                kept += [row if row.endswith("\n") else row + newline, body]
                written = True
            if inside:
                continue
        if not inside or not row.strip() or row.lstrip().startswith("#"):
            kept.append(row)
    return "".join(kept)


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _value(key)


def _value(value: Any) -> str:
    """A value as TOML: strings, numbers, booleans and arrays of them are written as in JSON."""
    if isinstance(value, dict):
        inner = ", ".join(f"{_key(key)} = {_value(item)}" for key, item in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    try:
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
    except TypeError:
        raise TomlError(f"a value of type {type(value).__name__} cannot be kept") from None
