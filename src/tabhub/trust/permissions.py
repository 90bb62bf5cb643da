"""Permissions: the level (off, ask, auto) that the settings give a tool.

Owns the lookup in the settings, most specific first (the tool, its source, the default; at each step the client's own
settings before everyone's), and the level of tools without a setting. What a level means for a call is decided in
approvals.py and verdicts.py. Tables are built once per configuration.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, get_args

from tabhub.config.permissions import Permission, PermissionSettings
from tabhub.config.settings import Config
from tabhub.trust.actions import LEASE_TOOLS, PRIVATE

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
    off: frozenset[str] = frozenset()
    """Sources that are off, or of which some tools are."""

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
        off = {source for source, level in sources.items() if level == "off"}
        off |= {source for (source, _), level in tools.items() if level == "off"}
        return cls(settings.default, sources, tools, frozenset(off))

    def tool(self, source: str, names: Sequence[str]) -> Permission | None:
        for name in names:
            if (level := self.tools.get((source, name))) is not None:
                return level
        return None

    def level(self, scope: Scope, source: str, names: Sequence[str]) -> Permission | None:
        if scope == "tool":
            return self.tool(source, names)
        return self.sources.get(source) if scope == "source" else self.default


_NOTHING = _Table()
_SCOPES: tuple[Scope, ...] = get_args(Scope)


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

    def may_switch_off(self, source: str) -> bool:
        """Whether a tool of the source can be off."""
        return self.everyone.default == "off" or source in self.everyone.off

    def source(self, source: str) -> Permission | None:
        return self.everyone.sources.get(source)

    def stated(self, source: str, names: Sequence[str], client: str | None = None) -> Stated | None:
        """The level set for a tool, under any of its names, when this client calls it; None if nothing is set."""
        return next((stated for stated, _ in self._lookup(source, names, client)), None)

    def setting(self, source: str, names: Sequence[str], client: str | None = None) -> str | None:
        """The key of that setting."""
        for stated, whose in self._lookup(source, names, client):
            parts = {"tool": f"{source}.tools.{names[-1]}", "source": f"{source}.permission", "default": "default"}
            return f"permissions.{f'clients.{whose}.' if whose is not None else ''}{parts[stated.scope]}"
        return None

    def _lookup(self, source: str, names: Sequence[str], client: str | None) -> Iterator[tuple[Stated, str | None]]:
        """The levels that are set, the deciding one first, each with the client it is set for (None: everyone)."""
        own = self.clients.get(client, _NOTHING) if client is not None else _NOTHING
        for scope in _SCOPES:
            for table, whose in ((own, client), (self.everyone, None)):
                if level := table.level(scope, source, names):
                    yield Stated(level, scope), whose


class ToolFacts(NamedTuple):
    """What permissions depend on, of a tool."""

    name: str
    source: str
    """The kind of its source."""
    kind: str
    """Its kind of action (trust.actions)."""
    reads: bool
    """Whether it only reads; a page's own claim does not count unless the person trusts pages."""

    @property
    def private(self) -> bool:
        return self.kind in PRIVATE


def default_level(tool: ToolFacts) -> Permission | None:
    """The level of a tool without settings; None if it depends on whose browser the call reaches.

    In a browser the hub manages everything runs; in the person's own, tools that act ask, and so do those that read
    cookies, storage or history. A tool of an external server acts outside any browser, so it asks.
    """
    if tool.source == "hub" or tool.name in LEASE_TOOLS or (tool.reads and not tool.private):
        return "auto"
    return "ask" if tool.source == "upstream" else None
