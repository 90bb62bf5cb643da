"""Why a call would run, be asked about or be denied: one sentence for the panel and `tabhub permissions explain`.

Owns the wording. What decides is looked up where calls are decided: settings, site rules and grants.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tabhub.errors import PermissionDenied
from tabhub.trust.actions import phrase
from tabhub.trust.approvals import Verdict
from tabhub.trust.grants import Grant, Scope, find
from tabhub.trust.permissions import Permissions, ToolFacts
from tabhub.trust.site_rules import SiteRules, site_of
from tabhub.trust.verdicts import apply_site_rule

_EXCEPT = "except in a browser that the hub started"
_FREE, _ASKS, _NEVER = "may, without approval,", "needs approval to", "may not"


class Question(NamedTuple):
    """A call: a tool, how settings name it, the agent, and the page."""

    tool: ToolFacts
    setting: str
    """The name of its source in the settings."""
    names: tuple[str, ...]
    agent: str | None
    url: str | None
    frame: str | None = None
    """The URL of a frame of the page, if it is used there."""


def explain(
    question: Question, verdict: Verdict, permissions: Permissions, rules: SiteRules, grants: Iterable[Grant]
) -> str:
    """`verdict` is what holds for the tool without regard to sites."""
    grants = tuple(grants)
    page = _explain(question, verdict, permissions, rules, grants)
    site = _origin(question.frame)
    if site is None or site == _origin(question.url):
        return page.text
    frame = _explain(question._replace(url=question.frame), verdict, permissions, rules, grants)
    around = _origin(question.url) or "another site"
    both = f"A frame of {site} in a page of {around} is judged by both sites; the stricter rule decides."
    return f"{max(page, frame, key=lambda each: each.strictness).text} {both}"


def _explain(
    question: Question, verdict: Verdict, permissions: Permissions, rules: SiteRules, grants: Iterable[Grant]
) -> _Explained:
    tool, agent, url = question.tool, question.agent, question.url
    rule = rules.rule(url, agent)
    on_site = apply_site_rule(tool, verdict, rule)
    if isinstance(on_site, PermissionDenied):
        return _sentence(question, _NEVER, f"your site rule “{rule}” decides")
    if on_site.level == "off":
        return _sentence(question, _NEVER, _settings(question, verdict, permissions))
    by_rule = rule is not None and on_site != verdict
    reason = f"your site rule “{rule}” decides" if by_rule else _settings(question, verdict, permissions)
    if on_site.level == "auto":
        return _sentence(question, _FREE, reason)
    if permissions.skipped:
        return _sentence(question, _FREE, f"skipPermissions is on, although {reason}")
    if on_site.why == "pin":
        return _sentence(question, _ASKS, "its definition has changed since it was approved")
    origin = _origin(url)
    grant = find(grants, agent, Scope(tool.kind, origin)) or find(grants, agent, Scope(tool.kind, None))
    if grant is not None:
        return _sentence(question, _FREE, f"grant {grant.id} says that {grant.text}")
    return _sentence(question, _ASKS, reason)


class _Explained(NamedTuple):
    strictness: int
    text: str


def _sentence(question: Question, may: str, reason: str) -> _Explained:
    who = "An agent" if question.agent is None else question.agent
    origin = _origin(question.url)
    place = f" on {origin}" if origin is not None else ""
    text = f"{who} {may} {phrase(question.tool.kind)} with {question.tool.name}{place}: {reason}."
    return _Explained((_FREE, _ASKS, _NEVER).index(may), text)


def _settings(question: Question, verdict: Verdict, permissions: Permissions) -> str:
    """Why a level holds that no site rule changed."""
    tool = question.tool
    key = permissions.setting(question.setting, question.names, question.agent)
    if key is not None:
        return f"the setting {key} is {verdict.level}"
    if verdict.level == "auto":
        return "tools that only read run without approval" if tool.reads else "nothing restricts it"
    if tool.private:
        return f"cookies, storage, history and bookmarks need approval, {_EXCEPT}"
    if tool.source == "upstream":
        return "tools of external servers that act need approval"
    return f"tools that act need approval, {_EXCEPT}"


def _origin(url: str | None) -> str | None:
    site = site_of(url) if url is not None else None
    return str(site) if site is not None else None
