"""Finding a tool: ranked search over the catalogue, and the nearest names to a wrong one.

Owns the index and the words it knows (stop words, synonyms, a light stemmer). Knows nothing of who asks or pages.

A tool's words are weighed by where they stand: name, source, title, description, parameters. A query word finds its
stem, words it begins, its synonyms, and words it nearly spells when nothing else fits. The weights of one tool do not
depend on the others, so an index is extended from its predecessor, and the same tools always rank the same.
"""

from __future__ import annotations

import math
import re
import unicodedata
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from operator import add
from typing import Any, Final

from tabhub.hub.tools import Tool

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
_KEPT = 0.12

_STOP_WORDS: Final = """
a an and any are as at be by can could do does for from have how i if in into is it its me my need of on or our please
should some that the their them then there these this to tool tools use using want was we what when where which will
with would you your
"""
# Words that mean the same to an agent.
_SYNONYMS: Final = """
delete remove erase trash discard | create add new make insert | update edit change modify rename set
get read fetch retrieve show view see display | list enumerate browse | search find lookup query locate
send post write submit | message dm chat text | email mail gmail inbox | issue ticket bug task
meeting event appointment | pr pull merge | screenshot picture photo snapshot image capture
click press tap push | url link address website site | cart basket bag | buy purchase order checkout
type enter input fill | execute run eval evaluate | javascript js script code | user member people person contact
comment reply respond answer | repository repo project | document doc file | attach attachment upload
close quit exit | open launch start | wait sleep pause delay | cookie session | schedule book plan
move drag transfer | assign delegate | like star favorite react reaction | cancel abort stop
download save export | log console error | request traffic network xhr | page tab content html | refresh reload
invite share | archive hide | label tag | coupon discount voucher promo | refund return | ship delivery track
select choose pick dropdown | keyboard key shortcut hotkey | mute silence | html source markup | pin bookmark
"""
# Several words that together mean another one.
_PHRASES: Final = {
    "screenshot": "take picture|take photo|screen shot|screen capture|capture screen|capture page|see page|look page",
    "navigate": "go to|visit|open url|open page|open website|open site|open link|browse to|load page|load url|goto",
    "back": "previous page",
    "execute script": "run js|run javascript|run code|eval js|evaluate",
    "type text": "write into|enter text|input text",
    "fill form": "fill out|complete form",
    "press key": "hit enter|press enter|hit key|keyboard shortcut",
    "free busy": "when is|availability|available",
    "pull request": "pr|merge request",
    "mute": "do not disturb",
    "snapshot": "accessibility tree|what is on the page",
}

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_a-zA-Z]+")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2,}")


def _words(text: str) -> list[str]:
    """The words of a text: folded to small letters without accents, names taken apart, CJK runs as pairs."""
    if not text.isascii():
        text = unicodedata.normalize("NFKD", text)
        text = unicodedata.normalize("NFC", "".join(c for c in text if not unicodedata.combining(c)))
    words: list[str] = []
    for word in _WORD.findall(text):
        if word.isascii() or not _CJK.fullmatch(word):
            words.append(word.lower())
        else:
            words.extend(map(add, word, word[1:]))
    return words


@lru_cache(maxsize=50_000)
def _stem(word: str) -> str:
    """The part of an English word its forms share, roughly; other words stay as they are."""
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return word
    if word.endswith("ies") and len(word) > 4:
        word = word[:-3] + "y"
    elif word.endswith(("sses", "xes", "ches", "shes", "zes")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ational", "ations", "ation", "ating", "ators", "ator", "ated", "ate", "ions", "ing", "ion", "ed"):
        rest = word[: -len(ending)]
        if word.endswith(ending) and len(rest) >= 3 and re.search("[aeiouy]", rest):
            word = rest[:-1] if rest[-1] == rest[-2] and rest[-1] not in "lsz" else rest
            break
    if len(word) > 4 and word.endswith("e"):
        word = word[:-1]
    return word[:-1] + "i" if len(word) > 3 and word.endswith("y") else word


def _stems(text: str) -> list[str]:
    return [_stem(word) for word in _words(text)]


def _synonyms() -> dict[str, frozenset[str]]:
    table: dict[str, set[str]] = {}
    for group in re.split(r"[|\n]", _SYNONYMS):
        stems = _stems(group)
        for stem in stems:
            table.setdefault(stem, set()).update(other for other in stems if other != stem)
    return {stem: frozenset(others) for stem, others in table.items()}


_STOP: Final = frozenset(_stems(_STOP_WORDS))
_ALIKE: Final = _synonyms()
_SAYINGS: Final = [
    (tuple(_stems(saying)), tuple(_stems(meaning)))
    for meaning, sayings in _PHRASES.items()
    for saying in sayings.split("|")
]


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
    name, compact = _stems(tool.name), _compact(tool.name)
    fields = {
        "name": [*name, *map(add, name, name[1:]), *([compact] if len(name) > 2 else [])],
        "source": _stems(tool.source.key),
        "title": _stems((tool.title or "")[:_MAX_TEXT]),
        "description": _stems(tool.description[:_MAX_TEXT]),
        "parameters": _stems(" ".join(_parameters(tool.input_schema))[: 2 * _MAX_TEXT]),
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
        self, entries: dict[int, _Entry], postings: dict[str, list[tuple[int, float]]], df: Counter[str]
    ) -> None:
        self._entries = entries
        self._postings = postings
        self._df = df
        self._slots = {id(entry.tool): slot for slot, entry in entries.items()}
        self._next = max(entries, default=-1) + 1
        self._vocabulary: list[str] | None = None

    @classmethod
    def build(cls, tools: Iterable[Tool], previous: ToolIndex | None = None) -> ToolIndex:
        """Index the tools; what `previous` knows of the same Tool objects is taken over."""
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
        return cls(kept, postings, df)

    def __len__(self) -> int:
        return len(self._entries)

    def search(self, query: str, *, plugin: str | None = None) -> list[Tool]:
        """The tools that fit the query, best first; all of them by name when there is no query."""
        entries = self._entries
        if plugin is not None:
            entries = {slot: entry for slot, entry in entries.items() if _belongs(entry.tool, plugin)}
        query = query[:_MAX_QUERY]
        words = _stems(query)
        if not words:
            return (
                sorted((entry.tool for entry in entries.values()), key=lambda tool: tool.name)
                if not query.strip()
                else []
            )
        groups = self._groups(words)
        totals: dict[int, float] = {}
        matched: dict[int, int] = {}
        size = len(self._entries)
        for group in groups:
            best: dict[int, float] = {}
            for term, weight in group.items():
                df = self._df[term]
                factor = weight * math.log(1 + (size - df + 0.5) / (df + 0.5))
                for slot, share in self._postings[term]:
                    score = share * factor
                    if score > best.get(slot, 0.0):
                        best[slot] = score
            for slot, score in best.items():
                totals[slot] = totals.get(slot, 0.0) + score
                matched[slot] = matched.get(slot, 0) + 1
        exact, tail = _compact(query), " ".join(words)
        ranked: list[tuple[bool, float, str, Tool]] = []
        for slot, total in totals.items():
            entry = entries.get(slot)
            if entry is not None:
                score = total * (0.3 + 0.7 * matched[slot] / len(groups)) * (1.5 if entry.tail.endswith(tail) else 1.0)
                ranked.append((entry.compact != exact, -score, entry.tool.name, entry.tool))
        bar = min((row[1] for row in ranked), default=0.0) * _KEPT
        return [row[3] for row in sorted((row for row in ranked if row[1] <= bar), key=lambda row: row[:3])]

    def _groups(self, words: list[str]) -> list[dict[str, float]]:
        """For each word that counts, the terms it may be found by, and what they are worth."""
        meant: dict[int, set[str]] = {}
        for saying, meaning in _SAYINGS:
            for at in range(len(words) - len(saying) + 1):
                if tuple(words[at : at + len(saying)]) == saying:
                    for position in range(at, at + len(saying)):
                        meant.setdefault(position, set()).update(meaning)
        counting = [at for at, word in enumerate(words) if at in meant or word not in _STOP] or list(range(len(words)))
        groups: list[dict[str, float]] = []
        for at in dict.fromkeys(counting[:_MAX_GROUPS]):
            word = words[at]
            group: dict[str, float] = {} if word in _STOP and at in meant else {word: 1.0}
            for other in _ALIKE.get(word, ()):
                group.setdefault(other, 0.45)
            for other in meant.get(at, ()):
                group[other] = max(group.get(other, 0.0), 0.9)
            for joined in (word + words[at + 1] if at + 1 < len(words) else "", words[at - 1] + word if at else ""):
                if joined:
                    group.setdefault(joined, 0.9)
            for longer in self._beginning_with(word):
                group.setdefault(longer, 0.3 + 0.5 * len(word) / len(longer))
            group = {term: weight for term, weight in group.items() if self._df[term] > 0}
            if not group:
                group = dict.fromkeys(self._spelled_like(word), 0.6)
            groups.append(group)
        return groups

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
        """The terms one slip away, or two for a long word."""
        if len(word) < 4:
            return []
        slips = 1 if len(word) < 7 else 2
        letters = _letters(word)
        near = [
            term
            for term in self._terms()
            if abs(len(term) - len(word)) <= slips and (_letters(term) ^ letters).bit_count() <= 2 * slips
        ]
        return [term for term in near if _distance(word, term, slips) <= slips]


def _belongs(tool: Tool, plugin: str) -> bool:
    wanted = plugin.strip().lower()
    return wanted in (tool.source.key.lower(), tool.source.kind, str(tool.source).lower())


@lru_cache(maxsize=100_000)
def _letters(word: str) -> int:
    mask = 0
    for letter in word:
        mask |= 1 << (ord(letter) & 63)
    return mask


def _distance(one: str, other: str, most: int) -> int:
    """Edits between two words, two swapped letters being one; any number above `most` when there are more."""
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
    """The names most like a wrong one: misspelled, with other separators, shortened, or with a prefix too many."""
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
    wrong_words = set(_stems(name[:200]))
    close: list[tuple[float, str]] = []
    for _, candidate, small in rough[:40]:
        ratio = SequenceMatcher(None, wrong, _compact(small), autojunk=False).ratio()
        words = set(_stems(candidate))
        overlap = len(words & wrong_words) / (min(len(words), len(wrong_words)) or 1)
        score = ratio + 0.5 * overlap + (0.3 if small.endswith(wrong) or wrong.endswith(small) else 0.0)
        if score >= 0.75:
            close.append((-score, candidate))
    return [candidate for _, candidate in sorted(close)[:limit]]
