"""The description of a page's tool as an agent reads it: the page's own text, marked as such, with its origin.

Owns the wording (seed 000's DescriptionBuilder) and the removal of invisible characters: no page may tell an agent what
a person reading the same text cannot see. Knows nothing of tools' names or of who asks.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tabhub.trust.pins import is_hidden

_MAX_TEXT = 2_000
_TITLE = 80
_JOINERS = "\u200c\u200d"
_SAID = ("title", "description", "$comment")
_SPACES = re.compile(r"[^\S\n]+")
_LINES = re.compile(r"\n{3,}")


@dataclass(frozen=True, slots=True)
class ToolLocation:
    """Where a tool is, as far as its description says."""

    domain: str
    title: str = ""
    number: int | None = None
    active: bool = False
    tabs: int = 0
    """How many tabs offer it, for a name without a tab."""
    embedded_in: str | None = None
    """The site of the page that holds the frame, where it is another one."""


def visible(text: str) -> tuple[str, int]:
    """The text without invisible characters (control, direction, zero-width), and how many were removed."""
    if text.isascii() and text.isprintable():
        return text, 0
    kept: list[str] = []
    hidden = 0
    for place, character in enumerate(text):
        if character in "\n\t":
            kept.append(character)
        elif character in _JOINERS:
            # Scripts and emoji need them between their own letters; between Latin ones they only hide something.
            around = text[place - 1 : place] + text[place + 1 : place + 2]
            if len(around) == 2 and not around.isascii() and around[0] not in _JOINERS:
                kept.append(character)
            else:
                hidden += 1
        elif is_hidden(character) and unicodedata.category(character) != "Zs":
            if character != "\r":
                hidden += 1
        else:
            kept.append(character)
    return "".join(kept), hidden


def one_line(text: str, longest: int = _TITLE) -> str:
    """A page's text as one short visible line."""
    line = " ".join(visible(text[: longest * 8])[0].split())
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def describe(text: str, place: ToolLocation) -> str:
    """A tool's description: a line about its location, then the page's own text."""
    parts = [place.domain]
    if place.number is not None:
        parts.append(f"tab {place.number}")
    if title := one_line(place.title):
        parts.append(f"“{title}”")
    if place.embedded_in:
        parts.append(f"embedded in {place.embedded_in}")
    if place.active:
        parts.append("active tab")
    if place.number is None:
        parts.append(f"in {place.tabs} open tab{'s' if place.tabs > 1 else ''}" if place.tabs else "opens the site")
    seen, hidden = visible(text)
    own = _LINES.sub("\n\n", _SPACES.sub(" ", seen)).strip()
    if len(own) > _MAX_TEXT:
        own = f"{own[: _MAX_TEXT - 1]}…"
    described = f"[{' · '.join(parts)}] " + (f"The page says: {own}" if own else "The page says nothing of it.")
    return _with_count(described, hidden)


def strip_hidden(text: str, *schemas: Mapping[str, Any]) -> str:
    """A tool's text without invisible characters, noting how many were removed from it and from its schemas."""
    seen, hidden = visible(text)
    return _with_count(seen, hidden + sum(_hidden(None, schema) for schema in schemas))


def _with_count(text: str, hidden: int) -> str:
    return f"{text} [{hidden} hidden characters removed]" if hidden else text


def strip_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema whose titles and descriptions have no invisible characters; everything else is unchanged."""
    return {word: _seen(word, value) for word, value in schema.items()}


def _seen(word: str | None, value: Any) -> Any:
    if isinstance(value, str):
        return visible(value)[0] if word in _SAID else value
    if isinstance(value, Mapping):
        return {name: _seen(name, inner) for name, inner in value.items()}
    return [_seen(None, inner) for inner in value] if isinstance(value, list) else value


def _hidden(word: str | None, value: Any) -> int:
    if isinstance(value, str):
        return visible(value)[1] if word in _SAID else 0
    if isinstance(value, Mapping):
        return sum(_hidden(name, inner) for name, inner in value.items())
    return sum(_hidden(None, inner) for inner in value) if isinstance(value, list) else 0
