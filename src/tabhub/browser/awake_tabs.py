"""Tabs that render, run timers and handle input as if they were in front while an agent works in them.

Owns what makes a browser treat a background tab like that. Nothing visible to the person changes.
"""

from __future__ import annotations

from asyncio import TimerHandle
from dataclasses import dataclass
from typing import Any

from tabhub.browser.driver.page import Page, send_cdp_nowait
from tabhub.browser.driver.tab_watch import EventSubscription, TabWatch
from tabhub.links.browsers import Browsers, TabKey

_SCREENCAST = {"format": "jpeg", "quality": 1, "maxWidth": 16, "maxHeight": 16}


@dataclass(slots=True, eq=False)
class AwakeTab:
    """A tab that is awake while something runs in it (`with`), and shortly after it for the next call."""

    key: TabKey
    idle: float
    users: int = 0
    focused: bool = False
    drawn: bool = False
    """Whether it is made to draw."""
    used: float = 0.0
    timer: TimerHandle | None = None
    """Looks whether it may rest; a call within that time only moves `used`."""

    def __enter__(self) -> None:
        self.users += 1

    def __exit__(self, *_: object) -> None:
        self.users -= 1
        loop = self.key[0].loop
        self.used = loop.time()
        if self.timer is None:
            self.timer = loop.call_later(self.idle, self._rest)

    def _rest(self) -> None:
        self.timer = None
        loop = self.key[0].loop
        left = self.used + self.idle - loop.time()
        if self.users or not self.drawn:
            return
        if left > 0:
            self.timer = loop.call_later(left, self._rest)
        else:
            self.drawn = False
            send_cdp_nowait(self.key, "Page.stopScreencast")


class AwakeTabs:
    """The tabs that are kept awake."""

    def __init__(self, browsers: Browsers, watch: TabWatch) -> None:
        self._tabs: dict[TabKey, AwakeTab] = {}
        self._idle = browsers.limits.awake_idle
        browsers.drop_with_tab(self._tabs, self._ended)
        watch.subscribe(EventSubscription(()), self._on_event)

    def awake(self, page: Page) -> AwakeTab:
        """Keep a tab awake while the block runs, and shortly after it.

        After a few frames that nobody sees, a browser lets a tab draw once a second, and the tab handles mouse moves
        and wheel turns only when it draws. It draws at full rate while a screencast runs; that is as small as possible,
        and its frames are not subscribed to.
        """
        tab = self._tabs.get(page.key)
        if tab is None:
            tab = self._tabs[page.key] = AwakeTab(page.key, self._idle)
        if not tab.drawn and page.dialog is None:
            if not tab.focused:
                page.cdp_nowait("Emulation.setFocusEmulationEnabled", {"enabled": True})
            page.cdp_nowait("Page.startScreencast", _SCREENCAST)
            tab.focused = tab.drawn = True
        return tab

    def _ended(self, key: TabKey) -> None:
        self._tabs.pop(key).drawn = False

    def _on_event(self, key: TabKey, method: str, params: dict[str, Any], child: str | None) -> None:
        if method == "detached" and (tab := self._tabs.get(key)) is not None:
            tab.focused = tab.drawn = False
