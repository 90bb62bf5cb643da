"""Pins: the tool definitions a person approved. A tool whose definition changed needs a new approval.

Owns what counts as a tool's definition, its fingerprint, and the description of a change: a diff in which invisible
characters are spelled out. Pins are stored by store.pins.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tabhub.trust.hidden_text import is_hidden

_LONGEST = 20_000
_MAX_DEFINITIONS = 5
"""Approved definitions stored of one tool: two tabs may show two versions of one page."""


@dataclass(frozen=True, slots=True)
class Pin:
    """The approved definitions of one tool; the last one in full."""

    fingerprints: tuple[str, ...]
    text: str

    def has(self, fingerprint: str) -> bool:
        return fingerprint in self.fingerprints

    def with_definition(self, fingerprint: str, text: str) -> Pin:
        """A pin with one more approved definition."""
        others = [each for each in self.fingerprints if each != fingerprint]
        return Pin((*others[-(_MAX_DEFINITIONS - 1) :], fingerprint), text)


def definition(
    *,
    name: str,
    description: str,
    input_schema: Mapping[str, Any],
    output_schema: Mapping[str, Any] | None = None,
    annotations: Mapping[str, Any] | None = None,
    title: str | None = None,
    version: str | None = None,
) -> str:
    """A tool's definition as text; it does not depend on the order of keys."""
    fields: dict[str, Any] = {"name": name, "title": title, "version": version, "description": description.split("\n")}
    fields["annotations"] = dict(annotations or {})
    fields["inputSchema"] = input_schema
    fields["outputSchema"] = output_schema
    present = {key: value for key, value in fields.items() if value not in (None, {})}
    return json.dumps(present, indent=1, sort_keys=True, ensure_ascii=False, default=dict)


def fingerprint(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


def diff(old: str, new: str) -> str:
    """A unified diff without invisible characters, preceded by a note about them."""
    lines = difflib.unified_diff(
        [spell_hidden(line) for line in old.split("\n")],
        [spell_hidden(line) for line in new.split("\n")],
        "approved",
        "now",
        lineterm="",
        n=2,
    )
    text = "\n".join(lines)
    if len(text) > _LONGEST:
        text = f"{text[:_LONGEST]}\n… ({len(text) - _LONGEST} characters more)"
    return f"{hidden}\n{text}" if (hidden := describe_hidden(new)) else text


def spell_hidden(text: str) -> str:
    """The text with invisible characters written out as code points."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(f"⟨U+{ord(c):04X}⟩" if _is_unseen(c) else c for c in text)


def describe_hidden(text: str) -> str:
    """A sentence about the invisible characters; empty if there are none."""
    found: dict[str, int] = {}
    for character in text:
        if character != "\n" and _is_unseen(character):
            found[character] = found.get(character, 0) + 1
    if not found:
        return ""
    named = ", ".join(f"{count} of U+{ord(c):04X} {unicodedata.name(c, '')}".rstrip() for c, count in found.items())
    return f"Hidden characters in the definition: {named[:500]}."


def _is_unseen(character: str) -> bool:
    """Hidden, or a space of another width: in a comparison that is a change nobody would see."""
    return character not in " \ufe0e\ufe0f" and (is_hidden(character) or unicodedata.category(character) == "Zs")
