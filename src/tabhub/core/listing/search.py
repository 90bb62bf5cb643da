"""Finding a tool: ranked search over the catalogue, and the nearest names to a wrong one.

Owns the index, its weights and its ranking; the terms are search_terms'. Knows nothing of agents or of pages.

A tool's terms are weighted by field (name, source, title, description, parameters) and saturate, as in BM25F; rare
terms count more. A query word matches its stem, prefixes, words of the same meaning, and similar spellings when nothing
else matches. Tools of a source that the query names count more, as do those of the session's tab, and those used
recently. The weights of one tool do not depend on the others, so a change costs only the tools that changed, and the
same tools always rank the same.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from difflib import SequenceMatcher, get_close_matches
from itertools import islice, takewhile
from operator import add
from typing import Any, Final
from weakref import ref

from tabhub.core.listing.search_terms import ARTICLES, PHRASES, STOP, SYNONYMS, stems_of
from tabhub.core.tools import Source, Tool

# field: weight, usual number of words, how much a longer field reduces the weight
_FIELDS: Final = {
    "name": (7.0, 4, 0.5),
    "source": (2.0, 2, 0.3),
    "title": (3.0, 4, 0.5),
    "description": (2.4, 12, 0.6),
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
_SAME_MEANING, _PHRASE, _JOINED, _SPELLED = 0.5, 0.9, 0.9, 0.6
"""What a match counts, to one of the word itself."""
_NAMED, _PARTLY_NAMED = 4.0, 1.6
"""Of a source that the query names."""
_NEAR, _USED, _ENDS = 4.0, 1.15, 1.5
"""Of the session's tab; used recently; whose name ends in the query."""
_COMMON = 0.25
"""Words of the same meaning count if so few tools have them, of those that may have the word itself."""
_STALE = 500
"""Entries of removed tools after which the index is built again, if they are also half of it."""
_WEB = frozenset({"www", "app", "web", "https", "http", "com", "org", "net", "de", "io"})


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


def _entry(tool: Tool) -> dict[str, float]:
    """The weights of a tool's terms."""
    name = stems_of(tool.name)
    fields = {
        "name": [*name, *map(add, name, name[1:]), *([_compact(tool.name)] if len(name) > 2 else [])],
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
    return {stem: total / (_SATURATION + total) for stem, total in sums.items()}


def _source_terms(source: Source) -> tuple[str, ...]:
    """The words by which people name a source: the plugin's or server's name, or a site's without its ending."""
    key = source.key.partition("://")[2].rpartition(".")[0] if source.kind == "page" else source.key
    return tuple(term for term in stems_of(key) if term not in _WEB)


class _Postings:
    """The tools that have a term, by their numbers, and the weight of the term in each; some may be removed."""

    __slots__ = ("count", "term", "tools", "weights")

    def __init__(self, term: str) -> None:
        self.term = term
        self.count = 0
        """How many of the tools are not removed."""
        self.tools = array("I")
        self.weights = array("f")


class ToolIndex:
    """Tools, ready to be searched. A change is indexed in steps, because thousands of tools take a while.

    It refers to tools weakly: until the next change it must not keep those of closed pages. What it stores of them are
    numbers: of 5,000 tools, 2 MB.
    """

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._reset()
        self.change(tools)
        self.advance(len(self._missing))

    def _reset(self) -> None:
        self._numbers: dict[ref[Tool], int] = {}
        self._tools: list[ref[Tool] | None] = []
        """By number; None is a tool that was removed."""
        self._terms: list[tuple[_Postings, ...]] = []
        """What each tool is found by."""
        self._postings: dict[str, _Postings] = {}
        """By term."""
        self._vocabulary: list[str] = []
        """The terms, sorted."""
        self._sources: dict[str, tuple[str, ...]] = {}
        """By label, the words that name a source."""
        self._outdated: list[ref[Tool]] = []
        self._missing: list[ref[Tool]] = []

    def change(self, tools: Iterable[Tool]) -> None:
        """Set which tools the index is to contain; `advance` then does the work."""
        wanted = dict.fromkeys(map(ref, tools))
        outdated = [key for key in self._numbers if key not in wanted]
        stale = len(self._tools) - len(self._numbers) + len(outdated)
        if stale > max(_STALE, len(self._tools) // 2):
            self._reset()
            outdated = []
        self._outdated = outdated
        self._missing = [key for key in wanted if key not in self._numbers]
        there = {tool.source.label: tool.source for key in wanted if (tool := key()) is not None}
        self._sources = {
            label: self._sources.get(label) or _source_terms(source)
            for label, source in there.items()
            if source.kind not in ("browser", "hub")
        }

    @property
    def complete(self) -> bool:
        """Whether it contains the tools of the last change; only then may it be searched."""
        return not (self._outdated or self._missing)

    def advance(self, most: int) -> None:
        """Remove or add up to this many tools."""
        for _ in range(min(most, len(self._outdated) + len(self._missing))):
            if self._outdated:
                self._remove(self._numbers.pop(self._outdated.pop()))
            else:
                self._add(self._missing.pop())

    def _add(self, key: ref[Tool]) -> None:
        tool = key()
        if tool is None:
            return
        number = self._numbers[key] = len(self._tools)
        self._tools.append(key)
        found: list[_Postings] = []
        for term, weight in _entry(tool).items():
            postings = self._postings.get(term)
            if postings is None:
                postings = self._postings[term] = _Postings(term)
                insort(self._vocabulary, term)
            postings.count += 1
            postings.tools.append(number)
            postings.weights.append(weight)
            found.append(postings)
        self._terms.append(tuple(found))

    def _remove(self, number: int) -> None:
        self._tools[number] = None
        for postings in self._terms[number]:
            postings.count -= 1
            if not postings.count:
                del self._postings[postings.term]
                del self._vocabulary[bisect_left(self._vocabulary, postings.term)]
        self._terms[number] = ()

    def search(
        self,
        query: str,
        *,
        plugin: str | None = None,
        used: Container[str] = (),
        near: Callable[[Source, int | None], bool] | None = None,
    ) -> list[Tool]:
        """The matching tools, best first; all of them by name when there is no query.

        `used` are names of tools that the agent used recently; `near` tells whether tools of a source and tab
        belong to the session's tab.
        """
        query = query[:_MAX_QUERY]
        words = [word for word in stems_of(query) if word not in ARTICLES]
        if not words:
            every = (tool for key in self._numbers if (tool := key()) is not None and _belongs(tool, plugin))
            return [] if query.strip() else sorted(every, key=lambda tool: tool.name)
        named = self._named_sources(words)
        groups = self._groups(words)
        totals: dict[int, float] = {}
        matched: Counter[int] = Counter()
        for group in groups:
            best = self._best_matches(group)
            matched.update(best.keys())
            for number, score in best.items():
                totals[number] = totals.get(number, 0.0) + score
        exact, tail = _compact(query), tuple(words)
        scores: dict[Tool, float] = {}
        for number, total in totals.items():
            key = self._tools[number]
            tool = key() if key is not None else None
            if tool is None or not _belongs(tool, plugin):
                continue
            score = total * (0.3 + 0.7 * matched[number] / len(groups)) * named.get(tool.source.label, 1.0)
            if near is not None and near(tool.source, tool.tab_id):
                score *= _NEAR
            scores[tool] = score * _USED if tool.name in used else score
        floor = max(scores.values(), default=0.0) * _MIN_SCORE

        def rank(tool: Tool) -> tuple[bool, float, str]:
            ends = len(tail) > 1 and tuple(stems_of(tool.name))[-len(tail) :] == tail
            return _compact(tool.name) != exact, -scores[tool] * (_ENDS if ends else 1.0), tool.name

        return sorted((tool for tool, score in scores.items() if score >= floor), key=rank)

    def _named_sources(self, words: list[str]) -> dict[str, float]:
        """The labels of the sources that the query names, with what that counts."""
        there = set(words)
        full: dict[str, float] = {}
        partly: dict[str, float] = {}
        for label, terms in self._sources.items():
            if terms and there.issuperset(terms):
                full[label] = _NAMED
            elif terms and terms[0] in there and len(terms[0]) > 3:
                partly[label] = _PARTLY_NAMED
        return full or partly

    def _best_matches(self, group: Mapping[str, float]) -> dict[int, float]:
        """The tools that have one of the terms, each with the score of its best one; rare terms score higher."""
        best: dict[int, float] = {}
        for term, factor in group.items():
            postings = self._postings[term]
            rarity = factor * math.log(1 + (len(self._numbers) - postings.count + 0.5) / (postings.count + 0.5))
            for number, weight in zip(postings.tools, postings.weights, strict=True):
                score = weight * rarity
                if score > best.get(number, 0.0):
                    best[number] = score
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
        ceiling = len(self._numbers) / (2 if len(self._numbers) > 1_000 else 1)
        groups: list[dict[str, float]] = []
        common: list[dict[str, float]] = []
        for at in (positions or range(len(words)))[:_MAX_GROUPS]:
            word = words[at]
            group: dict[str, float] = {} if word in STOP and at in meant else {word: 1.0}
            for other in SYNONYMS.get(word, ()):
                group.setdefault(other, _SAME_MEANING)
            for other in meant.get(at, ()):
                group[other] = max(group.get(other, 0.0), _PHRASE)
                for alike in SYNONYMS.get(other, ()):
                    group.setdefault(alike, _SAME_MEANING * _PHRASE)
            for joined in (word + words[at + 1] if at + 1 < len(words) else "", words[at - 1] + word if at else ""):
                if joined:
                    group.setdefault(joined, _JOINED)
            for longer in self._beginning_with(word):
                group.setdefault(longer, 0.3 + 0.5 * len(word) / len(longer))
            group = {term: weight for term, weight in group.items() if term in self._postings}
            significant = {
                term: weight
                for term, weight in group.items()
                if self._postings[term].count <= (ceiling if weight > _SAME_MEANING else ceiling * _COMMON)
            }
            if group and not significant:
                common.append(group)
            else:
                groups.append(significant or dict.fromkeys(self._spelled_like(word), _SPELLED))
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
