"""The style sheets of tabs as the browser reports them, and which of their rules were used.

Owns the known sheets while a tab's CSS domain is enabled, and which session follows coverage.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from tabhub.browser.driver.cdp_values import parse_int, parse_object, parse_text
from tabhub.browser.driver.page import Page, send_cdp_nowait
from tabhub.browser.driver.tab_watch import EventSubscription, TabWatch
from tabhub.links.browsers import Browsers, TabKey

_MAX_SHEETS = 2000
_WHY = "coverage"


@dataclass(frozen=True, slots=True)
class StyleSheet:
    """One style sheet of a document."""

    url: str
    inline: bool
    length: int
    frame: str
    child: str | None


@dataclass(slots=True)
class _Tab:
    on: set[str | None] = field(default_factory=set)
    """The CDP sessions whose CSS domain is enabled: None is the tab's own."""
    sheets: dict[str, StyleSheet] = field(default_factory=dict)
    used: dict[str, set[tuple[int, int]]] | None = None
    """The ranges of used rules, once coverage has started."""
    session: Any = None
    """The session that started coverage."""


class StyleSheets:
    """The style sheets of all tabs."""

    def __init__(self, browsers: Browsers, watch: TabWatch) -> None:
        self._watch = watch
        self._tabs: dict[TabKey, _Tab] = {}
        browsers.drop_with_tab(self._tabs)
        events = ("CSS.styleSheetAdded", "CSS.styleSheetRemoved", "Page.frameNavigated", "Page.frameDetached")
        watch.subscribe(EventSubscription(events), self._on_event)

    async def enable(self, page: Page, child: str | None = None) -> None:
        """Make the browser report the sheets of a tab, or of a frame in another process."""
        tab = self._tabs.setdefault(page.key, _Tab())
        if child not in tab.on:
            # Disabled first: a domain that is already enabled would not report its sheets again.
            steps = ("DOM.enable", "CSS.disable", "CSS.enable")
            await asyncio.gather(*(page.cdp(step, None, child) for step in steps))
            tab.on.add(child)

    def sheets(self, page: Page) -> dict[str, StyleSheet]:
        tab = self._tabs.get(page.key)
        return tab.sheets if tab else {}

    async def coverage(self, page: Page, session: Any) -> tuple[dict[str, set[tuple[int, int]]], bool]:
        """The used ranges by sheet, and whether coverage starts now; it ends with the session or the debugger."""
        tab = self._tabs.get(page.key)
        if tab is not None and tab.used is not None:
            return tab.used, False
        await page.cdp("CSS.startRuleUsageTracking")
        self._watch.hold(page.key, _WHY)
        tab = self._tabs.setdefault(page.key, _Tab())
        tab.used, tab.session = {}, session
        return tab.used, True

    def end_session(self, session: Any) -> None:
        for key, tab in self._tabs.items():
            if tab.used is not None and tab.session is session:
                tab.used = tab.session = None
                self._watch.release(key, _WHY)
                send_cdp_nowait(key, "CSS.stopRuleUsageTracking")

    def _on_event(self, key: TabKey, method: str, params: dict[str, Any], child: str | None) -> None:
        tab = self._tabs.get(key)
        if tab is None:
            return
        if method == "CSS.styleSheetAdded":
            header = parse_object(params.get("header"))
            if len(tab.sheets) < _MAX_SHEETS:
                tab.sheets[str(header.get("styleSheetId"))] = StyleSheet(
                    url=parse_text(header.get("sourceURL"), 2000),
                    inline=header.get("isInline") is True or not header.get("sourceURL"),
                    length=parse_int(header.get("length")),
                    frame=str(header.get("frameId")),
                    child=child,
                )
        elif method == "CSS.styleSheetRemoved":
            _drop(tab, [str(params.get("styleSheetId"))])
        elif method == "detached":
            del self._tabs[key]
            self._watch.release(key, _WHY)
        else:
            # The sheets of a replaced document are removed without an event.
            frame = params.get("frameId") or (params.get("frame") or {}).get("id")
            _drop(tab, [sheet_id for sheet_id, sheet in tab.sheets.items() if sheet.frame == frame])


def _drop(tab: _Tab, sheet_ids: list[str]) -> None:
    for sheet_id in sheet_ids:
        tab.sheets.pop(sheet_id, None)
        if tab.used is not None:
            tab.used.pop(sheet_id, None)
