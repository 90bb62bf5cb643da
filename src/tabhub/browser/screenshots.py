"""Taking one picture of a tab, also of one nobody looks at, and reading what the browser gives.

Owns the order of steps around a capture, and that the page is left as it was. What is to be in the picture is the
screenshot tool's business.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

import msgspec

from tabhub.browser.driver.frames import Frame, main_frame
from tabhub.browser.driver.page import Page
from tabhub.browser.elements.marks import Mark
from tabhub.browser.tab_overrides import Command, TabOverrides
from tabhub.errors import CommandFailed, TabhubError

_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="
_DRAWING: WeakValueDictionary[tuple[str, int], asyncio.Lock] = WeakValueDictionary()
_TRIES = 4
_LATE = 20
_PAUSE = 0.05
_STUCK = 0.2
"""Seconds after which a capture may be one that waits for a change of the page."""
_METRICS = "Emulation.setDeviceMetricsOverride"


@dataclass(frozen=True, slots=True)
class Area:
    """A part of the page, in CSS pixels."""

    x: float
    y: float
    width: float
    height: float

    def meets(self, mark: Mark) -> bool:
        """Whether something of a mark is in here; both from the beginning of the viewport."""
        across = mark.x < self.x + self.width and self.x < mark.x + mark.width
        return across and mark.y < self.y + self.height and self.y < mark.y + mark.height


class _Shot(msgspec.Struct):
    data: msgspec.Raw


_SHOT = msgspec.json.Decoder(_Shot)


async def capture(
    page: Page, held: TabOverrides, params: dict[str, Any], marks: list[Mark], whole: Area | None
) -> bytes:
    """One picture at a time of a tab, as base64; `whole` is, from the view on, the page that is to be drawn beyond it.

    A tab in the background draws nothing, and a capture waits for something to be drawn; while a screencast runs, it
    is. The cast is as small as can be, and its frames are not asked for.
    """
    lock = _DRAWING.setdefault((page.link.browser_id, page.tab.chrome_id), asyncio.Lock())
    async with lock:
        page.cdp_nowait("Page.startScreencast", {"format": "jpeg", "quality": 1, "maxWidth": 16, "maxHeight": 16})
        stretch = whole is not None and page.has_remote_frames
        frame: Frame | None = None
        scrolled: Any = {}
        undo: list[Command] = []
        try:
            if marks or stretch:
                frame = await main_frame(page)
                scrolled = await frame.evaluate("scroll_position", {})
            if whole is not None and stretch:
                stretched, undo = _stretching(page, held, whole)
                await page.cdp(*stretched)
            bare = None
            if frame is not None and marks:
                bare = await _shot(page, params)
                drawn = [mark.as_dict() for mark in marks]
                await frame.evaluate("marks_paint", {"marks": drawn, "scrolled": scrolled})
            answer = await _settled(page, params, bare)
        finally:
            page.cdp_nowait("Page.stopScreencast")
            for method, given in undo:
                await page.cdp(method, given)
            if frame is not None:
                await frame.evaluate("marks_paint", {"marks": [], "scrolled": scrolled if undo else None})
    return _picture(answer)


def _stretching(page: Page, held: TabOverrides, whole: Area) -> tuple[Command, list[Command]]:
    """What makes the view as large as the page, and what undoes it: frames of other sites draw only what is in view."""
    emulated = [command for command in held.applied_commands(page, "device") if command[0] == _METRICS]
    bare = {"deviceScaleFactor": 0, "mobile": False, "dontSetVisibleSize": True}
    size = {"width": round(whole.width), "height": round(whole.height)}
    stretched = (_METRICS, {**(emulated[0][1] if emulated else bare), **size})
    return stretched, emulated or [("Emulation.clearDeviceMetricsOverride", {})]


async def _settled(page: Page, params: dict[str, Any], bare: bytes | None) -> bytes:
    """The picture; with frames of other sites in a tab that nobody looks at, once it stays the same.

    A capture waits for the page itself, not for such frames, which come into it when they have drawn. On a busy machine
    it may show what was drawn before: `bare` is what the page looks like without the marks that are to be seen.
    """
    picture = await _shot(page, params)
    for _ in range(_LATE if picture == bare else 0):
        await asyncio.sleep(_PAUSE)
        picture = await _shot(page, params)
        if picture != bare:
            break
    for _ in range(_TRIES if page.has_remote_frames and not page.tab.active else 0):
        before, picture = picture, await _shot(page, params)
        if picture == before:
            break
    return picture


async def _shot(page: Page, params: dict[str, Any]) -> bytes:
    try:
        answer: bytes = await _nudged(page, page.cdp("Page.captureScreenshot", params, raw=True))
    except CommandFailed as error:
        if "result is larger" not in error.message:
            raise
        raise CommandFailed(
            f"The picture is too large: {error.message.partition('. ')[0].lower()}.",
            hint="Use format jpeg or webp, a smaller scale, or take one element.",
        ) from None
    return answer


async def _nudged(page: Page, taking: Coroutine[Any, Any, bytes]) -> bytes:
    """What a capture gives; one that is late waits, in a tab nobody looks at, for the next change in what it shows."""
    asked = asyncio.create_task(taking)
    nudging: asyncio.Task[None] | None = None
    try:
        if not (await asyncio.wait((asked,), timeout=_STUCK))[0]:
            nudging = asyncio.create_task(_nudge(page))
        return await asked
    finally:
        asked.cancel()
        if nudging is not None:
            nudging.cancel()
            await asyncio.wait((nudging,))


async def _nudge(page: Page) -> None:
    """Change what nobody sees until that is enough; a page that does not take it, or goes, changes by itself."""
    with suppress(TabhubError):  # what became of the tab or the link, the capture itself tells
        frame = await main_frame(page)
        try:
            while True:
                await frame.evaluate("force_paint", {"more": True})
                await asyncio.sleep(_PAUSE)
        finally:
            await frame.evaluate("force_paint", {"more": False})


def _picture(answer: bytes) -> bytes:
    """The base64 of the picture, checked without decoding it."""
    try:
        text = bytes(_SHOT.decode(answer).data)
    except msgspec.DecodeError as error:
        raise CommandFailed(f"invalid response: the browser gave no picture: {error}") from None
    encoded = text[1:-1]
    if text[:1] != b'"' or not encoded or encoded.translate(None, _BASE64):
        raise CommandFailed(
            "invalid response: the browser gave no picture.", hint="Try again; reload the tab if it stays."
        )
    try:
        base64.b64decode(encoded[-4:], validate=True)
    except binascii.Error:
        raise CommandFailed("invalid response: the picture is cut off.") from None
    return encoded
