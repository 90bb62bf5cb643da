"""What changed between two snapshots of a document: new, changed, moved and removed lines.

Lines with a ref are matched by it. Others are matched within their parent: by themselves with all inside, by their own
text, and last by their role. What is left is matched wherever it is now. Pure: it knows no page.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field

from tabhub.browser.elements.outline import parents_of, ref_of

_MAX_REMOVED = 200
_MAX_NEIGHBOUR = 40
_ROOT = -1


@dataclass(slots=True)
class _Tree:
    """The lines of a snapshot, each with the line it is inside of, and what it has inside."""

    lines: list[str]
    refs: list[str | None]
    parents: list[int]
    children: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    position: list[int] = field(default_factory=list)
    """Of each line among its siblings."""
    whole: list[int] = field(default_factory=list)
    """A hash of each line with everything inside it."""
    partner: dict[int, int] = field(default_factory=dict)
    """The line of the other snapshot that each matched line corresponds to."""

    @classmethod
    def of(cls, lines: Sequence[str]) -> _Tree:
        tree = cls([line.lstrip(" ") for line in lines], [ref_of(line) for line in lines], parents_of(lines))
        for number, parent in enumerate(tree.parents):
            tree.position.append(len(tree.children[parent]))
            tree.children[parent].append(number)
        tree.whole = [0] * len(lines)
        for number in reversed(range(len(lines))):
            inside = tuple(tree.whole[child] for child in tree.children.get(number, ()))
            tree.whole[number] = hash((tree.lines[number], inside))
        tree.partner = {_ROOT: _ROOT}
        return tree

    def role(self, number: int) -> str:
        return self.lines[number].partition(" ")[0] if self.lines[number][:1] != '"' else '"'

    def anchor(self, number: int) -> int:
        """The nearest line around this one that is matched."""
        at = self.parents[number]
        while at not in self.partner:
            at = self.parents[at]
        return at

    def free(self, numbers: Iterable[int]) -> list[int]:
        return [number for number in numbers if number not in self.partner and self.refs[number] is None]


def diff_lines(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """New (+), changed (~) and moved (>) lines below their parents, then removed (-) ones, each for all inside it."""
    if list(before) == list(after):
        return []
    old, new = _Tree.of(before), _Tree.of(after)
    _match(old, new)
    moved = _moved(old, new)
    marks: dict[int, str] = {}
    for number in range(len(after)):
        partner = new.partner.get(number)
        if partner is None:
            marks[number] = "+"
        elif old.lines[partner] != new.lines[number]:
            marks[number] = "~"
        elif number in moved:
            marks[number] = ">"
    out = []
    for number in sorted(_with_parents(marks, new.parents)):
        place = f" (now {_place(new, number)})" if number in moved else ""
        out.append(f"{marks.get(number, ' ')} {after[number]}{place}")
    gone = [number for number in range(len(before)) if number not in old.partner]
    tops = [number for number in gone if old.parents[number] in old.partner]
    inside = _count_inside(old, gone)
    out += [
        f"- {old.lines[number]}" + (f" ({inside[number]} inside)" if inside[number] else "")
        for number in tops[:_MAX_REMOVED]
    ]
    if len(tops) > _MAX_REMOVED:
        out.append(f"- … {len(tops) - _MAX_REMOVED} more")
    return out


def _match(old: _Tree, new: _Tree) -> None:
    by_ref = {ref: number for number, ref in enumerate(old.refs) if ref}
    for number, ref in enumerate(new.refs):
        if ref in by_ref:
            _pair(old, new, by_ref[ref], number)
    for number in (_ROOT, *range(len(new.lines))):  # parents before what is inside them
        partner = new.partner.get(number)
        if partner is None:
            continue
        ours, theirs = new.children.get(number, []), old.children.get(partner, [])
        _match_equal(old, new, old.free(theirs), new.free(ours), lambda tree, each: tree.whole[each])
        _match_equal(old, new, old.free(theirs), new.free(ours), lambda tree, each: tree.lines[each])
        _match_roles(old, new, old.free(theirs), new.free(ours))
    # Moved to another parent, or put into a new one.
    everything = range(len(old.lines)), range(len(new.lines))
    _match_equal(old, new, old.free(everything[0]), new.free(everything[1]), lambda tree, each: tree.whole[each])


def _match_equal(
    old: _Tree, new: _Tree, theirs: list[int], ours: list[int], key: Callable[[_Tree, int], Hashable]
) -> None:
    """Match lines with equal keys in order."""
    waiting: dict[Hashable, list[int]] = defaultdict(list)
    for number in reversed(theirs):
        waiting[key(old, number)].append(number)
    for number in ours:
        if found := waiting.get(key(new, number)):
            _pair(old, new, found.pop(), number)


def _match_roles(old: _Tree, new: _Tree, theirs: list[int], ours: list[int]) -> None:
    """Match what is left in a parent, if there are equally many of a role: their texts have changed."""
    groups: dict[str, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for side, tree, numbers in ((0, old, theirs), (1, new, ours)):
        for number in numbers:
            groups[tree.role(number)][side].append(number)
    for before, after in groups.values():
        if len(before) == len(after):
            for pair in zip(before, after, strict=True):
                _pair(old, new, *pair)


def _pair(old: _Tree, new: _Tree, theirs: int, ours: int) -> None:
    old.partner[theirs], new.partner[ours] = ours, theirs


def _moved(old: _Tree, new: _Tree) -> set[int]:
    """The fewest matched lines that explain another order, and those that are inside something else now."""
    moved: set[int] = set()
    siblings: dict[int, list[int]] = defaultdict(list)
    for number, partner in new.partner.items():
        if number == _ROOT:
            continue
        around = new.anchor(number)
        if new.partner[around] == old.anchor(partner):
            siblings[around].append(number)
        else:
            moved.add(number)
    for numbers in siblings.values():
        numbers.sort()
        kept = _longest_rise([new.partner[number] for number in numbers])
        moved.update(number for at, number in enumerate(numbers) if at not in kept)
    return moved


def _longest_rise(values: list[int]) -> set[int]:
    """The positions of a longest increasing subsequence."""
    ends: list[int] = []
    last: list[int] = []
    before: list[int] = []
    for position, value in enumerate(values):
        at = bisect_left(ends, value)
        before.append(last[at - 1] if at else -1)
        if at == len(ends):
            ends.append(value)
            last.append(position)
        else:
            ends[at], last[at] = value, position
    kept: set[int] = set()
    at = last[-1] if last else -1
    while at >= 0:
        kept.add(at)
        at = before[at]
    return kept


def _place(tree: _Tree, number: int) -> str:
    at = tree.position[number]
    if at == 0:
        return "first"
    neighbour = tree.children[tree.parents[number]][at - 1]
    text = tree.lines[neighbour]
    short = text if len(text) <= _MAX_NEIGHBOUR else f"{text[:_MAX_NEIGHBOUR]}…"
    return f"after {tree.refs[neighbour] or short}"


def _count_inside(tree: _Tree, gone: Sequence[int]) -> dict[int, int]:
    """How many removed lines each removed line has inside."""
    counts = dict.fromkeys(gone, 0)
    for number in reversed(gone):
        parent = tree.parents[number]
        if parent in counts:
            counts[parent] += counts[number] + 1
    return counts


def _with_parents(numbers: Iterable[int], parents: list[int]) -> set[int]:
    wanted: set[int] = set()
    for number in numbers:
        at = number
        while at >= 0 and at not in wanted:
            wanted.add(at)
            at = parents[at]
    return wanted
