"""JSON with comments as text that is edited in place: one member set, everything else left as it is.

Owns a small parser that remembers where each object and member stands. It knows nothing of files or clients.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tabhub.errors import JsoncError

_BLANK = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_SCALAR = re.compile(r"-?[0-9][0-9.eE+-]*|true|false|null")
_DEEPEST = 200


@dataclass(frozen=True, slots=True)
class Member:
    """One `"key": value` of an object."""

    key: str
    value: Node


@dataclass(frozen=True, slots=True)
class Node:
    """A value and where it stands in the text; for an object also its members and whether a comma trails."""

    start: int
    end: int
    value: Any
    members: tuple[Member, ...] = ()
    comma: bool = False


def parse(text: str) -> Node:
    """Read a whole text; JsoncError when it is not JSON with comments."""
    start = _skip(text, 0)
    if start == len(text):
        raise JsoncError(text, start, "nothing there")
    node = _value(text, start, 0)
    end = _skip(text, node.end)
    if end != len(text):
        raise JsoncError(text, end, "more text after the end")
    return node


def set_member(text: str, path: Sequence[str], value: Any) -> str:
    """The text with the member at the path set to the value; objects on the way are made where they are missing."""
    node = parse(text)
    for depth, key in enumerate(path):
        if not isinstance(node.value, dict):
            raise JsoncError(text, node.start, f"{'.'.join(path[:depth]) or 'the whole'} is not an object")
        found = [member for member in node.members if member.key == key]
        if len(found) > 1:
            raise JsoncError(text, found[1].value.start, f'"{key}" is written twice')
        if not found:
            for missing in reversed(path[depth + 1 :]):
                value = {missing: value}
            return _insert(text, node, key, value, depth)
        node = found[0].value
    written = _written(text, value, len(path))
    return text[: node.start] + written + text[node.end :]


def _insert(text: str, node: Node, key: str, value: Any, depth: int) -> str:
    """Add a member at the end of an object, below whatever comments stand there."""
    newline, indent = _newline(text), _indent(text)
    member = f"{json.dumps(key, ensure_ascii=False)}: {_written(text, value, depth + 1)}"
    close = node.end - 1
    tail = len(text[node.start + 1 : close].rstrip()) + node.start + 1  # where the last value or comment ends
    addition = f"{newline}{indent * (depth + 1)}{member}{newline}{indent * depth}"
    if not node.members:
        return text[:tail] + addition + text[close:]
    after = node.members[-1].value.end
    comma = "" if node.comma else ","
    return text[:after] + comma + text[after:tail] + addition + text[close:]


def _written(text: str, value: Any, depth: int) -> str:
    newline, indent = _newline(text), _indent(text)
    lines = json.dumps(value, indent=indent, ensure_ascii=False).split("\n")
    return (newline + indent * depth).join(lines)


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _indent(text: str) -> str:
    found = re.search(r"\n([ \t]+)\S", text)
    return found[1] if found else "  "


def _skip(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at


def _value(text: str, at: int, depth: int) -> Node:
    if depth > _DEEPEST:
        raise JsoncError(text, at, "nested too deep")
    sign = text[at : at + 1]
    if sign == "{":
        return _object(text, at, depth)
    if sign == "[":
        return _array(text, at, depth)
    found = (_STRING if sign == '"' else _SCALAR).match(text, at)
    if found is None:
        raise JsoncError(text, at, "a value is missing" if sign in ("", "}", "]", ",") else "invalid value")
    try:
        return Node(at, found.end(), json.loads(found[0]))
    except ValueError:
        raise JsoncError(text, at, "invalid value") from None


def _object(text: str, start: int, depth: int) -> Node:
    members: list[Member] = []
    at, comma = _skip(text, start + 1), False
    while text[at : at + 1] != "}":
        if members and not comma:
            raise JsoncError(text, at, "a comma or } is missing")
        key = _STRING.match(text, at)
        if key is None:
            raise JsoncError(text, at, "a key in double quotes is missing")
        at = _skip(text, key.end())
        if text[at : at + 1] != ":":
            raise JsoncError(text, at, "a colon is missing")
        value = _value(text, _skip(text, at + 1), depth + 1)
        try:
            members.append(Member(json.loads(key[0]), value))
        except ValueError:
            raise JsoncError(text, key.start(), "invalid key") from None
        at, comma = _comma(text, value.end)
    return Node(start, at + 1, {m.key: m.value.value for m in members}, tuple(members), comma)


def _array(text: str, start: int, depth: int) -> Node:
    items: list[Any] = []
    at, comma = _skip(text, start + 1), False
    while text[at : at + 1] != "]":
        if items and not comma:
            raise JsoncError(text, at, "a comma or ] is missing")
        item = _value(text, at, depth + 1)
        items.append(item.value)
        at, comma = _comma(text, item.end)
    return Node(start, at + 1, items)


def _comma(text: str, at: int) -> tuple[int, bool]:
    at = _skip(text, at)
    if text[at : at + 1] == ",":
        return _skip(text, at + 1), True
    return at, False
