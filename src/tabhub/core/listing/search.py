"""Finding a tool: ranked search over the catalogue, and the nearest names to a wrong one.

Owns the index, its weights and its ranking; the terms are search_terms'. Knows nothing of agents or of pages.

A tool's terms are weighted by field: name, source, title, description, parameters. A query word matches its
stem, prefixes, synonyms, and similar spellings when nothing else matches. The weights of one tool do not
depend on the others, so a change costs only the tools that changed, and the same tools always rank the same.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher, get_close_matches
from itertools import islice, takewhile
from operator import add
from typing import Any, Final
from weakref import ref

from tabhub.core.listing.search_terms import ARTICLES, PHRASES, STOP, SYNONYMS, stems_of
from tabhub.core.tools import Tool

# field: weight, usual number of words, how much a longer field reduces the weight
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
_MAX_COMPARED = 2_000
_SIMILAR = 0.8
_MIN_SCORE = 0.2


@dataclass(frozen=True, slots=True)
class _Entry:
    """What the index stores of one tool."""

    weights: Mapping[str, float]
    """By term."""
    name_terms: str
    """The terms of its name, joined, to see whether a query is its end."""
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
    weights = {stem: total / (_SATURATION + total) for stem, total in sums.items()}
    return _Entry(weights, " ".join(name), compact)


class ToolIndex:
    """Tools, ready to be searched. A change is indexed in steps, because thousands of tools take a while.

    It refers to tools weakly: until the next change it must not keep those of closed pages.
    """

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._entries: dict[ref[Tool], _Entry] = {}
        self._matches: dict[str, dict[ref[Tool], float]] = {}
        """By term, the tools that have it and its weight there."""
        self._vocabulary: list[str] = []
        """The terms, sorted."""
        self._outdated: list[ref[Tool]] = []
        self._missing: list[ref[Tool]] = []
        self.change(tools)
        self.advance(len(self._missing))

    def change(self, tools: Iterable[Tool]) -> None:
        """Set which tools the index is to contain; `advance` then does the work."""
        wanted = dict.fromkeys(map(ref, tools))
        self._outdated = [key for key in self._entries if key not in wanted]
        self._missing = [key for key in wanted if key not in self._entries]

    @property
    def complete(self) -> bool:
        """Whether it contains the tools of the last change; only then may it be searched."""
        return not (self._outdated or self._missing)

    def advance(self, most: int) -> None:
        """Remove or add up to this many tools."""
        for _ in range(min(most, len(self._outdated) + len(self._missing))):
            if self._outdated:
                self._remove(self._outdated.pop())
            else:
                self._add(self._missing.pop())

    def _add(self, key: ref[Tool]) -> None:
        tool = key()
        if tool is None:
            return
        self._entries[key] = entry = _entry(tool)
        for term, weight in entry.weights.items():
            matches = self._matches.setdefault(term, {})
            if not matches:
                insort(self._vocabulary, term)
            matches[key] = weight

    def _remove(self, key: ref[Tool]) -> None:
        for term in self._entries.pop(key).weights:
            matches = self._matches[term]
            del matches[key]
            if not matches:
                del self._matches[term]
                del self._vocabulary[bisect_left(self._vocabulary, term)]

    def search(self, query: str, *, plugin: str | None = None, used: Container[str] = ()) -> list[Tool]:
        """The matching tools, best first; all of them by name when there is no query."""
        query = query[:_MAX_QUERY]
        words = [word for word in stems_of(query) if word not in ARTICLES]
        if not words:
            return (
                [] if query.strip() else sorted(self._tools(self._entries, plugin).values(), key=lambda tool: tool.name)
            )
        groups = self._groups(words)
        totals: dict[ref[Tool], float] = {}
        matched: Counter[ref[Tool]] = Counter()
        for group in groups:
            best = self._best_matches(group)
            matched.update(best.keys())
            for key, score in best.items():
                totals[key] = totals.get(key, 0.0) + score
        tools = self._tools(totals, plugin)
        scores = {key: totals[key] * (0.3 + 0.7 * matched[key] / len(groups)) for key in tools}
        floor = max(scores.values(), default=0.0) * _MIN_SCORE
        exact, tail = _compact(query), " ".join(words)

        def rank(key: ref[Tool]) -> tuple[bool, float, str]:
            entry = self._entries[key]
            bonus = 1.5 if entry.name_terms.endswith(tail) else 1.0
            return entry.compact != exact, -scores[key] * bonus, tools[key].name

        return [tools[key] for key in sorted((key for key, score in scores.items() if score >= floor), key=rank)]

    @staticmethod
    def _tools(keys: Iterable[ref[Tool]], plugin: str | None) -> dict[ref[Tool], Tool]:
        """The tools of a plugin, or of all."""
        return {key: tool for key in keys if (tool := key()) is not None and _belongs(tool, plugin)}

    def _best_matches(self, group: Mapping[str, float]) -> dict[ref[Tool], float]:
        """The tools that have one of the terms, each with the score of its best one; rare terms score higher."""
        best: dict[ref[Tool], float] = {}
        for term, factor in group.items():
            matches = self._matches[term]
            rarity = math.log(1 + (len(self._entries) - len(matches) + 0.5) / (len(matches) + 0.5))
            for key, weight in matches.items():
                score = weight * factor * rarity
                if score > best.get(key, 0.0):
                    best[key] = score
        return best

    def _groups(self, words: list[str]) -> list[dict[str, float]]:
        """For each significant word, the terms that match it, and their weights."""
        meant: dict[int, set[str]] = {}
        for phrase, meaning in PHRASES:
            for at in range(len(words) - len(phrase) + 1):
                if tuple(words[at : at + len(phrase)]) == phrase:
                    aligned = len(phrase) == len(meaning)
                    for step in range(len(phrase)):
                        meant.setdefault(at + step, set()).update(meaning[step : step + 1] if aligned else meaning)
        positions = [at for at, word in enumerate(words) if at in meant or word not in STOP]
        # In a large catalogue, terms that half of the tools have are useless and the most expensive.
        ceiling = len(self._entries) / (2 if len(self._entries) > 1_000 else 1)
        groups: list[dict[str, float]] = []
        common: list[dict[str, float]] = []
        for at in (positions or range(len(words)))[:_MAX_GROUPS]:
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
            group = {term: weight for term, weight in group.items() if term in self._matches}
            significant = {term: weight for term, weight in group.items() if len(self._matches[term]) <= ceiling}
            if group and not significant:
                common.append(group)
            else:
                groups.append(significant or dict.fromkeys(self._spelled_like(word), 0.6))
        return groups if any(groups) else common

    def _beginning_with(self, word: str) -> Iterator[str]:
        if len(word) < 3:
            return
        at = bisect_left(self._vocabulary, word)
        yield from takewhile(lambda term: term.startswith(word), self._vocabulary[at : at + _MAX_PREFIXED])

    def _spelled_like(self, word: str) -> list[str]:
        if len(word) < 4:
            return []
        similar = (
            term
            for term in self._vocabulary
            if (term[0] == word[0] or term[1:3] == word[1:3]) and abs(len(term) - len(word)) <= 2
        )
        return get_close_matches(word, islice(similar, _MAX_COMPARED), n=5, cutoff=_SIMILAR)


def _belongs(tool: Tool, plugin: str | None) -> bool:
    if plugin is None:
        return True
    wanted = plugin.strip().lower()
    return wanted in (tool.source.key.lower(), tool.source.kind, str(tool.source).lower())


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
        compact = candidate.replace("_", "").lower()
        candidate_pairs = set(map(add, compact, compact[1:]))
        shared = len(pairs & candidate_pairs)
        # Compared with the shorter name as well, so that a part of a name finds the whole.
        shorter = min(len(pairs), len(candidate_pairs))
        score = shared / (len(pairs) + len(candidate_pairs) or 1) + shared / (shorter or 1) / 2
        if score > 0.35:
            rough.append((-score, candidate, compact))
    rough.sort()
    wrong_words = set(stems_of(name[:200]))
    meant = wrong_words.union(*(meaning for phrase, meaning in PHRASES if set(phrase) <= wrong_words))
    close: list[tuple[float, str]] = []
    for _, candidate, compact in rough[:40]:
        ratio = SequenceMatcher(None, wrong, _compact(compact), autojunk=False).ratio()
        words = set(stems_of(candidate))
        overlap = len(words & meant) / (min(len(words), len(wrong_words)) or 1)
        score = ratio + 0.5 * min(overlap, 1.0) + (0.3 if compact.endswith(wrong) or wrong.endswith(compact) else 0.0)
        if score >= 0.75:
            close.append((-score, candidate))
    return [candidate for _, candidate in sorted(close)[:limit]]
