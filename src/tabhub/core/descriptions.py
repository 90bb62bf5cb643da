"""The description of a page's tool as an agent reads it: the page's own text, marked as such, with its origin.

Owns the wording (seed 000's DescriptionBuilder), and the removal of invisible characters from the content of pages.
What of a definition is shown is definitions'. Knows nothing of tools' names or of agents.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tabhub.core.definitions import shown_text
from tabhub.trust.hidden_text import find_hidden, is_hidden, joins

_MAX_TEXT = 2_000
_TITLE = 80
_SELECTORS = "\ufe0e\ufe0f"
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
    if text.isprintable() and find_hidden(text) is None:
        return text, 0
    kept: list[str] = []
    removed = 0
    for place, character in enumerate(text):
        if character in "\n\t":
            kept.append(character)
        elif is_hidden(character) and character not in _SELECTORS and not joins(text, place):
            if character != "\r":
                removed += 1
        else:
            kept.append(character)
    return "".join(kept), removed


def one_line(text: str, longest: int = _TITLE) -> str:
    """A text from outside as one short line."""
    line = " ".join(shown_text(text[: longest * 8]).split())
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
    own = _LINES.sub("\n\n", _SPACES.sub(" ", shown_text(text))).strip()
    if len(own) > _MAX_TEXT:
        own = f"{own[: _MAX_TEXT - 1]}…"
    return f"[{' · '.join(parts)}] " + (f"The page says: {own}" if own else "The page gives no description.")
