"""Profiles: which tools a connection is shown, so that an agent's context holds what it needs and no more.

Owns the terms of a selection (`core`, `all`, families, kinds of sources, each also with a minus) and their meaning. A
selection decides what is listed, not what may be called: that is up to permissions. Which built-in tool belongs to
which family is passed in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tabhub.core.listing.search import nearest
from tabhub.core.tools import Tool
from tabhub.errors import InvalidParams

CORE, ALL = "core", "all"
KINDS = ("page", "plugin", "upstream")
"""Sources whose tools are their own family; they are shown unless a selection excludes them."""
ALWAYS = "hub"
"""The family that every selection has unless it is excluded."""
_LONGEST = 500


@dataclass(frozen=True, slots=True)
class Selection:
    """The tools one connection is shown."""

    built_in: frozenset[str] | None
    """Names of built-in tools; None is all of them."""
    kinds: frozenset[str] = frozenset(KINDS)

    def shows(self, tool: Tool) -> bool:
        if tool.source.kind in KINDS:
            return tool.source.kind in self.kinds
        return self.built_in is None or tool.name in self.built_in

    @property
    def everything(self) -> bool:
        return self.built_in is None and len(self.kinds) == len(KINDS)


EVERYTHING = Selection(None)


class Profiles:
    """The profiles of one hub."""

    def __init__(self, families: Mapping[str, Iterable[str]], core: Iterable[str]) -> None:
        self._families = {name: frozenset(tools) for name, tools in families.items()}
        self._core = frozenset(core)

    def terms(self) -> tuple[str, ...]:
        return (CORE, ALL, *self._families, *KINDS)

    def select(self, text: str) -> Selection:
        """Parse `core,network,-page`; an unknown term is an error that names the nearest."""
        wanted = [word.strip().lower() for word in text[:_LONGEST].split(",") if word.strip()]
        kinds, built_in, whole = set(KINDS), set[str](), False
        taken_out: set[str] = set()
        for word in wanted:
            name = word.removeprefix("-")
            if name not in self.terms() or (word != name and name in (CORE, ALL)):
                raise self._unknown(word)
            if name in KINDS:
                (kinds.discard if word != name else kinds.add)(name)
            elif word != name:
                taken_out |= self._families[name]
            elif name == ALL:
                whole = True
            else:
                built_in |= self._core if name == CORE else self._families[name]
        named = any(not word.startswith("-") and word not in KINDS for word in wanted)
        if whole or not named:
            if not taken_out:
                return Selection(None, frozenset(kinds))
            built_in = {tool for tools in (*self._families.values(), self._core) for tool in tools}
        # Without it what was too long for an answer could not be read on.
        built_in |= self._families.get(ALWAYS, frozenset())
        return Selection(frozenset(built_in - taken_out), frozenset(kinds))

    def _unknown(self, word: str) -> InvalidParams:
        near = nearest(word[:50].removeprefix("-"), self.terms())
        suggestion = f"Did you mean {' or '.join(near)}? " if near else ""
        return InvalidParams(
            f"Unknown term {word[:50]!r} in `tools`.",
            hint=f"{suggestion}Available: {', '.join(self.terms())}; families also with a minus, such as -page.",
        )
