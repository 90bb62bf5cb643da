"""Characters that a person does not see, and how they are shown instead.

Owns which characters count as hidden and their visible form, `\\u{E0041}`. Text from outside must not tell an agent
what a person reading the same text would miss. Knows nothing of tools or pages.
"""

from __future__ import annotations

import re
import unicodedata

_SELECTORS = "\ufe0e\ufe0f"
"""They choose between the text and the emoji form of the character before them."""
_KEYCAPS = "0123456789#*"
_INFORMATION = "\u2139"
"""The one emoji that Unicode counts as a letter."""
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff]"
)
"""Characters that take no ink although Unicode counts them as marks or letters; the others are not printable."""
_LONGEST_RUN = 8
_JOINERS = "\u200c\u200d"


def is_hidden(character: str) -> bool:
    """Whether a person would not see a character: control, direction, zero-width, tag, variation, unassigned, private.

    Spaces of every width are not hidden. Those that select the form of an emoji are; see `find_hidden`.
    """
    if character.isprintable():
        return _UNSEEN.match(character) is not None
    return unicodedata.category(character) != "Zs"


def find_hidden(text: str, allowed: str = "") -> str | None:
    """The first hidden character of a text that is not among the allowed ones."""
    if text.isprintable() and _UNSEEN.search(text) is None:
        return None
    for place, character in enumerate(text):
        if character not in allowed and _is_hidden_at(text, place):
            return character
    return None


def escape_hidden(text: str, *, allowed: str = "\n\t", joiners: bool = False) -> str:
    """The text with its hidden characters written out; of a long run only the first and their number.

    With `joiners`, those that a script or an emoji needs between its letters stay as they are.
    """
    if text.isprintable() and _UNSEEN.search(text) is None:
        return text
    if "\n" in allowed:
        text = text.replace("\r\n", "\n")
    shown: list[str] = []
    run: list[str] = []
    for place, character in enumerate(text):
        if character in allowed or not _is_hidden_at(text, place) or (joiners and joins(text, place)):
            shown += _escaped_run(run)
            run.clear()
            shown.append(character)
        else:
            run.append(character)
    return "".join((*shown, *_escaped_run(run)))


def escaped(character: str) -> str:
    return f"\\u{{{ord(character):04X}}}"


def _escaped_run(run: list[str]) -> list[str]:
    if len(run) <= _LONGEST_RUN:
        return [escaped(character) for character in run]
    return [escaped(run[0]), f"[and {len(run) - 1} more hidden characters]"]


def _is_hidden_at(text: str, place: int) -> bool:
    character = text[place]
    if character in _SELECTORS and place > 0:
        before = text[place - 1]
        symbol = not before.isascii() and unicodedata.category(before)[0] in "SP"
        return not (symbol or before in _KEYCAPS or before == _INFORMATION)
    return is_hidden(character)


def joins(text: str, place: int) -> bool:
    """Whether the character is a joiner that the letters or emoji around it may need; Latin letters need none."""
    around = text[place - 1 : place] + text[place + 1 : place + 2]
    return text[place] in _JOINERS and len(around) == 2 and not around.isascii() and around[0] not in _JOINERS
