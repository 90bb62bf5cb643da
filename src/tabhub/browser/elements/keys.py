"""Keys by name, and the CDP key events of a key with modifiers.

Owns the table of keys and parsing `Control+Shift+A`. Pure: it sends nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from tabhub.errors import InvalidArguments

MODIFIERS = {"Alt": 1, "Control": 2, "Meta": 4, "Shift": 8}
_ALIASES = {
    "ctrl": "Control",
    "cmd": "Meta",
    "command": "Meta",
    "super": "Meta",
    "win": "Meta",
    "option": "Alt",
    "return": "Enter",
    "esc": "Escape",
    "del": "Delete",
    "ins": "Insert",
    "spacebar": "Space",
    "up": "ArrowUp",
    "down": "ArrowDown",
    "left": "ArrowLeft",
    "right": "ArrowRight",
    "pgup": "PageUp",
    "pgdn": "PageDown",
    "plus": "+",
}

_MOVING = ("PageUp", "PageDown", "End", "Home", "ArrowLeft", "ArrowUp", "ArrowRight", "ArrowDown")
_OTHERS = {"Tab": 9, "Escape": 27, "Backspace": 8, "Delete": 46, "Insert": 45, "CapsLock": 20, "Pause": 19}
_NUMBERS = {**_OTHERS, **dict(zip(_MOVING, range(33, 41), strict=True)), "ContextMenu": 93, "PrintScreen": 44}
"""Windows virtual key codes of the keys whose `key` and `code` are the same."""
_MODIFIER_NUMBERS = {"Alt": 18, "Control": 17, "Meta": 91, "Shift": 16}


def modifier_bits(names: Iterable[str]) -> int:
    """CDP's bit field for modifiers."""
    return sum(MODIFIERS[name] for name in set(names))


@dataclass(frozen=True, slots=True)
class Key:
    """One key with its KeyboardEvent fields."""

    key: str
    code: str = ""
    number: int = 0
    """The Windows virtual key code, which pages still read as keyCode."""
    text: str = ""
    location: int = 0
    shift: bool = False
    """Whether the character needs Shift on a US keyboard."""


def _named() -> Iterator[Key]:
    yield Key("Enter", "Enter", 13, "\r")
    for name, number in _NUMBERS.items():
        yield Key(name, name, number)
    for name, number in _MODIFIER_NUMBERS.items():
        yield Key(name, f"{name}Left", number, location=1)
    for number in range(1, 25):
        yield Key(f"F{number}", f"F{number}", 111 + number)


def _characters() -> Iterator[Key]:
    for letter in "abcdefghijklmnopqrstuvwxyz":
        upper = letter.upper()
        yield Key(letter, f"Key{upper}", ord(upper), letter)
        yield Key(upper, f"Key{upper}", ord(upper), upper, shift=True)
    for digit, above in zip("1234567890", "!@#$%^&*()", strict=True):
        yield Key(digit, f"Digit{digit}", ord(digit), digit)
        yield Key(above, f"Digit{digit}", ord(digit), above, shift=True)
    for plain, above, code, number in (
        ("-", "_", "Minus", 189),
        ("=", "+", "Equal", 187),
        ("[", "{", "BracketLeft", 219),
        ("]", "}", "BracketRight", 221),
        ("\\", "|", "Backslash", 220),
        (";", ":", "Semicolon", 186),
        ("'", '"', "Quote", 222),
        ("`", "~", "Backquote", 192),
        (",", "<", "Comma", 188),
        (".", ">", "Period", 190),
        ("/", "?", "Slash", 191),
    ):
        yield Key(plain, code, number, plain)
        yield Key(above, code, number, above, shift=True)
    yield Key(" ", "Space", 32, " ")


CHARACTERS = {key.key: key for key in _characters()}
NAMED = {key.key.lower(): key for key in _named()} | {"space": CHARACTERS[" "]}
# On macOS these are menu commands of the browser, which a key event alone does not trigger.
_COMMANDS = {"a": "selectAll", "c": "copy", "x": "cut", "v": "paste", "z": "undo"}


def parse(given: str, modifiers: Iterable[str] = ()) -> tuple[Key, int]:
    """The key and modifier bits of a text such as `Enter`, `a`, `Control+Shift+ArrowLeft`."""
    held = 0
    for name in modifiers:
        held |= _modifier(name, name)
    # A plus sign is itself a key: the last one in `Control++`.
    words = [*given[:-1].split("+")[:-1], "+"] if given == "+" or given.endswith("++") else given.split("+")
    for word in words[:-1]:
        held |= _modifier(_ALIASES.get(word.strip().lower(), word.strip().capitalize()), word)
    last = words[-1] if len(words[-1]) == 1 else words[-1].strip()
    name = _ALIASES.get(last.lower(), last)
    key = CHARACTERS.get(name) or NAMED.get(name.lower())
    if key is None and len(name) == 1 and name.isprintable():
        key = Key(name, text=name)
    if key is None:
        near = get_close_matches(name.lower(), NAMED, 3, 0.5)
        known = ", ".join(NAMED[word].key if word != "space" else "Space" for word in near)
        raise InvalidArguments(
            f"There is no key named {name[:40]!r}.",
            hint=f"Did you mean {known}?"
            if near
            else "Keys are named as in KeyboardEvent.key: Enter, ArrowDown, a, F5.",
        )
    if key.shift and (held & MODIFIERS["Control"] or held & MODIFIERS["Meta"]) and key.key.isalpha():
        # People write Control+A for Control and the key a.
        key = key if held & MODIFIERS["Shift"] else CHARACTERS[key.key.lower()]
    elif key.shift:
        held |= MODIFIERS["Shift"]
    elif held & MODIFIERS["Shift"] and key.text.isalpha() and len(key.text) == 1:
        key = CHARACTERS.get(key.key.upper(), key)
    return key, held


def _modifier(name: object, given: object) -> int:
    """The bit of a modifier; `given` is how the agent wrote it."""
    if not isinstance(name, str) or name not in MODIFIERS:
        raise InvalidArguments(f"{str(given)[:40]!r} is not a modifier.", hint=f"Modifiers are {', '.join(MODIFIERS)}.")
    return MODIFIERS[name]


def press_events(key: Key, held: int = 0) -> list[dict[str, Any]]:
    """The events of one key press, with the modifiers pressed before and released after."""
    events: list[dict[str, Any]] = []
    pressed = [name for name, bit in MODIFIERS.items() if held & bit]
    bits = 0
    for name in pressed:
        bits |= MODIFIERS[name]
        events.append({"type": "rawKeyDown", "modifiers": bits, **_facts(NAMED[name.lower()])})
    events += _stroke(key, held)
    for name in reversed(pressed):
        bits &= ~MODIFIERS[name]
        events.append({"type": "keyUp", "modifiers": bits, **_facts(NAMED[name.lower()])})
    return events


def character_events(character: str) -> list[dict[str, Any]] | None:
    """The events of typing one character, or None if no key of a US keyboard produces it."""
    key = CHARACTERS.get(character)
    return None if key is None else _stroke(key, MODIFIERS["Shift"] if key.shift else 0)


def release(modifier: str) -> dict[str, Any]:
    """The event of releasing a modifier."""
    return {"type": "keyUp", **_facts(NAMED[modifier.lower()])}


def _stroke(key: Key, held: int) -> list[dict[str, Any]]:
    # With Control, Alt or Meta held a key produces no text.
    text = key.text if not held & ~MODIFIERS["Shift"] else ""
    modifiers = {"modifiers": held} if held else {}  # the default need not be sent with each key
    down: dict[str, Any] = {"type": "keyDown" if text else "rawKeyDown", **modifiers, **_facts(key)}
    if text:
        down["text"] = down["unmodifiedText"] = text
    if held == MODIFIERS["Meta"] and key.key in _COMMANDS:
        down["commands"] = [_COMMANDS[key.key]]
    return [down, {"type": "keyUp", **modifiers, **_facts(key)}]


def _facts(key: Key) -> dict[str, Any]:
    facts: dict[str, Any] = {"key": key.key}
    if key.code:
        facts |= {"code": key.code, "windowsVirtualKeyCode": key.number}
    if key.location:
        facts["location"] = key.location
    return facts
