"""What the secret fields of a tab hold, read for masking it in results that may repeat it.

Owns which frames are asked, and that no call fails or waits long because of it. Which fields are secret is up to
`js/kit/secret_fields.js`; the values stay in the hub, in the state of the tab.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from tabhub.browser.driver.cdp_values import parse_object
from tabhub.browser.driver.frames import Frame, list_frames, main_frame
from tabhub.browser.driver.page import Page
from tabhub.errors import TabFailed, TabhubError

ReadFields = Callable[[Page, bool], Awaitable[None]]


async def read_secret_fields(page: Page, frames: bool) -> None:
    """Remember the values of the secret fields of a page, or of all its frames. TabFailed if the tab is gone."""
    reader = Page(page.browsers, page.watch, page.ref, view=page.view)  # it does nothing for the call
    try:
        async with asyncio.timeout(page.link.limits.frame_answer):
            main = await main_frame(reader)
            has_frames = await _read(main)
            if frames and (has_frames or reader.has_remote_frames):
                others = (await list_frames(reader))[1:]
                await asyncio.gather(*map(_read, others), return_exceptions=True)
    except TabFailed:
        raise
    except (TabhubError, TimeoutError):  # a dialog blocks it, it navigates or hangs, or scripts cannot run there
        return


async def _read(frame: Frame) -> bool:
    found = parse_object(await frame.evaluate("field_values", {}))
    values = found.get("values")
    if isinstance(values, list):
        frame.page.state.fields.update(value for value in values if isinstance(value, str))
    return found.get("frames") is True
