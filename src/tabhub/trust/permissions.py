"""Permissions: whether a call may run, must not, or needs an approval.

Owns the lookup in the settings, most specific first (the tool, its source, the default; at each step the client's own
settings before everyone's), the level of tools without a setting, what a site rule changes, and the decision on a call.
Does not know how a person is asked. Tables are built once per configuration.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, get_args

from tabhub.config.permissions import Permission, PermissionSettings
from tabhub.config.settings import Config
from tabhub.errors import PermissionDenied
from tabhub.trust.actions import AROUND_SITES, LEASE_TOOLS, PRIVATE, phrase
from tabhub.trust.approvals import SKIPPED, Allowed, Approval, Ask, Why
from tabhub.trust.grants import Scope as GrantScope
from tabhub.trust.site_rules import SiteRule

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


@dataclass(frozen=True, slots=True)
class Verdict:
    """The permission of one tool for one client."""

    level: Permission | None
    """None: it depends on whose browser the call reaches."""
    why: Why = "permission"
    message: str = ""
    diff: str | None = None
    own: bool = False
    """Whether the level was set for the tool itself."""


def tool_verdict(
    permissions: Permissions, tool: ToolFacts, source: str, names: Sequence[str], client: str | None
) -> Verdict:
    """What holds for a tool by the settings, or without any by what it does."""
    stated = permissions.stated(source, names, client)
    return default_verdict(tool) if stated is None else Verdict(stated.level, own=stated.scope == "tool")


def default_verdict(tool: ToolFacts) -> Verdict:
    """What holds for a tool without settings."""
    explained = tool.private and tool.reads
    message = f"{tool.name} would {phrase(tool.kind)}, which needs approval also for reading." if explained else ""
    return Verdict(default_level(tool), message=message)


def apply_site_rule(tool: ToolFacts, verdict: Verdict, rule: SiteRule | None) -> Verdict | PermissionDenied:
    """What holds for a tool on a site. The stricter of tool and site counts, but `act` also answers for tools without a
    setting of their own."""
    if rule is None or verdict.level == "off":
        return verdict
    if rule.level == "block" or (rule.level == "read" and not tool.reads and tool.kind not in AROUND_SITES):
        return site_denied(tool.name, rule)
    if rule.level == "ask" and (not tool.reads or tool.private):
        message = verdict.message or f"{tool.name} needs approval on {rule.pattern}, by your site rule."
        return Verdict("ask", verdict.why, message, verdict.diff)
    loosens = rule.level == "act" and not tool.private and tool.source != "upstream"
    if loosens and not verdict.own and verdict.why == "permission":
        return Verdict("auto")
    return verdict


def site_denied(name: str, rule: SiteRule) -> PermissionDenied:
    sites = "every site" if not rule.pattern.host else str(rule.pattern)
    agent = f" --agent {rule.agent}" if rule.agent is not None else ""
    may = "blocks agents on" if rule.level == "block" else "lets agents only read on"
    return PermissionDenied(
        f"{name} was not run: the person {may} {sites}.",
        hint=f"Nothing was sent. Continue without it; only they can change the rule: "
        f"tabhub site remove '{rule.pattern}'{agent}",
        data={"siteRule": str(rule)},
    )


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
    earlier: Approval | None
    """An approval for the session or for good that covers the call."""
    skipped: bool
    dataflow: str
    """The setting: ask, warn or off."""
    setting_name: str
    definition: str
    scope: tuple[GrantScope, ...] = ()
    """What an approval beyond this call would cover; empty if that is not known."""


def decide(call: CallFacts) -> Allowed | Ask:
    verdict, level, crossing, steps = call.verdict, call.level, bool(call.flow.sites), call.steps_to_ask
    if call.skipped:
        return Allowed(SKIPPED)
    if not steps:
        if level == "ask" and call.earlier is not None:
            if not crossing:
                return Allowed(call.earlier)
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
        scope=call.scope,
        this_call_only=bool(steps) or not call.scope,
    )
