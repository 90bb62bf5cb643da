"""Which sites a call is about: its tab's, those its arguments name, and those of its source.

Owns how they are found. What agents may do there is decided in trust.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tabhub.core.origins import origin_of
from tabhub.core.sessions import Session
from tabhub.core.tabs import Tab, TabTable
from tabhub.core.tools import Tool
from tabhub.trust.actions import LEAVING

_URLS = ("url", "origin", "uri")
"""Arguments that name a page or site."""
_CLOSE_WINDOW = "browser_close_window"


@dataclass(frozen=True, slots=True)
class CallSites:
    """The sites of calls."""

    book: TabTable
    plugin_tabs: Callable[[str], Iterable[Tab]]
    """The open tabs of a plugin."""
    plugin_patterns: Callable[[str], Iterable[str]]
    """The URL patterns of a plugin."""
    holds: Callable[[Session, int], bool]
    """Whether a session holds a tab."""

    def urls(self, session: Session, tool: Tool, arguments: Mapping[str, Any]) -> list[str]:
        """The URLs, or origins, of the pages a call reaches."""
        named = [given for name in _URLS if isinstance(given := arguments.get(name), str)]
        if isinstance(ref := arguments.get("ref"), dict) and isinstance(ref.get("uri"), str):
            named.append(ref["uri"])  # of completion/complete
        if tool.source.kind == "page":
            named.append(tool.source.key)
        if tool.source.kind == "plugin" and "tabId" not in arguments:
            return [*named, *(tab.origin or tab.url for tab in self.plugin_tabs(tool.source.key))]
        return [*named, *(tab.origin or tab.url for tab in self._tabs(session, tool, arguments))]

    def site(self, session: Session, tool: Tool, arguments: Mapping[str, Any]) -> str | None:
        """The origin that an approval of a browser or page tool is for; None if it has none."""
        if tool.source.kind == "page":
            return tool.source.key
        for name in _URLS:
            if isinstance(given := arguments.get(name), str) and (origin := origin_of(given)) is not None:
                return origin
        tab = self.tab(session, tool, arguments)
        return tab.origin if tab is not None else None

    def on_site(self, tool: Tool, arguments: Mapping[str, Any]) -> bool:
        """Whether a tool acts on a site at all, whichever it is."""
        return tool.source.kind == "page" or (
            tool.source.kind == "browser"
            and (uses_tab(tool) or any(isinstance(arguments.get(name), str) for name in _URLS))
        )

    def tab(self, session: Session, tool: Tool, arguments: Mapping[str, Any]) -> Tab | None:
        """The tab a call names, or its session's where the tool takes one."""
        default = session.tab if tool.source.kind == "browser" and uses_tab(tool) else None
        return self._find(arguments.get("tabId", default))

    def _tabs(self, session: Session, tool: Tool, arguments: Mapping[str, Any]) -> Iterator[Tab]:
        if tool.source.kind == "page":
            tab = self._find(((tool.meta or {}).get("tabhub/page") or {}).get("tabId"))
        else:
            tab = self.tab(session, tool, arguments)
        if tab is not None and not (tool.name in LEAVING and self._is_own(session, tab)):
            yield tab
        for tab_id in arguments.get("tabIds") or () if tool.source.kind == "browser" else ():
            if (several := self._find(tab_id)) is not None:
                yield several
        if tool.name == _CLOSE_WINDOW:
            yield from (inside for inside in self.book if inside.window_id == arguments["windowId"])

    def _is_own(self, session: Session, tab: Tab) -> bool:
        return tab.tab_id in (session.tab, *session.opened_tabs) or self.holds(session, tab.tab_id)

    def _find(self, tab_id: Any) -> Tab | None:
        return self.book.get(tab_id) if type(tab_id) is int else None


def uses_tab(tool: Tool) -> bool:
    return "tabId" in tool.input_schema.get("properties", ())
