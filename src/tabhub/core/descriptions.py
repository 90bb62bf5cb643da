"""The description of a page's tool as an agent reads it: the page's own text, marked as such, with its origin.

Owns the wording (seed 000's DescriptionBuilder) and the removal of invisible characters: a page must not send an agent
text that a person cannot see. Knows nothing of tools' names or of agents.
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
_TEXT_KEYS = ("title", "description", "$comment")
_SPACES = re.compile(r"[^\S\n]+")
_LINES = re.compile(r"\n{3,}")


@dataclass(frozen=True, slots=True)
class ToolLocation:
    """Where a tool is, as its description shows it."""

    domain: str
    title: str = ""
    number: int | None = None
    active: bool = False
    tabs: int = 0
    """How many tabs have it, for a name without a tab."""
    embedded_in: str | None = None
    """The site of the page that contains the frame, if it is another one."""


def visible(text: str) -> tuple[str, int]:
    """The text without invisible characters (control, direction, zero-width), and how many were removed."""
    if text.isascii() and text.isprintable():
        return text, 0
    kept: list[str] = []
    removed = 0
    for place, character in enumerate(text):
        if character in "\n\t":
            kept.append(character)
        elif character in _JOINERS:
            # Some scripts and emoji need them between their letters; between Latin letters they only hide something.
            around = text[place - 1 : place] + text[place + 1 : place + 2]
            if len(around) == 2 and not around.isascii() and around[0] not in _JOINERS:
                kept.append(character)
            else:
                removed += 1
        elif is_hidden(character) and unicodedata.category(character) != "Zs":
            if character != "\r":
                removed += 1
        else:
            kept.append(character)
    return "".join(kept), removed


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
    seen, removed = visible(text)
    own = _LINES.sub("\n\n", _SPACES.sub(" ", seen)).strip()
    if len(own) > _MAX_TEXT:
        own = f"{own[: _MAX_TEXT - 1]}…"
    described = f"[{' · '.join(parts)}] " + (f"The page says: {own}" if own else "The page gives no description.")
    return _with_count(described, removed)


def strip_hidden(text: str, *schemas: Mapping[str, Any]) -> str:
    """A tool's text without invisible characters, noting how many were removed from it and from its schemas."""
    seen, removed = visible(text)
    return _with_count(seen, removed + sum(_count(None, schema) for schema in schemas))


def _with_count(text: str, removed: int) -> str:
    return f"{text} [{removed} hidden characters removed]" if removed else text


def strip_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema whose titles and descriptions have no invisible characters; everything else is unchanged."""
    return {key: _strip(key, value) for key, value in schema.items()}


def _strip(key: str | None, value: Any) -> Any:
    if isinstance(value, str):
        return visible(value)[0] if key in _TEXT_KEYS else value
    if isinstance(value, Mapping):
        return {name: _strip(name, inner) for name, inner in value.items()}
    return [_strip(None, inner) for inner in value] if isinstance(value, list) else value


def _count(key: str | None, value: Any) -> int:
    if isinstance(value, str):
        return visible(value)[1] if key in _TEXT_KEYS else 0
    if isinstance(value, Mapping):
        return sum(_count(name, inner) for name, inner in value.items())
    return sum(_count(None, inner) for inner in value) if isinstance(value, list) else 0
