"""Terms of the tool search: tokenizer, a light English stemmer, stop words.

Owns how a word becomes a term; `search` decides what a match is worth, and search_synonyms has what means the same.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from operator import add
from typing import Final

from tabhub.core.listing.search_synonyms import GROUPS
from tabhub.core.listing.search_synonyms import PHRASES as _MEANINGS

_STOP_WORDS: Final = """
a about according after again also am an and any are as at be because been but by can could dear did do does doesn don
for from had has hasn have he her here him his how i if in into is it its just kindly m may maybe me my need needs not
of on one onto or our out over please re s she should so some somebody something still t that the their them then there
these they thing this those to too tool tools up us use using ve very want wants was we were what when where which who
whom whose why will with would you your
"""
# Forms that no rule leads back to their verb or noun.
_IRREGULAR_FORMS: Final = """
sent send|paid pay|bought buy|sold sell|won win|lost lose|left leave|broke break|broken break|stole steal|stolen steal
wrote write|written write|told tell|said say|heard hear|slept sleep|took take|taken take|gave give|given give|flew fly
built build|met meet|saw see|seen see|ran run|began begin|begun begin|chose choose|chosen choose|kept keep|made make
found find|went go|gone go|got get|came come|put put|read read|spent spend|drove drive|driven drive|drank drink|ate eat
eaten eat|forgot forget|forgotten forget|held hold|knew know|known know|spoke speak|spoken speak|taught teach
thought think|understood understand|woke wake|children child|people person|men man|women woman|feet foot|mice mouse
"""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_a-zA-Z]+")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2,}")


def _words(text: str) -> list[str]:
    """The words of a text: lower-cased without accents, identifiers split, CJK runs as pairs."""
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


_IRREGULAR: Final = {
    form: base for form, _, base in (pair.partition(" ") for pair in re.split(r"[|\n]", _IRREGULAR_FORMS)) if form
}


@lru_cache(maxsize=20_000)
def _stem(word: str) -> str:
    """A rough common stem of the forms of an English word; other words are unchanged."""
    word = _IRREGULAR.get(word, word)
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


def stems_of(text: str) -> list[str]:
    return [_stem(word) for word in _words(text)]


def _synonyms() -> dict[str, frozenset[str]]:
    table: dict[str, set[str]] = {}
    for group in GROUPS.strip().split("\n"):
        stems = stems_of(group)
        for stem in stems:
            table.setdefault(stem, set()).update(other for other in stems if other != stem)
    return {stem: frozenset(others) for stem, others in table.items()}


STOP: Final = frozenset(stems_of(_STOP_WORDS))
ARTICLES: Final = frozenset({"a", "an", "the", "my"})
"""Dropped from a query first, so that they do not split phrases."""
SYNONYMS: Final = _synonyms()
PHRASES: Final = [
    (tuple(stems_of(phrase)), tuple(stems_of(meaning)))
    for meaning, phrases in _MEANINGS.items()
    for phrase in phrases.split("|")
]
