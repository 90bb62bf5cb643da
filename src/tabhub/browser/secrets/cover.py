"""Covering the secrets that a page shows while a picture of it is taken.

Owns which frames are covered and that they are uncovered again. Which fields are secret is up to
`js/kit/secret_fields.js`; passwords that the browser itself shows as dots need no cover.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tabhub.browser.driver.cdp_values import parse_object
from tabhub.browser.driver.frames import FollowUp, Frame, list_frames, main_frame
from tabhub.browser.driver.page import Page
from tabhub.browser.driver.worlds import call_source
from tabhub.errors import CommandFailed


async def run_if_nothing_to_cover(page: Page, command: tuple[str, dict[str, Any]]) -> Any:
    """The result of a command that is sent with the check whether its tab has secret fields or frames, which saves a
    message; None if it has, and the command was not run."""
    follow = FollowUp([command], None)
    await (await main_frame(page)).run_code(call_source("cover_secrets", {"cover": True}), follow)
    if follow.error is not None:
        await page.raise_failure(follow.error)
    return follow.value


@asynccontextmanager
async def secrets_covered(page: Page) -> AsyncIterator[None]:
    """Show the text in all secret fields of the tab as dots."""
    main = await main_frame(page)
    found = parse_object(await main.evaluate("cover_secrets", {"cover": True}))
    covered = [main] if found.get("covered") else []
    try:
        if found.get("frames") or page.has_remote_frames:
            frames = (await list_frames(page))[1:]
            done = await asyncio.gather(*map(_cover, frames))
            covered += [frame for frame, is_covered in zip(frames, done, strict=True) if is_covered]
        yield
    finally:
        await asyncio.gather(*map(_uncover, covered))


async def _cover(frame: Frame) -> bool:
    try:
        async with asyncio.timeout(frame.page.link.limits.frame_answer):
            found = await frame.evaluate("cover_secrets", {"cover": True})
    except (CommandFailed, TimeoutError):  # it was removed meanwhile, belongs to the browser itself, or hangs
        return False
    return bool(parse_object(found).get("covered"))


async def _uncover(frame: Frame) -> None:
    try:
        await frame.evaluate("cover_secrets", {"cover": False})
    except CommandFailed:  # the page left; a new document has no covers
        return
