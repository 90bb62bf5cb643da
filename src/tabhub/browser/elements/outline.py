"""The lines of a snapshot: combined from frames, and cut to a token budget.

Owns the shape of the lines (one space per level, `[ref=…]` after interactive elements). Pure: it knows no page.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from tabhub.core.results.tokens import estimate_tokens

_REF = re.compile(r'[^"\[]*+(?:"(?:[^"\\]|\\.)*+"?+)?+[^\[]*+\[ref=([a-z0-9]+)', re.DOTALL)
"""A ref is in the first bracket after the quoted name, where text of the page cannot forge it."""
_WIDTHS = (4000, 2000, 1000, 500, 250, 120, 60, 30, 15, 8, 4)
_NOTE_TOKENS = 60


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


def fit_budget(lines: list[str], max_tokens: int) -> tuple[list[str], int]:
    """Cut long lists and tables first, each with a note on the rest, then the end; also returns how much is omitted."""
    text = "\n".join(lines)
    if text.isascii() and len(text) <= max_tokens:  # a token is a byte at least
        return lines, 0
    total = estimate_tokens(text)
    if total <= max_tokens:
        return lines, 0
    per_char = total / max(1, len(text))
    room = int((max_tokens - _NOTE_TOKENS) / per_char)
    kept = list(range(len(lines)))
    notes: dict[int, str] = {}
    parents = parents_of(lines)

    def tokens_of(number: int) -> int:
        """Tokens of a line with its children if that exceeds the budget, otherwise 0."""
        needed = round(_length_of(lines, number) * per_char * 1.1) + _NOTE_TOKENS
        return needed if needed > max_tokens else 0

    for width in _WIDTHS:
        kept, notes = _narrowed(lines, parents, width, tokens_of)
        if sum(len(lines[n]) + 1 for n in kept) + sum(map(len, notes.values())) <= room:
            break
    out: list[str] = []
    used = shown = 0
    for number in kept:
        added = [lines[number], *([notes[number]] if number in notes else [])]
        used += sum(len(line) + 1 for line in added)
        if used > room and out:
            break
        out.extend(added)
        shown += 1
    return out, len(lines) - shown


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


def _length_of(lines: list[str], number: int) -> int:
    """The characters of a line and of all lines inside it."""
    depth, length = indent_of(lines[number]), len(lines[number]) + 1
    for line in lines[number + 1 :]:
        if indent_of(line) <= depth:
            break
        length += len(line) + 1
    return length


def _narrowed(
    lines: list[str], parents: list[int], width: int, tokens_of: Callable[[int], int]
) -> tuple[list[int], dict[int, str]]:
    """The lines that remain if no line has more than `width` children, and a note after the last child kept."""
    children: Counter[int] = Counter()
    dropped: set[int] = set()
    lost: Counter[int] = Counter()
    last: dict[int, int] = {}
    kept: list[int] = []
    for number, parent in enumerate(parents):
        children[parent] += 1
        if parent in dropped:
            dropped.add(number)
        elif parent >= 0 and children[parent] > width and ref_of(lines[parent]):
            dropped.add(number)
            lost[parent] += 1
        else:
            kept.append(number)
            above = parent
            while above >= 0:
                last[above] = number
                above = parents[above]
    notes: dict[int, str] = {}
    for parent, count in lost.items():
        end = last[parent]
        deeper = " " * (indent_of(lines[parent]) + 1)
        needed = tokens_of(parent)
        larger = f" and maxTokens={needed}" if needed else ""
        note = f"{deeper}… {count} more here: browser_snapshot with ref={ref_of(lines[parent])}{larger}"
        notes[end] = f"{notes[end]}\n{note}" if end in notes else note
    return kept, notes
