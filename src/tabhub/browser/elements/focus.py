"""The element that has the focus, in whichever frame it is."""

from __future__ import annotations

import asyncio
from typing import Any

from tabhub.browser.driver.frames import Frame, list_frames, main_frame
from tabhub.browser.driver.page import Page
from tabhub.browser.elements.hidden_frames import require_focus_outside
from tabhub.errors import CommandFailed, ElementChanged

_ACTIVE = (
    "let active = document.activeElement;\n"
    "while (active?.shadowRoot?.activeElement) active = active.shadowRoot.activeElement;\n"
    "const page = active === document.body || active === document.documentElement;\n"
    "if (!active || (page && !active.isContentEditable)) return null;\n"
    "return { ref: kit.ref(active), frame: active.localName === 'iframe' || active.localName === 'frame' };"
)


async def focused_target(page: Page) -> dict[str, Any]:
    """The target arguments that name the focused element."""
    await require_focus_outside(page)
    frame: Frame | None = await main_frame(page)
    while frame is not None:
        active = await frame.run_code(_ACTIVE)
        if not isinstance(active, dict):
            break
        if not active.get("frame"):
            return {"ref": str(active["ref"])}
        frame = await _frame_in(page, frame, str(active["ref"]))
    raise CommandFailed(
        f"Nothing in tab {page.tab_id} has the focus. Nothing was typed.",
        hint="Name the field by a ref (from browser_snapshot), a selector or its name as `label`, or click it first.",
    )


async def require_shown_focus(page: Page) -> None:
    """Raise ElementChanged if the person was shown which element has the focus, and it is another one now."""
    shown = page.shown_element({})
    if shown is not None and (await focused_target(page)).get("ref") != shown.ref:
        raise ElementChanged(shown.text, "another element has the focus now")


async def _frame_in(page: Page, outer: Frame, ref: str) -> Frame | None:
    inner = [one for one in (await list_frames(page))[1:] if one.parent and one.parent.frame_id == outer.frame_id]
    owners = await asyncio.gather(*(one.owner_ref() for one in inner), return_exceptions=True)
    return next((one for one, owner in zip(inner, owners, strict=True) if owner == ref), None)
