"""Verdicts: what holds for a tool by the settings, and what a site rule changes of that.

Owns how tool and site combine: the stricter counts, except that `act` answers for tools without a setting of their own.
"""

from __future__ import annotations

from collections.abc import Sequence

from tabhub.errors import PermissionDenied
from tabhub.trust.actions import AROUND_SITES, phrase
from tabhub.trust.approvals import Verdict
from tabhub.trust.permissions import Permissions, ToolFacts, default_level
from tabhub.trust.site_rules import SiteRule


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
