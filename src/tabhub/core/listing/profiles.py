"""Profiles: which tools a connection is shown, so that an agent's context contains only what it needs.

Owns the terms of a selection (`default`, `core`, `all`, families, kinds of sources, each also with a minus) and their
meaning. A selection decides what is listed, not what may be called: that is up to permissions. The families of built-in
tools are passed in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tabhub.core.listing.search import nearest
from tabhub.core.tools import Tool
from tabhub.errors import InvalidParams

CORE, ALL, DEFAULT = "core", "all", "default"
KINDS = ("page", "plugin", "upstream")
"""Sources whose tools are their own family; they are shown unless a selection excludes them."""
ALWAYS = "hub"
"""The family that every selection has unless it is excluded."""
FINDER = "finder"
"""The tools that reach all others. With them, tools of pages, plugins and servers are listed within a budget."""
STRUCTURED = "structured"
"""Answers as data: for programs."""
_LONGEST = 500
_REMEMBERED = 100


@dataclass(frozen=True, slots=True)
class Selection:
    """The tools one connection is shown, and how it is answered."""

    built_in: frozenset[str] | None
    """Names of built-in tools; None is all of them."""
    kinds: frozenset[str] = frozenset(KINDS)
    finder: bool = False
    """Whether it has the finder, which reaches what is not listed."""
    structured: bool = False
    """Whether answers are data (`structuredContent`) instead of text, and definitions are listed in full."""

    def shows(self, tool: Tool) -> bool:
        if tool.source.kind in KINDS:
            return tool.source.kind in self.kinds
        return self.built_in is None or tool.name in self.built_in

    @property
    def everything(self) -> bool:
        return self.built_in is None and len(self.kinds) == len(KINDS)


EVERYTHING = Selection(None, structured=True)


class Profiles:
    """The profiles of one hub."""

    def __init__(self, families: Mapping[str, Iterable[str]], core: Iterable[str]) -> None:
        self._families = {name: frozenset(tools) for name, tools in families.items()}
        self._core = frozenset(core)
        self._known: dict[str, Selection] = {}

    def select(self, text: str) -> Selection:
        """Parse `core,network,-page`; an unknown term is an error that names the nearest."""
        selection = self._known.get(text)
        if selection is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            selection = self._known[text] = self._parse(text)
        return selection

    def _parse(self, text: str) -> Selection:
        sets = (DEFAULT, CORE, ALL)
        known = (*sets, *self._families, *KINDS, FINDER, STRUCTURED)
        terms = [term.strip().lower() for term in text[:_LONGEST].split(",") if term.strip()]
        if not any(term in (*sets, *self._families) for term in terms):
            terms.append(DEFAULT)
        kinds, built_in, flags, every_family = set(KINDS), set[str](), set[str](), False
        excluded: set[str] = set()
        for term in terms:
            name = term.removeprefix("-")
            if name not in known or (term != name and name in sets):
                near = nearest(name[:50], known)
                suggestion = f"Did you mean {' or '.join(near)}? " if near else ""
                raise InvalidParams(
                    f"Unknown term {term[:50]!r} in `tools`.",
                    hint=f"{suggestion}Available: {', '.join(known)}; families also with a minus, such as -page.",
                )
            if name in KINDS:
                (kinds.discard if term != name else kinds.add)(name)
            elif name in (FINDER, STRUCTURED):
                flags.add(term)
            elif term != name:
                excluded |= self._families[name]
            elif name == ALL:
                every_family = True
            elif name == DEFAULT:
                flags.add(FINDER)
                built_in |= self._core
            else:
                built_in |= self._core if name == CORE else self._families[name]
        finder = FINDER in flags and f"-{FINDER}" not in flags
        structured = STRUCTURED in flags and f"-{STRUCTURED}" not in flags
        if every_family:
            if not excluded:
                return Selection(None, frozenset(kinds), finder, structured)
            built_in = {tool for tools in (*self._families.values(), self._core) for tool in tools}
        # Without this family, the rest of long results could not be read.
        built_in |= self._families.get(ALWAYS, frozenset())
        return Selection(frozenset(built_in - excluded), frozenset(kinds), finder, structured)
