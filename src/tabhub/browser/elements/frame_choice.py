"""Choosing the frame that a script runs in, and the page's own world of that frame.

Owns how an agent names a frame. The script and its value belong to browser_execute_script.
"""

from __future__ import annotations

from tabhub.browser.driver.frames import Frame, list_frames
from tabhub.browser.driver.page import Page
from tabhub.browser.elements.element import REF, find_element
from tabhub.errors import CommandFailed

FRAME = {"type": ["integer", "string"], "description": "Number, URL part, name or ref."}
_MAX_LISTED = 12
_GROUP = "tabhub-script"


async def script_target(page: Page, wanted: int | str) -> tuple[str | None, str | None]:
    """The session to run a script in, and an object of the frame's world if the session has several frames."""
    frame = await _choose(page, wanted)
    await frame.require_permitted()
    session = frame.session_id
    if frame.parent is None or frame.parent.session_id != session:
        return session, None
    # A node resolves in the main world of its document, where the page's scripts run.
    owner = await page.cdp("DOM.getFrameOwner", {"frameId": frame.frame_id}, session)
    node = await page.cdp("DOM.describeNode", {"backendNodeId": owner["backendNodeId"], "pierce": True}, session)
    inner = node["node"].get("contentDocument")
    if not isinstance(inner, dict):
        raise CommandFailed(f"The frame {frame.url[:200]} has no document.", hint="It may be loading; call again.")
    wish = {"backendNodeId": inner["backendNodeId"], "objectGroup": _GROUP}
    resolved = await page.cdp("DOM.resolveNode", wish, session)
    return session, str(resolved["object"]["objectId"])


async def _choose(page: Page, wanted: int | str) -> Frame:
    frames = await list_frames(page)
    if isinstance(wanted, int):
        named = frames[wanted : wanted + 1] if wanted >= 0 else []
    else:
        named = [frame for frame in frames if wanted in (frame.name, frame.frame_id, frame.url)]
        if not named and REF.fullmatch(wanted):
            return await _by_ref(page, wanted, frames)
        named = named or [frame for frame in frames if wanted in frame.url]
    if len(named) == 1:
        return named[0]
    label = f"number {wanted}" if isinstance(wanted, int) else repr(wanted[:200])
    if not named:
        raise CommandFailed(f"No frame {label} in tab {page.tab_id}.", hint=f"Frames there: {_list(frames, frames)}.")
    hint = f"Choose one by its number: {_list(named, frames)}."
    raise CommandFailed(f"{len(named)} frames match {label}.", hint=hint)


async def _by_ref(page: Page, ref: str, frames: list[Frame]) -> Frame:
    """The frame of a frame element; for any other element, the frame it is in."""
    element = await find_element(page, {"ref": ref})
    async with element.object_id() as handle:
        described = await page.cdp("DOM.describeNode", {"objectId": handle}, element.frame.session_id)
    inner = described["node"].get("frameId")
    return next((frame for frame in frames if frame.frame_id == inner), element.frame)


def _list(some: list[Frame], frames: list[Frame]) -> str:
    """Some of the frames, each with its number, name and URL."""
    shown = ", ".join(
        f"{frames.index(frame)} {frame.name + ' ' if frame.name else ''}({frame.url[:100]})"
        for frame in some[:_MAX_LISTED]
    )
    return shown + (f" and {len(some) - _MAX_LISTED} more" if len(some) > _MAX_LISTED else "")
