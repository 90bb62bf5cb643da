"""A snapshot cut to a token budget: which lines are shown, and the others, in order, to be read later.

Elements with a ref and headings are shown first, with the lines they are inside of; then the beginnings of texts; then
the rest of long texts. Of equals, those that come early among their siblings: of a long list the end is left out. Each
gap has a numbered mark, and the text to read on has what is missing there below the same mark, so that together they
have every line once. Pure: it knows no page, and not where the rest is stored.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from tabhub.browser.elements.outline import indent_of, parents_of, ref_of
from tabhub.core.results.tokens import count_tokens

_HEADING = re.compile(r"[ +~>]*heading ")
_BEGINNING = 120
"""Characters of a long text that are shown before the rest of other texts."""
_WORTH_SPLITTING = 60
"""Characters that the rest of a text must have, because the mark has its cost, too."""
_SHORT = 40
"""A text of so few characters is a part of the element beside it."""
_GAP_TOKENS = 10
_SPLIT_TOKENS = 4
_IMPORTANT, _TEXTS, _REST = range(3)


@dataclass(frozen=True, slots=True)
class Cut:
    """The lines to show, and the rest."""

    shown: list[str]
    rest: list[str] = field(default_factory=list)
    omitted: int = 0
    """Lines that are not shown."""
    omitted_elements: int = 0
    """Lines with a ref among them."""


def cut_lines(lines: Sequence[str], max_tokens: int) -> Cut:
    """Choose the lines that fit the budget; all of them if they do."""
    if sum(map(len, lines)) + len(lines) <= max_tokens and all(map(str.isascii, lines)):
        return Cut(list(lines))  # a token has at least one byte
    costs = [count_tokens(f"{line}\n") for line in lines]
    if sum(costs) <= max_tokens:
        return Cut(list(lines))
    choice = _Choice(lines, costs, max_tokens)
    choice.make()
    return choice.result()


class _Choice:
    """The lines chosen so far and what they cost."""

    def __init__(self, lines: Sequence[str], costs: list[int], max_tokens: int) -> None:
        self.lines = lines
        self.parents = parents_of(lines)
        self.kept = bytearray(len(lines) + 1)  # the one after the last is never kept
        self.left = max_tokens - _GAP_TOKENS
        self.costs = costs
        self.refs = [ref_of(line) is not None for line in lines]
        self.splits: dict[int, int] = {}
        """Where long texts are split, until their rest is chosen as well."""
        self.rests: dict[int, int] = {}
        for number, line in enumerate(lines):
            if not self.refs[number] and not _HEADING.match(line) and (at := _split_at(line)):
                rest = count_tokens(line[at:])
                self.splits[number], self.rests[number] = at, rest
                self.costs[number] += _SPLIT_TOKENS - rest

    def make(self) -> None:
        """Choose lines by importance until one does not fit."""
        ranks = self._ranks()
        important = [found or bool(_HEADING.match(line)) for found, line in zip(self.refs, self.lines, strict=True)]
        if self._cost_of(important) > self.left:
            # Not even these fit: what is shown of a list has its short texts, or it would only be buttons.
            for number, line in enumerate(self.lines):
                important[number] = important[number] or len(line) - indent_of(line) <= _SHORT
        order = [(_IMPORTANT if important[number] else _TEXTS, rank, number) for number, rank in enumerate(ranks)]
        order += [(_REST, ranks[number], number) for number in self.splits]
        for kind, _, number in sorted(order):
            if not (self._add_rest(number) if kind == _REST else self._add(number)):
                break

    def _ranks(self) -> list[int]:
        """The place of each line among its siblings, or of a line around it if that is further behind."""
        ranks: list[int] = []
        children = [0] * (len(self.lines) + 1)
        for parent in self.parents:
            place = children[parent]
            children[parent] += 1
            ranks.append(max(place, ranks[parent]) if parent >= 0 else place)
        return ranks

    def _cost_of(self, wanted: list[bool]) -> int:
        """The tokens of these lines with those they are inside of; without marks."""
        needed = list(wanted)
        for number in range(len(needed) - 1, -1, -1):
            if needed[number] and self.parents[number] >= 0:
                needed[self.parents[number]] = True
        return sum(cost for cost, is_needed in zip(self.costs, needed, strict=True) if is_needed)

    def _add(self, number: int) -> bool:
        """Choose a line, and those it is inside of; False if they do not fit."""
        path: list[int] = []
        while number >= 0 and not self.kept[number]:
            path.append(number)
            number = self.parents[number]
        cost = 0
        for each in path:
            cost += self.costs[each] + self._gap_change(each)
            self.kept[each] = 1
        if cost > self.left:
            for each in path:
                self.kept[each] = 0
            return False
        self.left -= cost
        return True

    def _gap_change(self, number: int) -> int:
        """What the marks cost more if this line is chosen, too: it ends, divides or shortens a gap."""
        before = not self.kept[number - 1] if number else False
        after = not self.kept[number + 1] if number + 1 < len(self.lines) else False
        return _GAP_TOKENS * (before + after - 1)

    def _add_rest(self, number: int) -> bool:
        """Choose the rest of a long text of which the beginning was chosen."""
        if not self.kept[number]:
            return True
        cost = self.rests[number] - _SPLIT_TOKENS
        if cost > self.left:
            return False
        self.left -= cost
        del self.splits[number]
        return True

    def result(self) -> Cut:
        shown: list[str] = []
        rest: list[str] = []
        mark = omitted = elements = number = 0
        while number < len(self.lines):
            line = self.lines[number]
            if not self.kept[number]:
                end = number
                while end < len(self.lines) and not self.kept[end]:
                    end += 1
                mark += 1
                indent = min(map(indent_of, self.lines[number:end]))
                count = end - number
                shown.append(f"{' ' * indent_of(line)}… §{mark}: {count} line{'s' if count > 1 else ''}")
                rest += [f"§{mark}", *(each[indent:] for each in self.lines[number:end])]
                omitted += count
                elements += sum(self.refs[number:end])
                number = end
                continue
            if at := self.splits.get(number):
                mark += 1
                shown.append(f"{line[:at]}… §{mark}")
                rest += [f"§{mark}", line[at:].lstrip()]
            else:
                shown.append(line)
            number += 1
        return Cut(shown, rest, omitted, elements)


def _split_at(line: str) -> int:
    """Where a long text is split, at the end of a word; 0 if it is not."""
    if len(line) < _BEGINNING + _WORTH_SPLITTING:
        return 0
    start = indent_of(line) + _BEGINNING
    at = line.rfind(" ", start - 30, start)
    at = at if at > 0 else start
    if len(line) - at < _WORTH_SPLITTING or line[at - 1] == "\\":
        return 0
    return at
