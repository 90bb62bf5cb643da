"""Downloads of sites that an agent is kept off, which the agent caused: they are stopped, and their files deleted.

Owns which site a download is of, when the agent caused it, and having the browser delete it. The browser's own list
keeps an entry, for the person; no tool shows it.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Any, Protocol

from tabhub.browser.driver.frames import list_all_frames
from tabhub.browser.driver.page import Page
from tabhub.browser.driver.tab_watch import TabState, TabWatch
from tabhub.core.origins import origin_of
from tabhub.core.tabs import Tab
from tabhub.errors import TabhubError
from tabhub.links.browsers import Browsers, TabKey, TabRef
from tabhub.links.extension import ExtensionLink
from tabhub.trust.visibility import View

log = logging.getLogger("tabhub.downloads")

_RECENT = 5.0
"""Seconds after an agent's last command in which a download in its tab counts as caused by it."""
_MAX_URL = 2_000
DELETED = "A download came from a site that the person keeps agents off: it was stopped, and its file deleted."
NOT_DELETED = "A download came from a site that the person keeps agents off. Its file could not be deleted."


class ReportDownload(Protocol):
    """Records what became of a download that an agent caused."""

    def __call__(self, tab: Tab | None, site: str, *, deleted: bool) -> None: ...


def no_report(tab: Tab | None, site: str, *, deleted: bool) -> None:
    """Where there is no audit log."""


class HiddenDownloads:
    """The downloads of all tabs in use."""

    def __init__(self, browsers: Browsers, watch: TabWatch, report: ReportDownload) -> None:
        self._browsers = browsers
        self._watch = watch
        self._report = report
        self._running: set[asyncio.Task[bool | None]] = set()

    def begun(self, key: TabKey, params: dict[str, Any], *, acting: bool) -> asyncio.Task[bool | None] | None:
        """Delete a download that began in a tab, if the agent that uses it is kept off its site.

        `acting` is whether a tool acts in the tab now. None, at once or in the end, is for any other download.
        """
        state = self._watch.tab(key)
        if state.view is None or not (acting or self._caused(state)):
            return None
        url = str(params.get("url", ""))
        if (site := origin_of(url)) is not None and not state.view.hides(site):
            return None
        task = asyncio.ensure_future(self._judge(state, state.view, url, str(params.get("frameId"))))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    async def _judge(self, state: TabState, view: View, url: str, frame_id: str) -> bool | None:
        """A blob: or data: URL of no site is of the document that made it."""
        tab, link = self._browsers.book.get(state.tab_id), state.key[0]
        site = origin_of(url) or state.frame_urls.get(frame_id)
        if site is None and tab is not None:
            with suppress(TabhubError):  # its frames as they are now; the tab may be gone
                await list_all_frames(Page(self._browsers, self._watch, TabRef(link, tab, state.key), None, view))
            site = state.frame_urls.get(frame_id) or tab.site
        if not view.hides(site):
            return None
        return await self.delete(link, {"url": url[:_MAX_URL]}, tab, str(site))

    def _caused(self, state: TabState) -> bool:
        """Whether an agent has just used the tab, or the browser is the hub's own."""
        link, chrome_id = state.key
        recent = link.loop.time() - state.used < _RECENT
        return recent or link.busy(chrome_id) or self._browsers.is_managed(link.browser_id)

    async def delete(self, link: ExtensionLink, which: dict[str, Any], tab: Tab | None, site: str) -> bool:
        """Stop a download, by its `downloadId` or as the newest of a `url`, and delete what was written of it."""
        try:
            answer = await link.request("discardDownload", which)
            deleted = answer.get("discarded") is True
        except TabhubError as error:
            log.warning("a download from %s could not be deleted: %s", site, error.message)
            deleted = False
        self._report(tab, site, deleted=deleted)
        return deleted
