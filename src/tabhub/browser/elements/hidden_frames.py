"""Frames that an agent is kept off, inside a page that it may use.

Owns covering them in pictures, and refusing input that would reach them by position or focus. Tools that look for
elements never see them: `list_frames` leaves them out.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from tabhub.browser.driver.cdp_values import parse_number, parse_object
from tabhub.browser.driver.frames import Frame, list_all_frames
from tabhub.browser.driver.page import Page
from tabhub.browser.elements.element import Area
from tabhub.errors import CommandFailed, PermissionDenied


@dataclass(frozen=True, slots=True)
class _Owner:
    """The element that holds a hidden frame."""

    document: Frame
    ref: str

    async def state(self, cover: bool | None = None) -> dict[str, object]:
        wanted = {"ref": self.ref} if cover is None else {"ref": self.ref, "cover": cover}
        return parse_object(await self.document.evaluate("frame_owner", wanted))

    async def area(self) -> tuple[Area, bool]:
        """Its position in the tab's viewport, and whether it has the focus."""
        place, (left, top) = await asyncio.gather(self.state(), self.document.offset())
        x, y, width, height = (parse_number(place.get(name)) for name in ("x", "y", "width", "height"))
        return Area(left + x, top + y, width, height), place.get("focused") is True


@asynccontextmanager
async def covered(page: Page) -> AsyncIterator[None]:
    """Keep hidden frames out of pictures while the block runs."""
    owners = await _owners(page) if page.view.active else []
    try:
        await asyncio.gather(*(owner.state(cover=True) for owner in owners))
        yield
    finally:
        for owner in owners:
            with suppress(CommandFailed):  # the page has left or removed it meanwhile
                await owner.state(cover=False)


async def require_outside(page: Page, *points: tuple[float, float]) -> None:
    """Raise PermissionDenied if a point of the tab's viewport is inside a hidden frame."""
    for area, _ in await _areas(page):
        for x, y in points:
            if area.x <= x < area.x + area.width and area.y <= y < area.y + area.height:
                raise _denied(f"The point {x:g}, {y:g} is")


async def require_focus_outside(page: Page) -> None:
    """Raise PermissionDenied if keys would go to a hidden frame."""
    if any(focused for _, focused in await _areas(page)):
        raise _denied("The focus is")


async def _areas(page: Page) -> list[tuple[Area, bool]]:
    if not page.view.active or page.dialog is not None:
        return []
    return list(await asyncio.gather(*(owner.area() for owner in await _owners(page))))


async def _owners(page: Page) -> list[_Owner]:
    hidden = (await list_all_frames(page))[1]
    return [_Owner(frame.parent, await frame.owner_ref()) for frame in hidden if frame.parent is not None]


def _denied(what: str) -> PermissionDenied:
    return PermissionDenied(
        f"{what} in a frame of a site that the person keeps agents off; nothing was sent.",
        hint="Use another place of the page.",
    )
