"""Tabs whose session is over: closed in the background, also later if their browser is away just now.

Owns what is still to be closed. Which tabs those are is decided by the leases.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from tabhub.core.tab_matching import Mark
from tabhub.errors import CommandFailed, TabhubError, TabNotFound
from tabhub.links.browsers import Browsers, Change

log = logging.getLogger("tabhub.sessions")

_TRIES = 2
"""A page that asks whether to leave it is closed by the second try."""
_TIME = 10.0


class Leftovers:
    """Tabs nobody needs any more."""

    def __init__(self, browsers: Browsers) -> None:
        self._browsers = browsers
        self._waiting: dict[int, Mark] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        browsers.on_change(self._changed)

    def close(self, tabs: Iterable[int]) -> None:
        """Close tabs without waiting for it."""
        for tab_id in tabs:
            task = asyncio.ensure_future(self._close(tab_id))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def closed(self, within: float) -> None:
        """Wait until what is being closed is, but no longer than that."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=within)

    def stop(self) -> None:
        """The hub is going: what is not closed by now stays open."""
        for task in self._tasks:
            task.cancel()

    async def _close(self, tab_id: int) -> None:
        why = ""
        for _ in range(_TRIES):
            tab = self._browsers.book.get(tab_id)
            if tab is None:
                if (away := self._browsers.book.away(tab_id)) is not None:
                    self._waiting[tab_id] = Mark.of(away)
                return
            link = self._browsers.link(tab.browser_id)
            try:
                async with asyncio.timeout(_TIME):
                    await link.request("closeTab", {"tabId": tab.chrome_id})
                self._browsers.forget(link, tab.chrome_id)
                return
            except TabNotFound:
                return
            except CommandFailed as error:
                why = error.message
            except TabhubError:  # the link ended: when it is back, so may be the tab
                self._waiting[tab_id] = Mark.of(tab)
                return
            except TimeoutError:
                why = f"no answer within {_TIME:.0f} s"
        log.warning("tab %d, which an ended session had opened, stays open: %s", tab_id, why)

    def _changed(self, change: Change) -> None:
        if self._waiting and change.kind == "tabs":
            back = [tab for tab in change.tabs.opened if tab.tab_id in self._waiting]
            # After a restart of the browser a tab of the person's may have its id.
            self.close([tab.tab_id for tab in back if self._waiting[tab.tab_id].fits(tab)])
            for tab in (*back, *change.tabs.closed):
                self._waiting.pop(tab.tab_id, None)
