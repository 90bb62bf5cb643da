"""Tabs that render, run timers and handle input as if they were in front while an agent works in them.

Owns what makes a browser treat a background tab like that. Nothing visible to the person changes.
"""

from __future__ import annotations

from asyncio import TimerHandle
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tabhub.browser.driver.page import Page, send_cdp_nowait
from tabhub.browser.driver.tab_watch import EventSubscription, TabWatch
from tabhub.links.browsers import Browsers, TabKey

_SCREENCAST = {"format": "jpeg", "quality": 1, "maxWidth": 16, "maxHeight": 16}


@dataclass(slots=True)
class _Tab:
    users: int = 0
    focused: bool = False
    drawn: bool = False
    rest: TimerHandle | None = None


class AwakeTabs:
    """The tabs that are kept awake."""

    def __init__(self, browsers: Browsers, watch: TabWatch) -> None:
        self._tabs: dict[TabKey, _Tab] = {}
        self._idle = browsers.limits.awake_idle
        browsers.drop_with_tab(self._tabs)
        watch.subscribe(EventSubscription(()), self._on_event)

    @contextmanager
    def awake(self, page: Page) -> Iterator[None]:
        """Keep a tab awake while the block runs, and shortly after it for the next call.

        After a few frames that nobody sees, a browser lets a tab draw once a second, and the tab handles mouse moves
        and wheel turns only when it draws. It draws at full rate while a screencast runs; that is as small as possible,
        and its frames are not subscribed to.
        """
        tab = self._tabs.setdefault(page.key, _Tab())
        if page.dialog is None:
            if not tab.focused:
                page.cdp_nowait("Emulation.setFocusEmulationEnabled", {"enabled": True})
            if not tab.drawn:
                page.cdp_nowait("Page.startScreencast", _SCREENCAST)
            tab.focused = tab.drawn = True
        if tab.rest is not None:
            tab.rest.cancel()
        tab.users += 1
        try:
            yield
        finally:
            tab.users -= 1
            if not tab.users and tab.drawn:
                tab.rest = page.link.loop.call_later(self._idle, self._rest, page.key, tab)

    def _rest(self, key: TabKey, tab: _Tab) -> None:
        if self._tabs.get(key) is tab and tab.drawn and not tab.users:
            tab.drawn = False
            send_cdp_nowait(key, "Page.stopScreencast")

    def _on_event(self, key: TabKey, method: str, params: dict[str, Any], child: str | None) -> None:
        if method == "detached" and (tab := self._tabs.get(key)) is not None:
            tab.focused = tab.drawn = False
