"""The lines of a snapshot: combined from frames.

Owns the shape of the lines (one space per level, `[ref=…]` after interactive elements). Pure: it knows no page.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

_REF = re.compile(r'[^"\[]*+(?:"(?:[^"\\]|\\.)*+"?+)?+[^\[]*+\[ref=([a-z0-9]+)', re.DOTALL)
"""A ref is in the first bracket after the quoted name, where text of the page cannot forge it."""


def indent_of(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def ref_of(line: str) -> str | None:
    found = _REF.match(line)
    return found[1] if found else None


def insert_frames(lines: Sequence[str], inserts: Mapping[int, Sequence[str]]) -> list[str]:
    out: list[str] = []
    for number, line in enumerate(lines):
        out.append(line)
        if number in inserts:
            deeper = " " * (indent_of(line) + 1)
            out.extend(deeper + inner for inner in inserts[number])
    return out


def parents_of(lines: Sequence[str]) -> list[int]:
    """The line each line is inside of; -1 at the top."""
    parents: list[int] = []
    open_lines: list[tuple[int, int]] = []
    for number, line in enumerate(lines):
        depth = indent_of(line)
        while open_lines and open_lines[-1][0] >= depth:
            open_lines.pop()
        parents.append(open_lines[-1][1] if open_lines else -1)
        open_lines.append((depth, number))
    return parents
