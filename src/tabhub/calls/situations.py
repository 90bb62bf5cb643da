"""Where an agent is, which decides what tools of pages, plugins and servers it is listed first.

Owns how near a source is: its tools are offered in the session's tab, in another open tab, or in none.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Set
from dataclasses import dataclass
from functools import cache

from tabhub.core.listing.relevance import ELSEWHERE, OPEN_TAB, SESSION_TAB, Nearness, Situation
from tabhub.core.sessions import Session
from tabhub.core.tabs import Tab, TabTable
from tabhub.core.tools import Source

_TABS_LOOKED_AT = 20
"""Tabs in which plugins are looked for: those used last."""


@dataclass(frozen=True, slots=True)
class Situations:
    """The situations of all sessions."""

    book: TabTable
    plugin_owns: Callable[[str, str], bool] = lambda _plugin, _url: False
    """Whether a URL belongs to a plugin."""

    def of(self, session: Session | None) -> Situation:
        """The situation of a session; it is the same until the session's tab is another, or shows another site."""
        tab = self.book.get(session.tab) if session is not None and session.tab is not None else None
        opened = session.opened_tabs if session is not None else frozenset()
        latest: list[Tab] = []

        @cache
        def nearness(source: Source, tab_id: int | None) -> Nearness:
            if source.kind == "page" and tab_id is not None:
                if tab is not None and tab_id == tab.tab_id:
                    return SESSION_TAB, 0.0
                there = self.book.get(tab_id)
                return OPEN_TAB, -_last_used(there, opened) if there is not None else 0.0
            if source.kind != "plugin":
                return ELSEWHERE, 0.0
            if tab is not None and self.plugin_owns(source.key, tab.url):
                return SESSION_TAB, 0.0
            if not latest:
                latest.extend(heapq.nlargest(_TABS_LOOKED_AT, self.book, key=lambda each: _last_used(each, opened)))
            owned = (each for each in latest if self.plugin_owns(source.key, each.url))
            found = next(owned, None)
            return (ELSEWHERE, 0.0) if found is None else (OPEN_TAB, -_last_used(found, opened))

        return Situation((None, "") if tab is None else (tab.tab_id, tab.site), nearness)


def _last_used(tab: Tab, opened: Set[int]) -> float:
    """When a tab was used last; the session's own count as used now."""
    return math.inf if tab.tab_id in opened or tab.active else tab.last_accessed or 0.0
