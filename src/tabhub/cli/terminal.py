"""What a person sees: colour, errors with hints, safe text, times and sizes. Knows no command and no hub."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


def paint(text: str, style: str, stream: TextIO | None = None) -> str:
    if not (stream or sys.stdout).isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m"


def show_error(message: str, hint: str | None = None, detail: str | None = None) -> None:
    sys.stdout.flush()
    print(paint("error:", "red", sys.stderr), safe(message, sys.stderr), file=sys.stderr)
    if detail:
        print(safe(detail, sys.stderr), file=sys.stderr)
    if hint:
        print(paint("hint:", "cyan", sys.stderr), safe(hint, sys.stderr), file=sys.stderr)


def show_warning(message: str) -> None:
    print(paint("warning:", "yellow", sys.stderr), safe(message, sys.stderr), file=sys.stderr)


def safe(text: str, stream: TextIO | None = None) -> str:
    """Untrusted text for a terminal: control characters are escaped."""
    if not (stream or sys.stdout).isatty():
        return text
    return "".join(c if c in "\n\t" or c.isprintable() else f"\\x{ord(c):02x}" for c in text)


def print_json(value: object) -> None:
    """Print a value as JSON; on a terminal, characters that could control it are escaped."""
    import json

    text = json.dumps(value, indent=2, ensure_ascii=False)
    if sys.stdout.isatty():
        text = "".join(c if c == "\n" or c.isprintable() else _escaped(c) for c in text)
    print(text)


def _escaped(character: str) -> str:
    """The JSON escape of a character; one above 16 bits takes two."""
    data = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{data[at : at + 2].hex()}" for at in range(0, len(data), 2))


def line(text: str) -> str:
    """The first line of a text, blanks collapsed."""
    return " ".join(text.strip().split("\n", 1)[0].split())


def width() -> int | None:
    """Columns of the terminal, or None when the output goes elsewhere and should not be cut."""
    if not sys.stdout.isatty():
        return None
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns
    except OSError:
        return 80


def cut(text: str, room: int | None) -> str:
    if room is None or len(text) <= room:
        return text
    return text[: max(room - 1, 0)] + "…"


def print_row(left: str, text: str) -> None:
    """Print the first line of an untrusted text to the right of another, cut at the edge of the terminal."""
    columns = width()
    print(left + cut(safe(line(text)), columns and columns - len(left)))


def duration(seconds: float) -> str:
    """A time span as text: `3 s`, `5 min`, `2 h 5 min`, `4 d 2 h`."""
    whole = int(max(seconds, 0))
    if whole < 60:
        return f"{whole} s"
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if hours == 0:
        return f"{minutes} min"
    if days == 0:
        return f"{hours} h {minutes % 60} min"
    return f"{days} d {hours % 24} h"


def nearest(word: str, known: list[str]) -> str | None:
    import difflib

    found = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return found[0] if found else next((k for k in known if len(word) > 1 and k.startswith(word)), None)


def count(number: int, noun: str) -> str:
    """`1 tab`, `2 tabs`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
