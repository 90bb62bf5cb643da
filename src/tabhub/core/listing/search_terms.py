"""Terms of the tool search: tokenizer, a light English stemmer, stop words and synonyms.

Owns these tables and nothing else; `search` decides what a match is worth.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from operator import add
from typing import Final

_STOP_WORDS: Final = """
a an and any are as at be by can could do does for from have how i if in into is it its me my need of on or our please
should some that the their them then there these this to tool tools use using want was we what when where which will
with would you your
"""
# Groups of words that mean the same to an agent.
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
# Phrases that mean another term.
_PHRASES: Final = {
    "screenshot": "take picture|take photo|screen shot|screen capture|capture screen|capture page|see page|look page",
    "navigate": "go to|visit|open url|open page|open website|open site|open link|browse to|load page|load url|goto",
    "back": "previous page",
    "list tab": "which tab|what tab|show tab|my tab",
    "fulfill request": "mock response|fake response|stub response|mock request|mock api",
    "fail request": "block request|abort request|deny request",
    "list window": "which window|what window|open windows",
    "execute script": "run js|run javascript|run code|eval js|evaluate",
    "type text": "write into|enter text|input text",
    "fill form": "fill out|complete form",
    "press key": "hit enter|press enter|hit key|keyboard shortcut",
    "free busy": "when is|availability|available",
    "pull request": "pr|merge request",
    "create event": "schedule meeting|schedule call|book meeting|set up meeting|plan meeting",
    "delete event": "cancel meeting|cancel event|cancel appointment",
    "mute": "do not disturb",
    "snapshot": "accessibility tree|what is on page",
}

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


@lru_cache(maxsize=50_000)
def _stem(word: str) -> str:
    """A rough common stem of the forms of an English word; other words are unchanged."""
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
    for group in re.split(r"[|\n]", _SYNONYMS):
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
    for meaning, phrases in _PHRASES.items()
    for phrase in phrases.split("|")
]
