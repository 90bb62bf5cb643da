"""JSON with comments and trailing commas, edited in place: one member is set or removed, the rest stays unchanged.

Comments and trailing commas are blanked in a copy, so that the standard parser can read it and positions are those of
the text. It knows nothing of files or clients.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from tabhub.errors import JsoncError

_STRING = r'"(?:[^"\\]|\\.)*"'
_COMMENT = re.compile(rf"{_STRING}|//[^\n]*|/\*.*?\*/", re.DOTALL)
_TRAILING_COMMA = re.compile(rf"({_STRING}|[\w\]}}])(\s*),(?=\s*[\]}}])|{_STRING}", re.DOTALL)
_DECODER = json.JSONDecoder()


def parse(text: str) -> Any:
    """The value of a text; JsoncError if it is not JSON with comments."""
    try:
        return json.loads(_without_trailing_commas(_without_comments(text)), parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise JsoncError(text, error.pos, error.msg) from None
    except (ValueError, RecursionError) as error:
        raise JsoncError(text, 0, str(error)) from None


def set_member(text: str, path: Sequence[str], value: Any) -> str:
    """The text with the member at the path set to the value; missing objects on the way are created."""
    parse(text)
    uncommented = _without_comments(text)
    plain = _without_trailing_commas(uncommented)
    start, end = _skip(plain, 0), len(plain.rstrip())
    for depth, key in enumerate(path):
        if plain[start] != "{":
            raise JsoncError(text, start, f"{'.'.join(path[:depth]) or 'the text'} is not an object")
        members = _members(plain, start)
        found = [(member.begin, member.end) for member in members if member.key == key]
        if len(found) > 1:
            raise JsoncError(text, found[1][0], f'"{key}" is written twice')
        if found:
            start, end = found[0]
            continue
        for missing in reversed(path[depth + 1 :]):
            value = {missing: value}
        # At the end of the object, below the comments that are there.
        last = members[-1].end if members else start + 1
        comma = "," if members and "," not in uncommented[last : end - 1] else ""
        content = len(text[: end - 1].rstrip())
        newline, indent = _layout(text)
        member = f"{json.dumps(key, ensure_ascii=False)}: {_written(text, value, depth + 1)}"
        addition = f"{newline}{indent * (depth + 1)}{member}{newline}{indent * depth}"
        return text[:last] + comma + text[last:content] + addition + text[end - 1 :]
    return text[:start] + _written(text, value, len(path)) + text[end:]


def remove_member(text: str, path: Sequence[str]) -> str:
    """The text without the member at the path, which must be there; comments stay."""
    parse(text)
    uncommented = _without_comments(text)
    plain = _without_trailing_commas(uncommented)
    start = _skip(plain, 0)
    for step in path[:-1]:
        start = next(member.begin for member in _members(plain, start) if member.key == step)
    members = _members(plain, start)
    at = next(number for number, member in enumerate(members) if member.key == path[-1])
    follows = _skip(uncommented, members[at].end)
    if uncommented[follows] == ",":
        return _cut(_cut(text, follows, follows + 1), members[at].start, members[at].end)
    text = _cut(text, members[at].start, members[at].end)
    if at == 0:
        return text
    comma = uncommented.index(",", members[at - 1].end)
    return text[:comma] + text[comma + 1 :]


def _cut(text: str, start: int, end: int) -> str:
    """The text without a part, and without the line if nothing else is on it."""
    line, rest = text.rfind("\n", 0, start) + 1, text.find("\n", end)
    if rest >= 0 and line > 0 and not text[line:start].strip() and not text[end:rest].strip():
        return text[:line] + text[rest + 1 :]
    return text[:start] + text[end:]


class _Member(NamedTuple):
    """Where a member of an object is: from its key to the end of its value, which begins at `begin`."""

    key: str
    start: int
    begin: int
    end: int


def _members(plain: str, start: int) -> list[_Member]:
    """The members of the object at a position."""
    members: list[_Member] = []
    at = _skip(plain, start + 1)
    while plain[at] != "}":
        key, colon = _DECODER.raw_decode(plain, at)
        begin = _skip(plain, _skip(plain, colon) + 1)
        _, end = _DECODER.raw_decode(plain, begin)
        members.append(_Member(key, at, begin, end))
        at = _skip(plain, end)
        if plain[at] == ",":
            at = _skip(plain, at + 1)
    return members


def _without_comments(text: str) -> str:
    return _COMMENT.sub(lambda found: found[0] if found[0][0] == '"' else re.sub(r"[^\n]", " ", found[0]), text)


def _without_trailing_commas(text: str) -> str:
    return _TRAILING_COMMA.sub(lambda found: f"{found[1]}{found[2]} " if found[1] else found[0], text)


def _skip(plain: str, at: int) -> int:
    """The next position that is not blank."""
    return len(plain) - len(plain[at:].lstrip())


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _written(text: str, value: Any, depth: int) -> str:
    newline, indent = _layout(text)
    lines = json.dumps(value, indent=indent, ensure_ascii=False).split("\n")
    return (newline + indent * depth).join(lines)


def _layout(text: str) -> tuple[str, str]:
    """The line break and the indentation that the text uses."""
    indented = re.search(r"\n([ \t]+)\S", text)
    return "\r\n" if "\r\n" in text else "\n", indented[1] if indented else "  "
