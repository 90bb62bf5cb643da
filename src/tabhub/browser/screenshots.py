"""Taking a screenshot of a tab, also in the background, and the marks of interactive elements in it.

Owns the order of steps around a capture, and restoring the page afterwards. What to capture is up to the screenshot
tool.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import msgspec
import orjson

from tabhub.browser.driver.cdp_values import parse_object
from tabhub.browser.driver.frames import Frame, list_frames, main_frame
from tabhub.browser.driver.listeners import learn_listeners
from tabhub.browser.driver.page import Page
from tabhub.browser.elements.element import Area
from tabhub.browser.elements.hidden_frames import covered
from tabhub.browser.secrets.cover import run_if_nothing_to_cover, secrets_covered
from tabhub.browser.tab_overrides import Command, TabOverrides
from tabhub.errors import CommandFailed, TabhubError

T = TypeVar("T")
_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="
_DRAWING: WeakValueDictionary[tuple[str, int], asyncio.Lock] = WeakValueDictionary()
_TRIES = 4
_LATE = 20
_PAUSE = 0.05
_STUCK = 0.2
"""Seconds after which a capture may be waiting for the page to paint."""
_METRICS = "Emulation.setDeviceMetricsOverride"
_MAX_MARKS = 300


@dataclass(frozen=True, slots=True)
class Mark(Area):
    """An interactive element and its position in the tab's viewport."""

    ref: str
    label: str


async def collect_marks(page: Page, *, whole: bool) -> list[Mark]:
    """The marks of the viewport, or of the whole page."""
    main, *others = await list_frames(page)
    own, *inner = await asyncio.gather(*(_frame_marks(frame, whole) for frame in (main, *others)))
    framed = [mark for marks in inner for mark in marks]
    if framed:
        # A frame does not know what the page shows above it.
        free = await main.evaluate("uncovered_marks", {"marks": list(map(asdict, framed))})
        framed = [mark for mark, is_free in zip(framed, free, strict=True) if is_free]
    return [*own, *framed][:_MAX_MARKS]


async def _frame_marks(frame: Frame, whole: bool) -> list[Mark]:
    try:
        await learn_listeners(frame)
        # Only the visible part of a frame can be in the picture.
        found = await frame.evaluate("marks", {"whole": whole and frame.parent is None, "most": _MAX_MARKS})
        left, top = await frame.offset() if found else (0.0, 0.0)
    except CommandFailed:
        if frame.parent is None:
            raise
        return []
    return [Mark(**{**mark, "x": mark["x"] + left, "y": mark["y"] + top}) for mark in found]


class _Shot(msgspec.Struct):
    data: msgspec.Raw


_SHOT = msgspec.json.Decoder(_Shot)


async def capture(
    page: Page, held: TabOverrides, params: dict[str, Any], marks: list[Mark], whole: Area | None
) -> bytes:
    """A screenshot as base64, one at a time per tab; `whole` is the full page, relative to the viewport.

    The tab is awake: otherwise a background tab paints nothing, and a capture waits for a paint.
    """
    lock = _DRAWING.setdefault((page.link.browser_id, page.tab.chrome_id), asyncio.Lock())
    async with lock, covered(page):
        stretch = whole is not None and page.has_remote_frames
        frame: Frame | None = None
        scrolled: Any = {}
        undo: list[Command] = []
        try:
            if marks or stretch:
                frame = await main_frame(page)
                scrolled = await frame.evaluate("scroll_position", {})
            if whole is not None and stretch:
                stretched, undo = _enlarge_viewport(page, held, whole)
                await page.cdp(*stretched)
            bare = None
            if frame is not None and marks:
                bare = await _capture_once(page, params)
                await frame.evaluate("marks_paint", {"marks": list(map(asdict, marks)), "scrolled": scrolled})
            # Over a relay, the extension itself looks for captures, and covers what they must not show.
            simple = frame is None and page.link.local and not page.view.active and not page.has_remote_frames
            if simple and (image := await _capture_uncovered(page, params)) is not None:
                return image
            async with secrets_covered(page):
                answer = await _settled_capture(page, params, bare)
        finally:
            for method, given in undo:
                await page.cdp(method, given)
            if frame is not None:
                await frame.evaluate("marks_paint", {"marks": [], "scrolled": scrolled if undo else None})
    return answer


def _enlarge_viewport(page: Page, held: TabOverrides, whole: Area) -> tuple[Command, list[Command]]:
    """Commands that make the viewport as large as the page, and undo it: cross-site frames paint only inside it."""
    device = held.active(page).get("device")
    emulated = [command for command in device.applied if command[0] == _METRICS] if device is not None else []
    bare = {"deviceScaleFactor": 0, "mobile": False, "dontSetVisibleSize": True}
    size = {"width": round(whole.width), "height": round(whole.height)}
    stretched = (_METRICS, {**(emulated[0][1] if emulated else bare), **size})
    return stretched, emulated or [("Emulation.clearDeviceMetricsOverride", {})]


async def _settled_capture(page: Page, params: dict[str, Any], bare: bytes | None) -> bytes:
    """The screenshot; of a background tab with cross-site frames, once two in a row are the same.

    A capture waits for the page itself to paint, not for such frames. On a busy machine it may show an earlier paint:
    `bare` is the page without the marks that must be visible.
    """
    image = await _capture_once(page, params)
    for _ in range(_LATE if image == bare else 0):
        await asyncio.sleep(_PAUSE)
        image = await _capture_once(page, params)
        if image != bare:
            break
    for _ in range(_TRIES if page.has_remote_frames and not page.tab.active else 0):
        before, image = image, await _capture_once(page, params)
        if image == before:
            break
    return image


async def _capture_once(page: Page, params: dict[str, Any]) -> bytes:
    with _size_explained():
        answer: bytes = await _with_forced_paint(page, page.cdp("Page.captureScreenshot", params, raw=True))
    try:
        return _checked_image(bytes(_SHOT.decode(answer).data))
    except msgspec.DecodeError as error:
        raise CommandFailed(f"invalid response: the browser returned no image: {error}") from None


async def _capture_uncovered(page: Page, params: dict[str, Any]) -> bytes | None:
    """The screenshot of a page in which nothing has to be covered; None if something has."""
    with _size_explained():
        taking = run_if_nothing_to_cover(page, ("Page.captureScreenshot", params))
        answer = await _with_forced_paint(page, taking)
    return None if answer is None else _checked_image(orjson.dumps(parse_object(answer).get("data")))


@contextmanager
def _size_explained() -> Iterator[None]:
    try:
        yield
    except CommandFailed as error:
        if "result is larger" not in error.message:
            raise
        raise CommandFailed(
            f"The screenshot is too large: {error.message.partition('. ')[0].lower()}.",
            hint="Use format jpeg or webp, a smaller scale, or take one element.",
        ) from None


async def _with_forced_paint(page: Page, taking: Coroutine[Any, Any, T]) -> T:
    """The result of a capture; a late one waits for the next paint of a background tab, which is then forced."""
    asked = asyncio.create_task(taking)
    forcing: asyncio.Task[None] | None = None
    try:
        if not (await asyncio.wait((asked,), timeout=_STUCK))[0]:
            forcing = asyncio.create_task(_force_paint(page))
        return await asked
    finally:
        asked.cancel()
        if forcing is not None:
            forcing.cancel()
            await asyncio.wait((forcing,))


async def _force_paint(page: Page) -> None:
    with suppress(TabhubError):  # the capture itself reports a lost tab or link
        frame = await main_frame(page)
        try:
            while True:
                await frame.evaluate("force_paint", {"more": True})
                await asyncio.sleep(_PAUSE)
        finally:
            await frame.evaluate("force_paint", {"more": False})


def _checked_image(text: bytes) -> bytes:
    """The base64 of the image, from its JSON, checked without decoding it."""
    encoded = text[1:-1]
    if text[:1] != b'"' or not encoded or encoded.translate(None, _BASE64):
        raise CommandFailed("invalid response: the browser returned no image.", hint="Try again; then reload the tab.")
    try:
        base64.b64decode(encoded[-4:], validate=True)
    except binascii.Error:
        raise CommandFailed("invalid response: the image is truncated.") from None
    return encoded
