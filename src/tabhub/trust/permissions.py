"""Permissions: whether a tool is off, needs a person's word each time, or runs by itself.

Owns the decision from the settings, most specific first: the tool, its source (plugin, origin or server), the default;
at each step what is set for the client goes before what is set for all. Where nothing is set, what a tool does and
whose browser it reaches decide. Knows nothing of how a person is asked. Tables are made once per configuration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from tabhub.config.permissions import Permission, PermissionSettings
from tabhub.config.settings import Config

__all__ = ["Permission", "Permissions", "Stated", "unstated"]

Scope = Literal["tool", "source", "default"]


class Stated(NamedTuple):
    """What a person set, and how closely it names the tool."""

    level: Permission
    scope: Scope


@dataclass(frozen=True, slots=True)
class _Table:
    """The settings of everyone, or of one client."""

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
    """What the settings say, ready to be looked up."""

    everyone: _Table
    clients: Mapping[str, _Table]
    skipped: bool = False
    """Whether `ask` is turned into `auto` everywhere."""
    trust_pages: bool = False
    """Whether pages are believed which of their tools only read."""

    @classmethod
    def parse(cls, config: Config) -> Permissions:
        """Make the tables. A tool may be named as its source names it or as agents see it (`<plugin>_<tool>`)."""
        settings = config.permissions
        clients = {name: _Table.of(own) for name, own in settings.clients.items()}
        return cls(_Table.of(settings), clients, config.skip_permissions, config.pages.trust_read_only)

    @property
    def default(self) -> Permission | None:
        """What is set for all tools that have nothing of their own."""
        return self.everyone.default

    def source(self, source: str) -> Permission | None:
        """What is set for a whole source."""
        return self.everyone.sources.get(source)

    def stated(self, source: str, names: Sequence[str], client: str | None = None) -> Stated | None:
        """What is set for a tool, known by any of these names, when this client calls it; None if nothing is."""
        own = self.clients.get(client, _NOTHING) if client is not None else _NOTHING
        everyone = self.everyone
        if level := own.tool(source, names) or everyone.tool(source, names):
            return Stated(level, "tool")
        if level := own.sources.get(source) or everyone.sources.get(source):
            return Stated(level, "source")
        if level := own.default or everyone.default:
            return Stated(level, "default")
        return None


def unstated(kind: str, *, reads: bool, trust_pages: bool = False) -> Permission | None:
    """What holds for a tool nobody set anything for; None if it depends on whose browser the call reaches.

    In a browser of the hub's own everything runs by itself; in a person's own, what acts asks. A page's word that a
    tool only reads is its own claim. What belongs to an external server acts outside of any browser, so it asks.
    """
    if kind == "hub":
        return "auto"
    if reads and (kind != "page" or trust_pages):
        return "auto"
    return "ask" if kind == "upstream" else None
