"""The interactive elements shown in a screenshot: boxes with refs, from all frames of a tab."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass

from tabhub.browser.driver.frames import Frame, list_frames
from tabhub.browser.driver.page import Page
from tabhub.browser.elements.element import Area
from tabhub.errors import CommandFailed

_MAX_MARKS = 300


@dataclass(frozen=True, slots=True)
class Mark(Area):
    """An interactive element and its position in the tab's viewport."""

    ref: str
    label: str


async def collect_marks(page: Page, *, whole: bool) -> list[Mark]:
    """The marks of the viewport, or of the whole page."""
    main, *others = await list_frames(page)
    own, *inner = await asyncio.gather(*(_of_frame(frame, whole) for frame in (main, *others)))
    framed = [mark for marks in inner for mark in marks]
    if framed:
        # A frame does not know what the page shows above it.
        free = await main.evaluate("uncovered_marks", {"marks": list(map(asdict, framed))})
        framed = [mark for mark, is_free in zip(framed, free, strict=True) if is_free]
    return [*own, *framed][:_MAX_MARKS]


async def _of_frame(frame: Frame, whole: bool) -> list[Mark]:
    try:
        # Only the visible part of a frame can be in the picture.
        found = await frame.evaluate("marks", {"whole": whole and frame.parent is None, "most": _MAX_MARKS})
        left, top = await frame.offset() if found else (0.0, 0.0)
    except CommandFailed:
        if frame.parent is None:
            raise
        return []
    return [Mark(**{**mark, "x": mark["x"] + left, "y": mark["y"] + top}) for mark in found]
