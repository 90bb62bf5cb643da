"""Values as people write them, in the formats of the browser's date, time and number fields. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date, time

FORMATS: Mapping[str, str] = {
    "date": "YYYY-MM-DD",
    "time": "HH:MM, 24 hours",
    "datetime-local": "YYYY-MM-DDTHH:MM",
    "month": "YYYY-MM",
    "week": "YYYY-Www, such as 2026-W07",
}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = rf"(?P<name>{'|'.join(_MONTHS)})[a-z]*\.?"
_WEEKDAY = r"(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*\.?,?\s+)?"
_DATES = tuple(
    re.compile(_WEEKDAY + pattern, re.IGNORECASE)
    for pattern in (
        r"(?P<year>\d{4})[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})",
        rf"(?P<day>\d{{1,2}})(?:st|nd|rd|th|\.)?\s+(?:of\s+)?{_MONTH},?\s+(?P<year>\d{{4}})",
        rf"{_MONTH}\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?,?\s+(?P<year>\d{{4}})",
        r"(?P<day>\d{1,2})\.\s?(?P<month>\d{1,2})\.\s?(?P<year>\d{4})",
    )
)
_SLASHES = re.compile(r"(\d{1,2})[/-](\d{1,2})[/-](\d{4})")
"""Day and month in either order: understood where only one order is a date."""
_TIME = re.compile(r"(\d{1,2})(?:[:.h](\d{2})(?::(\d{2})(?:\.\d+)?)?)?\s*([ap])?\.?(?:m\.?)?", re.IGNORECASE)
_MONTHS_OF_YEARS = (
    re.compile(r"(?P<year>\d{4})[-/](?P<month>\d{1,2})"),
    re.compile(r"(?P<month>\d{1,2})[-/](?P<year>\d{4})"),
    re.compile(rf"{_MONTH},?\s+(?P<year>\d{{4}})", re.IGNORECASE),
)
_WEEKS = (
    re.compile(r"(?P<year>\d{4})-?\s?w(?P<week>\d{1,2})", re.IGNORECASE),
    re.compile(r"(?:calendar\s+)?(?:week|w)\s*(?P<week>\d{1,2})(?:,|\s+of)?\s+(?P<year>\d{4})", re.IGNORECASE),
)


def canonical(kind: str, text: str) -> str:
    """A value in the format of a field of this type; the text itself where it is not understood."""
    read = _READERS.get(kind)
    written = read(" ".join(text.split())) if read and text.strip() else None
    return text if written is None else written


def read_date(text: str) -> date | None:
    for pattern in _DATES:
        if found := pattern.fullmatch(text):
            return _date(int(found["year"]), _month(found), int(found["day"]))
    if found := _SLASHES.fullmatch(text):
        one, other, year = map(int, found.groups())
        ways = {made for made in (_date(year, one, other), _date(year, other, one)) if made}
        return ways.pop() if len(ways) == 1 else None
    return None


def read_time(text: str) -> time | None:
    found = _TIME.fullmatch(text)
    if found is None or not (found[2] or found[4]):
        return None
    hour, minute, second = int(found[1]), int(found[2] or 0), int(found[3] or 0)
    if found[4]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if found[4].lower() == "p" else 0)
    return time(hour, minute, second) if hour < 24 and minute < 60 and second < 60 else None


def _write_date(text: str) -> str | None:
    made = read_date(text)
    return made.isoformat() if made else None


def _write_time(text: str) -> str | None:
    made = read_time(text)
    return made.isoformat("seconds" if made.second else "minutes") if made else None


def _write_both(text: str) -> str | None:
    for found in re.finditer(r"[T ]|, ", text):
        day, clock = (
            _write_date(text[: found.start()].rstrip(",")),
            _write_time(text[found.end() :].removeprefix("at ")),
        )
        if day and clock:
            return f"{day}T{clock}"
    return None


def _write_month(text: str) -> str | None:
    for pattern in _MONTHS_OF_YEARS:
        if found := pattern.fullmatch(text):
            made = _date(int(found["year"]), _month(found), 1)
            return f"{made:%Y-%m}" if made else None
    return None


def _write_week(text: str) -> str | None:
    for pattern in _WEEKS:
        if found := pattern.fullmatch(text):
            return f"{found['year']}-W{int(found['week']):02}"
    return None


_READERS: Mapping[str, Callable[[str], str | None]] = {
    "date": _write_date,
    "time": _write_time,
    "datetime-local": _write_both,
    "month": _write_month,
    "week": _write_week,
}


def _month(found: re.Match[str]) -> int:
    parts = found.groupdict()
    return int(parts["month"]) if parts.get("month") else _MONTHS.index(parts["name"].lower()) + 1


def _date(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None
