"""How a page reacts to an action after its answer: short timers, frames, changes of the document, requests.

Owns waiting for that before the next call uses the tab. The page's side is `js/kit/reactions.js`.
"""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections.abc import Sequence
from typing import Any

from tabhub.browser.driver.frames import FollowUp, Frame, main_frame
from tabhub.browser.driver.page import Page, ignore_failure, send_cdp
from tabhub.browser.driver.tab_watch import TabState
from tabhub.browser.elements.pointer import Event, send_events
from tabhub.browser.pending_requests import PendingRequests

_WATCH = "kit.watchReactions(); return {go: true};"
_SETTLED = "return kit.settled();"


async def send_watched(page: Page, events: Sequence[Event], frame: Frame | None = None) -> None:
    """Send input that names no element, and watch how the document, usually the main one, reacts to it."""
    await send_after(frame or await main_frame(page), _WATCH, events, "return null;")


async def send_and_settle(page: Page, events: Sequence[Event], frame: Frame | None = None) -> None:
    """Send input and wait until the document has reacted, as in the middle of a drag."""
    await send_after(frame or await main_frame(page), _WATCH, events, _SETTLED)


async def send_after(frame: Frame, body: str, events: Sequence[Event], probe: str) -> tuple[Any, Any]:
    """Run a script, send input if its value has `go: true`, and run the probe: the values of both."""
    page, follow = frame.page, FollowUp(events, probe)
    value = await frame.run_code(body, follow)
    if not isinstance(value, dict) or value.get("go") is not True:
        return value, None
    page.state.worlds.acted.add((frame.session_id, frame.frame_id))
    if follow.error is not None:
        await page.raise_failure(follow.error)
    if not follow.sent:  # by an older extension
        await send_events(page, events, frame.session_id)
        return value, await frame.run_code(probe)
    return value, follow.value


class Reaction:
    """The reaction to one action, observed from its end on, without delaying its answer."""

    def __init__(self, state: TabState, limit: float) -> None:
        self._state = state
        self._loop = state.key[0].loop
        self._until = self._loop.time() + limit
        self._frames, state.worlds.acted = state.worlds.acted, set()
        self._scripts = self._ask()

    def _ask(self) -> list[Future[Any]]:
        """Ask the frames that were acted in; they reply once they have settled."""
        asked = []
        for key in self._frames:
            world = self._state.worlds.by_frame.get(key)
            sent = world and send_cdp(self._state.key, "Runtime.evaluate", world.script(_SETTLED), key[0])
            if sent:
                sent.add_done_callback(ignore_failure)
                asked.append(sent)
        return asked

    @property
    def _left(self) -> float:
        return 0.0 if self._state.dialog is not None else max(0.0, self._until - self._loop.time())

    async def settled(self, requests: PendingRequests) -> None:
        """Wait until the page has settled, or too long."""
        await self._replied()
        while self._left and requests.calling:
            await requests.wait_for_event(self._left)
        if self._left and requests.called:  # the answer may have started timers, too
            self._scripts = self._ask()
            await self._replied()

    async def _replied(self) -> None:
        pending = [script for script in self._scripts if not script.done()]
        if pending and self._left:
            await asyncio.wait(pending, timeout=self._left)
