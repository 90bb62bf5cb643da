"""The catalogue: what an agent is shown of the registry, in pages of encoded bytes.

Owns order, paging and the forms of a listing: for agents or for programs, and for stateless clients with the `session`
handle added to tools that use or open tabs. Pages are built once per change. Where a selection has the finder, the
tools of pages, plugins and servers are those that relevance chooses.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import InitVar, dataclass
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import orjson

from tabhub.core.listing.compact_listing import compact
from tabhub.core.listing.finder import CALL, finder_tool
from tabhub.core.listing.pages import decode_cursor, encode_page
from tabhub.core.listing.profiles import EVERYTHING, Selection
from tabhub.core.listing.relevance import NOWHERE, RecentUses, Situation, choose
from tabhub.core.listing.search import ToolIndex
from tabhub.core.registry import Registry, sort_key
from tabhub.core.tools import Tool
from tabhub.limits import Limits

_SELECTIONS_KEPT = 50
_CHOICES_KEPT = 20
_INDEXED_AT_ONCE = 15
"""About 1 ms of work."""
_KEY_PREFIXES = tuple(f"{kind} " for kind in range(10))
_OWN = ("browser", "hub")

SESSION_PROPERTY: dict[str, Any] = {
    "type": "string",
    "description": "Handle from an earlier result; keeps your calls on the same tab.",
}


def takes_session(tool: Tool) -> bool:
    """Whether a tool may work on the session's tab, or open one for the session; a page's own arguments say nothing."""
    if tool.source.kind == "browser":
        return "session" not in tool.input_schema.get("properties", {})
    if tool.source.kind == "page" or b'"tabId"' not in tool.schema.text:
        return False
    properties = tool.input_schema.get("properties", {})
    return isinstance(properties, Mapping) and "tabId" in properties


def with_session(listing: dict[str, Any]) -> dict[str, Any]:
    schema = dict(listing["inputSchema"])
    schema["properties"] = {**schema.get("properties", {}), "session": SESSION_PROPERTY}
    return {**listing, "inputSchema": schema}


@dataclass(eq=False)
class Catalogue:
    """The listing of one registry."""

    registry: Registry
    limits: InitVar[Limits]
    disabled: Callable[[Tool], bool]
    mark: bool
    """Whether disabled tools are listed, and marked so; those of a listing with a finder are left to the finder."""
    selection: Selection = EVERYTHING
    hidden: Callable[[Tool], bool] | None = None
    """Which tools the agent must not learn of."""
    used: Callable[[], Mapping[str, None]] = dict
    """The tools that the agent used last."""
    budget: Callable[[], int] = lambda: 0
    """The tokens of the tools of pages, plugins and servers, where the selection has the finder."""

    def __post_init__(self, limits: Limits) -> None:
        self._size = max(limits.list_page, 1)
        self._version = -1
        self._tools: tuple[Tool, ...] = ()
        self._pages: dict[tuple[int, bool], bytes] = {}
        self._chosen: OrderedDict[tuple[object, ...], tuple[Tool, ...]] = OrderedDict()
        """By situation."""
        # Weakly: a listing that is not used must not keep the tools of closed pages.
        self._wires: WeakKeyDictionary[Tool, dict[bool, bytes]] = WeakKeyDictionary()
        self._index = ToolIndex()
        self._index_version = -1

    def tools(self) -> tuple[Tool, ...]:
        """The tools of the selection, whatever the budget."""
        self._refresh()
        return self._tools

    def index(self) -> ToolIndex | None:
        """The search index, or None while it is incomplete: each call does a little of the work, and between two calls
        others can run."""
        self._refresh()
        if self._index_version != self._version:
            self._index.change(self._tools)
            self._index_version = self._version
        self._index.advance(_INDEXED_AT_ONCE)
        return self._index if self._index.complete else None

    def show(self, *, marked: bool) -> None:
        """Permissions or settings changed: rebuild the listing."""
        self.mark = marked
        self.drop()

    def page(self, cursor: str | None, *, stateless: bool, situation: Situation = NOWHERE) -> bytes:
        """One page; a listing with a finder has only one, for the situation of the agent."""
        self._refresh()
        if self.selection.finder:
            start = self._size if cursor is not None and decode_cursor(cursor, _KEY_PREFIXES) else 0
            tools = self._choose(situation) if not start else ()
            return encode_page(
                "tools", (self._wire(tool, stateless=stateless) for tool in tools), None, stateless=stateless
            )
        start = 0
        if cursor is not None:
            start = bisect_right(self._tools, decode_cursor(cursor, _KEY_PREFIXES), key=sort_key)
        page = self._pages.get((start, stateless))
        if page is None:
            page = self._build(start, stateless=stateless)
            if start % self._size == 0:  # invented cursors must not fill the memory with pages
                self._pages[(start, stateless)] = page
        return page

    def chosen(self, situation: Situation) -> tuple[Tool, ...]:
        """The tools of a listing with a finder: the same object until the listing changes."""
        self._refresh()
        return self._choose(situation)

    def _choose(self, situation: Situation) -> tuple[Tool, ...]:
        known = self._chosen.get(situation.key)
        if known is not None:
            self._chosen.move_to_end(situation.key)
            return known
        own = [tool for tool in self._tools if tool.source.kind in _OWN]
        others = self._tools[len(own) :]  # the kinds are in this order
        choice = choose(others, situation, self.used(), self.hidden, _cost, self.budget())
        tools = (*own, finder_tool(choice.left_out, choice.sources), CALL, *choice.chosen)
        self._chosen[situation.key] = tools
        if len(self._chosen) > _CHOICES_KEPT:
            self._chosen.popitem(last=False)
        return tools

    def _refresh(self) -> None:
        if self._version == self.registry.revision:
            return
        tools: Sequence[Tool] = self.registry.tools()
        self.drop()
        if not self.selection.everything:
            kinds, shows = self.selection.kinds, self.selection.shows
            tools = [tool for tool in tools if tool.source.kind in kinds or shows(tool)]
        if self.hidden is not None and not self.selection.finder:
            hidden = self.hidden
            tools = [tool for tool in tools if not hidden(tool)]
        if not self.mark or self.selection.finder:
            disabled = self.disabled
            tools = [tool for tool in tools if not disabled(tool)]
        self._tools = tuple(tools)
        self._version = self.registry.revision

    def drop(self) -> None:
        """Discard the listing; it is built again when it is needed."""
        self._version = self._index_version = -1
        self._tools = ()
        self._pages.clear()
        self._chosen.clear()

    def _build(self, start: int, *, stateless: bool) -> bytes:
        chunk = self._tools[start : start + self._size]
        last_key = sort_key(chunk[-1]) if start + len(chunk) < len(self._tools) else None
        entries = (self._wire(tool, stateless=stateless) for tool in chunk)
        return encode_page("tools", entries, last_key, stateless=stateless)

    def _wire(self, tool: Tool, *, stateless: bool) -> bytes:
        structured = self.selection.structured
        marked = self.mark and self.disabled(tool)
        extended = stateless and (takes_session(tool) or tool is CALL)
        short = not structured and tool.source.kind in _OWN
        if not (marked or extended or short):
            return tool.full_wire if structured else tool.wire
        wire = None if marked else self._wires.get(tool, {}).get(stateless)
        if wire is None:
            listing = orjson.loads(tool.full_wire if structured else tool.wire)
            if marked:
                listing["description"] = f"[Disabled] {listing['description']}"
            if extended:
                listing = with_session(listing)
            if short:
                listing = compact(listing)
            wire = orjson.dumps(listing)
            if not marked:
                self._wires.setdefault(tool, {})[stateless] = wire
        return wire


def _cost(tool: Tool) -> int:
    """About the tokens of a definition: JSON has at least 3.5 bytes a token. Counting those of a hundred takes 8 ms."""
    return tool.wire_size * 2 // 7 + 1


HiddenFrom = Callable[[str | None], Callable[[Tool], bool] | None]
"""By the name of an agent's token, which tools it must not learn of; None if it may know all."""


def nothing_hidden(agent: str | None) -> None:
    return None


class Catalogues:
    """The listings of one registry, one for each selection in use, and for each agent from which tools are hidden."""

    def __init__(
        self,
        registry: Registry,
        limits: Limits,
        disabled: Callable[[Tool], bool],
        mark: bool,
        hidden: HiddenFrom = nothing_hidden,
        budget: Callable[[], int] = lambda: 0,
    ) -> None:
        self._hidden = hidden
        self._make = partial(Catalogue, registry, limits, disabled, budget=budget)
        self._mark = mark
        self.uses = RecentUses()
        self.everything = self._make(mark)
        self._others: dict[tuple[Selection, str | None], Catalogue] = {}
        registry.on_change(self._drop)

    def of(self, selection: Selection, agent: str | None = None) -> Catalogue:
        hidden = self._hidden(agent)
        if hidden is None and selection == EVERYTHING:
            return self.everything
        # A listing with a finder depends on what the agent has used.
        key = (selection, agent if hidden is not None or selection.finder else None)
        found = self._others.pop(key, None) or self._make(
            self._mark, selection, hidden, used=partial(self.uses.of, agent)
        )
        self._others[key] = found  # least recently used first
        if len(self._others) > _SELECTIONS_KEPT:
            del self._others[next(iter(self._others))]
        return found

    def show(self, *, marked: bool) -> None:
        self._mark = marked
        self._others.clear()  # rules on sites may have changed, too
        self.everything.show(marked=marked)

    def _drop(self) -> None:
        for catalogue in (self.everything, *self._others.values()):
            catalogue.drop()
