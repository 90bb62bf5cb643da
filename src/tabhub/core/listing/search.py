"""Finding a tool: ranked search over the catalogue, and the nearest names to a wrong one.

Owns the index, its weights and its ranking; the terms are search_terms'. Knows nothing of who asks or of pages.

A tool's terms are weighted by field: name, source, title, description, parameters. A query word matches its
stem, prefixes, synonyms, and similar spellings when nothing else matches. The weights of one tool do not
depend on the others, so an index is extended from its predecessor, and the same tools always rank the same.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from operator import add
from typing import Any, Final

from tabhub.core.listing.search_terms import ARTICLES, PHRASES, STOP, SYNONYMS, stems_of
from tabhub.core.tools import Tool

# field: weight, usual number of words, how much a longer one weighs less
_FIELDS: Final = {
    "name": (7.0, 4, 0.5),
    "source": (2.0, 2, 0.3),
    "title": (3.0, 4, 0.5),
    "description": (1.4, 20, 0.6),
    "parameters": (0.7, 20, 0.6),
}
_SATURATION = 3.0
_MAX_TEXT = 2_000
_MAX_PARAMETERS = 60
_MAX_QUERY = 300
_MAX_GROUPS = 16
_MAX_PREFIXED = 12
_KEPT = 0.2


@dataclass(frozen=True, slots=True)
class _Entry:
    """What the index keeps of one tool."""

    tool: Tool
    terms: Mapping[str, float]
    tail: str
    """The name's stems, joined, to see whether a query is its end."""
    compact: str


def _parameters(schema: Mapping[str, Any], depth: int = 0) -> Iterator[str]:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return
    for name, spec in list(properties.items())[:_MAX_PARAMETERS]:
        yield str(name)
        if not isinstance(spec, Mapping):
            continue
        yield str(spec.get("description", ""))
        choices = spec.get("enum")
        if isinstance(choices, list):
            yield " ".join(choice for choice in choices[:12] if isinstance(choice, str))
        if depth == 0:
            items = spec.get("items")
            yield from _parameters(items if isinstance(items, Mapping) else spec, 1)


def _entry(tool: Tool) -> _Entry:
    name, compact = stems_of(tool.name), _compact(tool.name)
    fields = {
        "name": [*name, *map(add, name, name[1:]), *([compact] if len(name) > 2 else [])],
        "source": stems_of(tool.source.key),
        "title": stems_of((tool.title or "")[:_MAX_TEXT]),
        "description": stems_of(tool.description[:_MAX_TEXT]),
        "parameters": stems_of(" ".join(_parameters(tool.input_schema))[: 2 * _MAX_TEXT]),
    }
    sums: dict[str, float] = {}
    for field, stems in fields.items():
        weight, usual, damp = _FIELDS[field]
        share = weight / (1 - damp + damp * max(len(name) if field == "name" else len(stems), 1) / usual)
        for stem, count in Counter(stems).items():
            sums[stem] = sums.get(stem, 0.0) + share * count
    terms = {stem: total / (_SATURATION + total) for stem, total in sums.items()}
    return _Entry(tool, terms, " ".join(name), compact)


class ToolIndex:
    """Tools, ready to be searched; built once for a catalogue and never changed."""

    def __init__(
        self, entries: dict[int, _Entry], postings: dict[str, list[tuple[int, float]]], df: Counter[str], following: int
    ) -> None:
        self._entries = entries
        self._postings = postings
        self._df = df
        self._slots = {id(entry.tool): slot for slot, entry in entries.items()}
        self._next = following  # a slot is never given twice: the postings may still speak of who had it
        self._vocabulary: list[str] | None = None

    @classmethod
    def build(cls, tools: Iterable[Tool], previous: ToolIndex | None = None) -> ToolIndex:
        """Index the tools; entries of the same Tool objects are reused from `previous`."""
        wanted = {id(tool): tool for tool in tools}
        known = previous._slots if previous else {}
        old = previous._entries if previous else {}
        fresh = [_entry(tool) for key, tool in wanted.items() if key not in known]
        kept = {slot: old[slot] for key, slot in known.items() if key in wanted}
        # Entries that left stay in the postings until they are too many; a search passes them by.
        if previous is None or previous._next + len(fresh) > 1.5 * len(wanted) + 64:
            fresh = [*kept.values(), *fresh]
            kept, postings, df, start = {}, {}, Counter[str](), 0
        else:
            postings, df, start = dict(previous._postings), previous._df.copy(), previous._next
            for slot, entry in old.items():
                if slot not in kept:
                    df.subtract(entry.terms.keys())
        added: dict[str, list[tuple[int, float]]] = {}
        for slot, entry in enumerate(fresh, start):
            kept[slot] = entry
            df.update(entry.terms.keys())
            for term, weight in entry.terms.items():
                added.setdefault(term, []).append((slot, weight))
        for term, places in added.items():
            postings[term] = postings[term] + places if term in postings else places
        return cls(kept, postings, df, start + len(fresh))

    def __len__(self) -> int:
        return len(self._entries)

    def search(self, query: str, *, plugin: str | None = None) -> list[Tool]:
        """The matching tools, best first; all of them by name when there is no query."""
        query = query[:_MAX_QUERY]
        words = [word for word in stems_of(query) if word not in ARTICLES]
        if not words:
            tools = [
                entry.tool for entry in self._entries.values() if not query.strip() and _belongs(entry.tool, plugin)
            ]
            return sorted(tools, key=lambda tool: tool.name)
        groups = self._groups(words)
        totals: dict[int, float] = {}
        matched: dict[int, int] = {}
        size = len(self._entries)
        for group in groups:
            best: dict[int, float] = {}
            for term in sorted(group, key=lambda term: (-self._df[term], term)):
                df = self._df[term]
                factor = group[term] * math.log(1 + (size - df + 0.5) / (df + 0.5))
                if not best:
                    best = {slot: share * factor for slot, share in self._postings[term]}
                    continue
                for slot, share in self._postings[term]:
                    score = share * factor
                    if score > best.get(slot, 0.0):
                        best[slot] = score
            for slot, score in best.items():
                totals[slot] = totals.get(slot, 0.0) + score
                matched[slot] = matched.get(slot, 0) + 1
        if not totals:
            return []
        coverage = [0.3 + 0.7 * count / len(groups) for count in range(len(groups) + 1)]
        entries = self._entries
        if plugin is not None:
            entries = {
                slot: entries[slot] for slot in totals if slot in entries and _belongs(entries[slot].tool, plugin)
            }
        scores = {slot: total * coverage[matched[slot]] for slot, total in totals.items() if slot in entries}
        floor = max(scores.values(), default=0.0) * _KEPT
        exact, tail = _compact(query), " ".join(words)
        ranked: list[tuple[bool, float, str, Tool]] = []
        for slot, score in scores.items():
            if score >= floor:
                entry = entries[slot]
                bonus = 1.5 if entry.tail.endswith(tail) else 1.0
                ranked.append((entry.compact != exact, -score * bonus, entry.tool.name, entry.tool))
        return [row[3] for row in sorted(ranked, key=lambda row: row[:3])]

    def _groups(self, words: list[str]) -> list[dict[str, float]]:
        """For each significant word, the terms that match it, and their weights."""
        meant: dict[int, set[str]] = {}
        for saying, meaning in PHRASES:
            for at in range(len(words) - len(saying) + 1):
                if tuple(words[at : at + len(saying)]) == saying:
                    aligned = len(saying) == len(meaning)
                    for step in range(len(saying)):
                        meant.setdefault(at + step, set()).update(meaning[step : step + 1] if aligned else meaning)
        counting = [at for at, word in enumerate(words) if at in meant or word not in STOP] or list(range(len(words)))
        # In a large catalogue a term of every second tool is useless and the most expensive.
        ceiling = len(self._entries) / (2 if len(self._entries) > 1_000 else 1)
        groups: list[dict[str, float]] = []
        common: list[dict[str, float]] = []
        for at in counting[:_MAX_GROUPS]:
            word = words[at]
            group: dict[str, float] = {} if word in STOP and at in meant else {word: 1.0}
            for other in SYNONYMS.get(word, ()):
                group.setdefault(other, 0.45)
            for other in meant.get(at, ()):
                group[other] = max(group.get(other, 0.0), 0.9)
            for joined in (word + words[at + 1] if at + 1 < len(words) else "", words[at - 1] + word if at else ""):
                if joined:
                    group.setdefault(joined, 0.9)
            for longer in self._beginning_with(word):
                group.setdefault(longer, 0.3 + 0.5 * len(word) / len(longer))
            group = {term: weight for term, weight in group.items() if self._df[term] > 0}
            telling = {term: weight for term, weight in group.items() if self._df[term] <= ceiling}
            if group and not telling:
                common.append(group)
            else:
                groups.append(telling or dict.fromkeys(self._spelled_like(word), 0.6))
        return groups if any(groups) else common

    def _terms(self) -> list[str]:
        if self._vocabulary is None:
            self._vocabulary = sorted(term for term, count in self._df.items() if count > 0)
        return self._vocabulary

    def _beginning_with(self, word: str) -> Iterator[str]:
        if len(word) < 3:
            return
        terms = self._terms()
        at = bisect_left(terms, word)
        for term in terms[at : at + _MAX_PREFIXED]:
            if not term.startswith(word):
                return
            yield term

    def _spelled_like(self, word: str) -> list[str]:
        """The terms one typo away, or two for a long word."""
        if len(word) < 4:
            return []
        slips = 1 if len(word) < 7 else 2
        first, inner, letters = word[0], word[1:3], _letters(word)
        near = [
            term
            for term in self._terms()
            if (term[0] == first or term[1:3] == inner)
            and abs(len(term) - len(word)) <= slips
            and (_letters(term) ^ letters).bit_count() <= 2 * slips
        ]
        return [term for term in near if _distance(word, term, slips) <= slips]


def _belongs(tool: Tool, plugin: str | None) -> bool:
    if plugin is None:
        return True
    wanted = plugin.strip().lower()
    return wanted in (tool.source.key.lower(), tool.source.kind, str(tool.source).lower())


@lru_cache(maxsize=100_000)
def _letters(word: str) -> int:
    mask = 0
    for letter in word:
        mask |= 1 << (ord(letter) & 63)
    return mask


def _distance(one: str, other: str, most: int) -> int:
    """Edit distance, a transposition being one edit; any number above `most` if it is greater."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        last, row, before_last = row, [i], before
        for j, against in enumerate(other, 1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (letter != against))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == against:
                cost = min(cost, before_last[j - 2] + 1)
            row.append(cost)
        before = last
        if min(row) > most:
            return most + 1
    return row[-1]


def _compact(name: str) -> str:
    return "".join(filter(str.isalnum, name)).lower()


def nearest(name: str, names: Iterable[str], limit: int = 3) -> list[str]:
    """The names most similar to a wrong one: misspelled, with other separators, shortened, or with an extra prefix."""
    wrong = _compact(name[:200])
    if len(wrong) < 2:
        return []
    pairs = set(map(add, wrong, wrong[1:]))
    rough: list[tuple[float, str, str]] = []
    for candidate in names:
        small = candidate.replace("_", "").lower()
        theirs = set(map(add, small, small[1:]))
        shared = len(pairs & theirs)
        # The smaller of the two counts too, so that a part of a name finds the whole.
        score = shared / (len(pairs) + len(theirs) or 1) + shared / (min(len(pairs), len(theirs)) or 1) / 2
        if score > 0.35:
            rough.append((-score, candidate, small))
    rough.sort()
    wrong_words = set(stems_of(name[:200]))
    meant = wrong_words.union(*(meaning for saying, meaning in PHRASES if set(saying) <= wrong_words))
    close: list[tuple[float, str]] = []
    for _, candidate, small in rough[:40]:
        ratio = SequenceMatcher(None, wrong, _compact(small), autojunk=False).ratio()
        words = set(stems_of(candidate))
        overlap = len(words & meant) / (min(len(words), len(wrong_words)) or 1)
        score = ratio + 0.5 * min(overlap, 1.0) + (0.3 if small.endswith(wrong) or wrong.endswith(small) else 0.0)
        if score >= 0.75:
            close.append((-score, candidate))
    return [candidate for _, candidate in sorted(close)[:limit]]
