"""Which tools an agent is not shown because they belong to sites that the person keeps it off.

Owns how a tool's site is found: a page's by its origin and the tab it is in, a plugin's by its URL patterns. Calls of
them are refused by the permission check.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from tabhub.core.match_patterns import covers_only
from tabhub.core.tabs import Tab, TabTable
from tabhub.core.tools import Tool
from tabhub.trust.visibility import Visibility


@dataclass(frozen=True, slots=True)
class HiddenTools:
    """The hidden tools of all agents."""

    visibility: Callable[[str | None], Visibility]
    book: TabTable
    plugin_patterns: Callable[[str], Iterable[str]]
    plugin_tabs: Callable[[str], Iterable[Tab]]

    def of(self, agent: str | None) -> Callable[[Tool], bool] | None:
        """The test for an agent, by the name of its token; None if nothing is hidden from it."""
        visibility = self.visibility(agent)
        return partial(self._is_hidden, visibility) if visibility.active else None

    def hides_log(self, agent: str | None, plugin: str) -> bool:
        """Whether log entries of a plugin may come from a tab that the agent is kept off."""
        visibility = self.visibility(agent)
        return visibility.active and (
            covers_only(self.plugin_patterns(plugin), visibility.hides)
            or any(visibility.hides(tab.url) for tab in self.plugin_tabs(plugin))
        )

    def _is_hidden(self, visibility: Visibility, tool: Tool) -> bool:
        kind, key = tool.source.kind, tool.source.key
        if kind == "plugin":
            return covers_only(self.plugin_patterns(key), visibility.hides)
        if kind != "page":
            return False
        tab = self.book.get(tool.tab_id) if tool.tab_id is not None else None
        return visibility.hides(key) or (tab is not None and visibility.hides(tab.site))
