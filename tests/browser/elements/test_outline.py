"""Lines of a snapshot: put together."""

from __future__ import annotations

import pytest

from tabhub.browser.elements import outline


@pytest.mark.parametrize(
    ("line", "ref"),
    [
        ('button "Send" [ref=e12]', "e12"),
        ('  textbox [ref=f2e7 required] = "x"', "f2e7"),
        ('button "a [ref=e1]"', None),
        (r'button "a \" [ref=e1] \"" [ref=e2 focused]', "e2"),
        ('"text [ref=e3]"', None),
        ('heading "x" [level=1]', None),
        ("link [ref=e4] /a?[ref=e5]", "e4"),
        ("main", None),
    ],
)
def test_a_ref_cannot_be_forged_by_the_page(line: str, ref: str | None) -> None:
    assert outline.ref_of(line) == ref


def test_lines_of_a_frame_are_inserted_below_its_element() -> None:
    lines = ["main", ' iframe "A" [ref=e1]', "end"]
    assert outline.insert_frames(lines, {1: ["one", " two"]}) == [
        "main",
        ' iframe "A" [ref=e1]',
        "  one",
        "   two",
        "end",
    ]
