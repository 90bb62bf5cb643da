"""Natural values for date and time fields."""

from __future__ import annotations

import pytest

from tabhub.browser.elements.field_formats import canonical

UNDERSTOOD = {
    ("date", "2026-03-14"): "2026/3/14; March 14, 2026; 14 March 2026; Sat, 14th of Mar 2026; 14.3.2026; 3/14/2026",
    ("date", "2026-05-05"): "05/05/2026",
    ("time", "14:30"): "2:30 pm; 14.30; 14:30; 2:30PM; 2:30 p.m.",
    ("time", "00:05"): "12:05am; 0:05",
    ("time", "09:00"): "9 am; 9:00",
    ("datetime-local", "2026-03-14T14:30"): (
        "2026-03-14 14:30; 2026-03-14T14:30; March 14, 2026 2:30 pm; 14.03.2026, 14:30; 14 Mar 2026 at 2:30 pm"
    ),
    ("month", "2026-03"): "March 2026; 2026-3; 03/2026; 2026/03",
    ("week", "2026-W07"): "2026-W7; week 7 2026; W07 2026; week 7 of 2026",
}
NOT_UNDERSTOOD = {
    "date": ("3/4/2026", "2026-02-30", "soon", ""),
    "time": ("25:00", "13 pm", "7"),
    "month": ("2026-13",),
    "text": ("March 14, 2026",),
}


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [(kind, text, value) for (kind, value), texts in UNDERSTOOD.items() for text in texts.split("; ")],
)
def test_a_natural_value_is_written_in_the_format_of_the_field(kind: str, text: str, value: str) -> None:
    assert canonical(kind, text) == value


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, texts in NOT_UNDERSTOOD.items() for text in texts])
def test_a_value_that_is_not_understood_stays_as_it_is(kind: str, text: str) -> None:
    assert canonical(kind, text) == text
