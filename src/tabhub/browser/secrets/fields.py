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

ReadFields = Callable[[Page, bool], Awaitable[bool]]


async def read_secret_fields(page: Page, frames: bool) -> bool:
    """Remember the values of the secret fields of a page, or of all its frames. TabFailed if the tab is gone.

    Returns whether they may have other values later: not if there are none.
    """
    reader = Page(page.browsers, page.watch, page.ref, view=page.view)  # it does nothing for the call
    try:
        async with asyncio.timeout(page.link.limits.frame_answer):
            has_fields, has_frames = await _read(await main_frame(reader))
            if frames and (has_frames or reader.has_remote_frames):
                others = (await list_frames(reader))[1:]
                await asyncio.gather(*map(_read, others), return_exceptions=True)
                return True
            return has_fields
    except TabFailed:
        raise
    except (TabhubError, TimeoutError):  # a dialog blocks it, it navigates or hangs, or scripts cannot run there
        return True


async def _read(frame: Frame) -> tuple[bool, bool]:
    """Whether the frame has secret fields, and frames."""
    found = parse_object(await frame.run_code("return kit.secretsRead();"))
    values = found.get("values")
    if isinstance(values, list):
        frame.page.state.fields.update(value for value in values if isinstance(value, str))
    return found.get("go") is True, found.get("frames") is True
