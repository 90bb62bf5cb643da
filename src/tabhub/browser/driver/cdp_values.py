"""Parsers for CDP values: each returns the expected type, bounded in size, whatever the browser sent.

Text that is not text becomes empty, a number that is not a number 0. It does not know what the values mean.
"""

from __future__ import annotations

from typing import Any

_HEADERS, _NAME, _VALUE, _URL, _DATA_URL, _PLACE = 100, 200, 4_000, 8_192, 200, 300


def parse_text(value: Any, limit: int) -> str:
    return value[:limit] if type(value) is str else ""


def parse_number(value: Any) -> float:
    return float(value) if type(value) in (int, float) else 0.0


def parse_int(value: Any) -> int:
    return int(value) if type(value) is int or (type(value) is float and abs(value) < 1e15) else 0


def parse_url(value: Any) -> str:
    """A bounded URL; a data: URL is cut early."""
    url = parse_text(value, _URL)
    return f"{url[:_DATA_URL]}…" if url[:5].lower() == "data:" and len(url) > _DATA_URL else url


def parse_headers(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        return {}
    return {str(k)[:_NAME]: str(v)[:_VALUE] for k, v in list(value.items())[:_HEADERS]}


def parse_object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def parse_objects(value: Any) -> list[dict[str, Any]]:
    """The objects of a list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def headers_size(given: dict[str, str]) -> int:
    """Approximate size in bytes."""
    return sum(len(name) + len(value) + 100 for name, value in given.items())


def parse_initiator(value: Any) -> str:
    """What caused a request: `script https://site/app.js:12`, or only the kind."""
    info = parse_object(value)
    kind, url, line = parse_text(info.get("type"), 20), info.get("url"), info.get("lineNumber")
    if type(url) is not str:
        frames = parse_objects(parse_object(info.get("stack")).get("callFrames"))
        url, line = (frames[0].get("url"), frames[0].get("lineNumber")) if frames else (None, None)
    if type(url) is not str or not url:
        return kind
    number = f":{parse_int(line) + 1}" if type(line) in (int, float) else ""
    return f"{kind} {parse_url(url)[:_PLACE]}{number}"
