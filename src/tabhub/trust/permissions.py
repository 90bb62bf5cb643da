"""Permissions: the level (off, ask, auto) that the settings give a tool.

Owns the lookup in the settings, most specific first (the tool, its source, the default; at each step the client's own
settings before everyone's), and the level of tools without a setting. What a level means for a call is decided in
approvals.py. Tables are built once per configuration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from tabhub.config.permissions import Permission, PermissionSettings
from tabhub.config.settings import Config

Scope = Literal["tool", "source", "default"]


class Stated(NamedTuple):
    """A configured level, and whether it is set for the tool, its source or by default."""

    level: Permission
    scope: Scope


@dataclass(frozen=True, slots=True)
class _Table:
    """The settings for everyone, or for one client."""

    default: Permission | None = None
    sources: Mapping[str, Permission] = field(default_factory=dict)
    tools: Mapping[tuple[str, str], Permission] = field(default_factory=dict)

    @classmethod
    def of(cls, settings: PermissionSettings) -> _Table:
        sources: dict[str, Permission] = {}
        tools: dict[tuple[str, str], Permission] = {}
        for source, own in settings.plugins.items():
            if own.permission is not None:
                sources[source] = own.permission
            for tool, level in own.tools.items():
                tools[source, tool] = level
            for tool, level in own.tools.items():
                other = tool.removeprefix(f"{source}_") if tool.startswith(f"{source}_") else f"{source}_{tool}"
                tools.setdefault((source, other), level)
        return cls(settings.default, sources, tools)

    def tool(self, source: str, names: Sequence[str]) -> Permission | None:
        for name in names:
            if (level := self.tools.get((source, name))) is not None:
                return level
        return None


_NOTHING = _Table()


@dataclass(frozen=True, slots=True)
class Permissions:
    """The settings as lookup tables."""

    everyone: _Table
    clients: Mapping[str, _Table]
    skipped: bool = False
    """Whether `ask` counts as `auto` everywhere."""
    trust_pages: bool = False
    """Whether a page's own claim that a tool only reads is trusted."""

    @classmethod
    def parse(cls, config: Config) -> Permissions:
        """A tool may be named as its source names it or as agents see it (`<plugin>_<tool>`)."""
        settings = config.permissions
        clients = {name: _Table.of(own) for name, own in settings.clients.items()}
        return cls(_Table.of(settings), clients, config.skip_permissions, config.pages.trust_read_only)

    @property
    def default(self) -> Permission | None:
        return self.everyone.default

    def source(self, source: str) -> Permission | None:
        return self.everyone.sources.get(source)

    def stated(self, source: str, names: Sequence[str], client: str | None = None) -> Stated | None:
        """The level set for a tool, under any of its names, when this client calls it; None if nothing is set."""
        own = self.clients.get(client, _NOTHING) if client is not None else _NOTHING
        everyone = self.everyone
        if level := own.tool(source, names) or everyone.tool(source, names):
            return Stated(level, "tool")
        if level := own.sources.get(source) or everyone.sources.get(source):
            return Stated(level, "source")
        if level := own.default or everyone.default:
            return Stated(level, "default")
        return None


def default_level(kind: str, *, reads: bool, trust_pages: bool = False) -> Permission | None:
    """The level of a tool without settings; None if it depends on whose browser the call reaches.

    In a browser the hub manages everything runs; in the person's own, tools that act ask. That a page's tool only reads
    is the page's own claim. A tool of an external server acts outside any browser, so it asks.
    """
    if kind == "hub":
        return "auto"
    if reads and (kind != "page" or trust_pages):
        return "auto"
    return "ask" if kind == "upstream" else None
