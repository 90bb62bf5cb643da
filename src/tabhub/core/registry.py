"""The registry: all tools by source, replaced as a whole for each source.

Owns which names exist and which source may use which. A change makes a new entry; a call in flight keeps the old one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tabhub.core.listing.search import nearest
from tabhub.core.tools import Runner, Source, SourceKind, Tool
from tabhub.errors import UnknownTool

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
RESERVED: dict[str, frozenset[SourceKind]] = {
    "browser_": frozenset({"browser"}),
    "extension_": frozenset({"browser"}),
    "plugin_": frozenset({"browser"}),
    "tabhub_": frozenset({"hub"}),
    "opentabs_": frozenset({"hub"}),
    "website_tool_": frozenset({"page"}),
    "mcp__": frozenset({"upstream"}),
}
"""Prefixes and the kinds of source that may use them."""

_KIND_ORDER: dict[SourceKind, int] = {"browser": 0, "hub": 1, "plugin": 2, "page": 3, "upstream": 4}


def sort_key(tool: Tool) -> str:
    """The position of a tool in every listing: by kind of source, then by name."""
    return f"{_KIND_ORDER[tool.source.kind]} {tool.name}"


@dataclass(frozen=True, slots=True)
class Entry:
    """A tool and its runner."""

    tool: Tool
    run: Runner
    listed: bool = True
    """Whether agents are shown it; an unlisted tool can still be called."""


class Registry:
    """Every tool the hub can call."""

    def __init__(self) -> None:
        self._sources: dict[Source, tuple[Entry, ...]] = {}
        self.by_name: dict[str, Entry] = {}
        """Every tool; others only read it."""
        self._sorted: tuple[Tool, ...] | None = ()
        self._keys: list[str] = []
        """The sort keys of all listed tools, in order."""
        self._listeners: list[Callable[[], None]] = []
        self.version = 0
        """Counts the changes agents are notified of."""
        self.revision = 0
        """Counts every change of the listing, including new descriptions of known tools."""

    def unknown(self, name: str, hidden: Callable[[Tool], bool] | None = None) -> UnknownTool:
        """The error for a name that is not here, with the nearest ones that are and that the agent may know of."""
        names: Iterable[str] = self.by_name
        if hidden is not None:
            names = [known for known, entry in self.by_name.items() if entry.listed and not hidden(entry.tool)]
        near = nearest(name[:200], names)
        hint = f"Did you mean {', '.join(near)}?" if near else "List the tools to see what there is."
        return UnknownTool(f"There is no tool named {name[:200]!r}.", hint=hint, data={"nearest": near})

    def tools(self) -> tuple[Tool, ...]:
        """All listed tools, in one fixed order: by kind of source, then by name."""
        if self._sorted is None:
            by_name = self.by_name
            self._sorted = tuple([by_name[key[2:]].tool for key in self._keys])
        return self._sorted

    def of(self, source: Source) -> tuple[Entry, ...]:
        return self._sources.get(source, ())

    def sources(self) -> Iterable[tuple[Source, tuple[Entry, ...]]]:
        """Every source with its tools, as they were registered."""
        return self._sources.items()

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call `listener` after every change of what is listed."""
        self._listeners.append(listener)

    def replace(self, source: Source, entries: Iterable[Entry]) -> list[str]:
        """Set all tools of one source at once; returns which were rejected and why."""
        kept: dict[str, Entry] = {}
        problems: list[str] = []
        for entry in entries:
            problem = self._refusal(source, entry.tool, kept)
            if problem:
                problems.append(problem)
            else:
                kept[entry.tool.name] = entry
        same = _shown(self._sources.get(source, ())) == _shown(kept.values())
        self._store(source, kept)
        if same:
            return problems
        self.version += 1
        self._changed()
        for listener in self._listeners:
            listener()
        return problems

    def refresh(self, source: Source, entries: Iterable[Entry]) -> bool:
        """Replace descriptions without notifying agents; False, with nothing done, if names differ."""
        fresh = {entry.tool.name: entry for entry in entries}
        there = {entry.tool.name: entry.listed for entry in self._sources.get(source, ())}
        if {name: entry.listed for name, entry in fresh.items()} != there:
            return False
        same = all(self.by_name[name].tool is entry.tool for name, entry in fresh.items())
        self._store(source, fresh)
        if not same:
            self._changed()
        return True

    def remove(self, source: Source) -> None:
        self.replace(source, ())

    def _changed(self) -> None:
        self.revision += 1
        self._sorted = None

    def _store(self, source: Source, kept: dict[str, Entry]) -> None:
        # In place: thousands of tools of others must cost next to nothing when one site's change.
        before = _keys_of(self._sources.get(source, ()))
        after = _keys_of(kept.values())
        if before != after:
            if gone := before - after:
                self._keys = [key for key in self._keys if key not in gone]
            self._keys += after - before
            self._keys.sort()  # nearly in order already
        for entry in self._sources.get(source, ()):
            del self.by_name[entry.tool.name]
        self.by_name.update(kept)
        if kept:
            self._sources[source] = tuple(kept.values())
        else:
            self._sources.pop(source, None)

    def _refusal(self, source: Source, tool: Tool, kept: dict[str, Entry]) -> str | None:
        name = tool.name
        if tool.source != source:
            return f"{name!r} says it is of {tool.source}, but {source} registers it"
        if not NAME.fullmatch(name):
            return f"{name[:80]!r} is not a tool name (1 to 64 of letters, digits, _ and -)"
        for prefix, kinds in RESERVED.items():
            if name.startswith(prefix) and source.kind not in kinds:
                return f"{name!r} uses the reserved prefix {prefix!r}"
        other = self.by_name.get(name)
        if name in kept or (other is not None and other.tool.source != source):
            return f"{name!r} is already in use"
        return None


def _keys_of(entries: Iterable[Entry]) -> set[str]:
    return {sort_key(entry.tool) for entry in entries if entry.listed}


def _shown(entries: Iterable[Entry]) -> list[object]:
    return [entry.tool.definition for entry in entries if entry.listed]
