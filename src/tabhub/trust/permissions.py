"""Permissions: whether a call may run, must not, or needs an approval.

Owns the lookup in the settings, most specific first (the tool, its source, the default; at each step the client's own
settings before everyone's), the level of tools without a setting, and the decision on a call. Does not know how a
person is asked. Tables are built once per configuration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from tabhub.config.permissions import Permission, PermissionSettings
from tabhub.config.settings import Config
from tabhub.trust.approvals import SKIPPED, Allowed, Approval, Ask, Why

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


@dataclass(frozen=True, slots=True)
class Verdict:
    """The permission of one tool for one client."""

    level: Permission | None
    """None: it depends on whose browser the call reaches."""
    why: Why = "permission"
    message: str = ""
    diff: str | None = None


class DataFlow(NamedTuple):
    """Content a call may carry from site to site."""

    sites: tuple[str, ...] = ()
    """The sites that were read."""
    targets: tuple[str, ...] = ()
    """All names of the places acted on."""
    places: tuple[str, ...] = ()
    """One name for each place acted on."""

    def message(self) -> str:
        more = f" and {len(self.sites) - 5} more" if len(self.sites) > 5 else ""
        places = " and ".join(self.places)
        return (
            f"This agent has read {', '.join(self.sites[:5])}{more}, and now acts on {places}: "
            "it may carry content from one to the other."
        )


NO_FLOW = DataFlow()


@dataclass(frozen=True, slots=True)
class CallFacts:
    """What the decision depends on, for a call that is neither off nor auto without conditions."""

    tool: str
    verdict: Verdict
    level: Permission
    flow: DataFlow
    steps_to_ask: Sequence[str]
    """The tools of a batch that need an approval."""
    session_approval: Approval | None
    """An approval for the whole session."""
    skipped: bool
    dataflow: str
    """The setting: ask, warn or off."""
    setting_name: str
    definition: str


def decide(call: CallFacts) -> Allowed | Ask:
    verdict, level, crossing, steps = call.verdict, call.level, bool(call.flow.sites), call.steps_to_ask
    if call.skipped:
        return Allowed(SKIPPED)
    if not steps:
        if level == "ask" and call.session_approval is not None:
            if not crossing:
                return Allowed(call.session_approval)
            level = "auto"
        if level == "auto" and call.dataflow == "warn":
            return Allowed(warn=True)
    messages = [f"{call.tool} would use {', '.join(steps)}, set to ask."] if steps else []
    if verdict.message and (crossing or not steps):
        messages.append(verdict.message)
    if crossing:
        messages.append(call.flow.message())
    return Ask(
        why=verdict.why if steps or level == "ask" else "dataflow",
        message=" ".join(messages) or f"{call.tool} acts, and is set to ask.",
        diff=verdict.diff,
        setting_name=call.setting_name,
        definition=call.definition,
        crossing=call.flow.sites,
        targets=call.flow.targets,
        target=call.flow.places[0] if call.flow.places else None,
        this_call_only=bool(steps),
    )
