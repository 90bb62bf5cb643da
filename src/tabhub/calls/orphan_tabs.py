"""Tabs of ended sessions: closed in the background, or when their browser reconnects.

Owns which tabs are still to be closed. Leases decide which tabs come here.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from tabhub.core.tab_matching import TabFingerprint
from tabhub.core.tabs import TabChanges
from tabhub.errors import CommandFailed, TabhubError, TabNotFound
from tabhub.links.browsers import Browsers

log = logging.getLogger("tabhub.sessions")

_ATTEMPTS = 2
"""A page that asks for confirmation before it closes is closed by the second attempt."""
_TIMEOUT = 10.0


class OrphanTabs:
    """Closes tabs that no session needs."""

    def __init__(self, browsers: Browsers) -> None:
        self._browsers = browsers
        self.waiting: dict[int, TabFingerprint] = {}
        """Tabs of disconnected browsers that are still to be closed."""
        self._tasks: set[asyncio.Task[None]] = set()

    def close(self, tabs: Iterable[int]) -> None:
        for tab_id in tabs:
            task = asyncio.ensure_future(self._close(tab_id))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def wait_until_closed(self, seconds: float) -> None:
        """Wait until the tabs of ended sessions are closed, up to `seconds`."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)

    def stop(self) -> None:
        """Stop closing; tabs not closed by now stay open."""
        for task in self._tasks:
            task.cancel()

    async def _close(self, tab_id: int) -> None:
        why = ""
        for _ in range(_ATTEMPTS):
            tab = self._browsers.book.get(tab_id)
            if tab is None:
                if (disconnected := self._browsers.book.find_disconnected(tab_id)) is not None:
                    self.waiting[tab_id] = TabFingerprint.of(disconnected)
                return
            link = self._browsers.link(tab.browser_id)
            try:
                async with asyncio.timeout(_TIMEOUT):
                    await link.request("closeTab", {"tabId": tab.chrome_id})
                self._browsers.remove_tab(link, tab.chrome_id)
                return
            except TabNotFound:
                return
            except CommandFailed as error:
                why = error.message
            except TabhubError:  # the link ended; the tab may still be there when it reconnects
                self.waiting[tab_id] = TabFingerprint.of(tab)
                return
            except TimeoutError:
                why = f"no answer within {_TIMEOUT:.0f} s"
        log.warning("tab %d of an ended session could not be closed: %s", tab_id, why)

    def tabs_changed(self, tabs: TabChanges) -> None:
        back = [tab for tab in tabs.opened if tab.tab_id in self.waiting]
        # After a browser restart the id may belong to a tab of the person.
        self.close([tab.tab_id for tab in back if self.waiting[tab.tab_id].matches(tab)])
        for tab in (*back, *tabs.closed):
            self.waiting.pop(tab.tab_id, None)
