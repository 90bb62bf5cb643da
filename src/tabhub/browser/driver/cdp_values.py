"""What the browser tells, taken as data: every value is of the kind it should be, and bounded.

Owns how texts, numbers, addresses and headers of events are read. It knows nothing of what they are for.
"""

from __future__ import annotations

from typing import Any

_HEADERS, _NAME, _VALUE, _URL, _DATA_URL, _WORDS = 100, 200, 4_000, 8_192, 200, 300


def parse_text(value: Any, most: int) -> str:
    """A text of the browser's, bounded; anything else is empty."""
    return value[:most] if type(value) is str else ""


def parse_number(value: Any) -> float:
    """A number of the browser's; anything else is 0."""
    return float(value) if type(value) in (int, float) else 0.0


def parse_int(value: Any) -> int:
    """A whole number of the browser's; anything else is 0."""
    return int(value) if type(value) is int or (type(value) is float and abs(value) < 1e15) else 0


def parse_url(value: Any) -> str:
    """An address, bounded; one that carries its content is cut early."""
    url = parse_text(value, _URL)
    return f"{url[:_DATA_URL]}…" if url[:5].lower() == "data:" and len(url) > _DATA_URL else url


def parse_headers(value: Any) -> dict[str, str]:
    """Headers as the browser tells them, bounded in number and length."""
    if not isinstance(value, dict):
        return {}
    return {str(k)[:_NAME]: str(v)[:_VALUE] for k, v in list(value.items())[:_HEADERS]}


def parse_object(value: Any) -> dict[str, Any]:
    """An object of the browser's; anything else is empty."""
    return value if isinstance(value, dict) else {}


def headers_size(given: dict[str, str]) -> int:
    """About how many bytes headers take."""
    return sum(len(name) + len(value) + 100 for name, value in given.items())


def parse_initiator(value: Any) -> str:
    """Who made the request: `script https://site/app.js:12`, or only its kind."""
    told = parse_object(value)
    kind, url, line = parse_text(told.get("type"), 20), told.get("url"), told.get("lineNumber")
    if type(url) is not str:
        frames = parse_object(told.get("stack")).get("callFrames")
        top = parse_object(frames[0]) if isinstance(frames, list) and frames else {}
        url, line = top.get("url"), top.get("lineNumber")
    if type(url) is not str or not url:
        return kind
    place = (
        f"{parse_url(url)[:_WORDS]}:{parse_int(line) + 1}" if type(line) in (int, float) else parse_url(url)[:_WORDS]
    )
    return f"{kind} {place}"
