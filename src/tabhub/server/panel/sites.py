"""Site rules and grants in the panel: what it shows of them, and the methods that change them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from tabhub.calls.approvals.memory import ApprovalMemory
from tabhub.calls.approvals.permission_check import PermissionCheck
from tabhub.config.sensitive_sites import CATEGORIES
from tabhub.config.sites import EVERYONE
from tabhub.core.registry import Registry
from tabhub.errors import InvalidParams
from tabhub.links.extension import ExtensionLink, Handler
from tabhub.server.settings import Settings
from tabhub.store import grants
from tabhub.store.home import Home
from tabhub.trust.site_rules import pattern_of
from tabhub.wire.panel import OneGrant, OnePage, SensitiveSites, SiteLevel

_EXPLAINED = ("browser_snapshot", "browser_click_element", "browser_get_cookies")
"""One tool for each thing a person may wonder about: reading, acting, and cookies."""


@dataclass(frozen=True, slots=True)
class SitePanel:
    """The person's site rules and grants."""

    home: Home
    settings: Settings
    permission: PermissionCheck
    memory: ApprovalMemory
    registry: Registry

    def methods(self) -> dict[str, Handler]:
        return {
            "sites.set": self._set,
            "sites.suggestion": self._answer_suggestion,
            "grants.revoke": self._revoke,
            "sites.page": self._page,
        }

    def state(self) -> dict[str, Any]:
        config = self.settings.current
        return {
            "siteRules": [
                {"pattern": str(rule.pattern), "agent": rule.agent, "level": rule.level}
                for rule in self.permission.sites.rules
            ],
            "grants": [{**msgspec.to_builtins(grant), "text": grant.text} for grant in self.memory.grants.all()],
            "suggestedSites": [
                {"category": name, "title": category.title, "patterns": list(category.missing(config.sites))}
                for name, category in CATEGORIES.items()
            ]
            if config.suggest_sites
            else None,
        }

    def version(self) -> Any:
        """Differs when something shown here has changed."""
        return self.permission.sites, self.memory.grants.all()

    def _set(self, _link: ExtensionLink, wanted: SiteLevel) -> dict[str, Any]:
        self.settings.set_site(wanted.pattern, wanted.agent, wanted.level)
        return {"ok": True}

    def _answer_suggestion(self, _link: ExtensionLink, wanted: SensitiveSites) -> dict[str, Any]:
        if wanted.category is None:
            self.settings.set_at(("suggestSites",), False)
            return {"ok": True}
        category = CATEGORIES.get(wanted.category)
        if category is None:
            raise InvalidParams(f"There is no category {wanted.category[:60]!r}.")
        self.settings.block_sites(category.missing(self.settings.current.sites))
        return {"ok": True}

    def _revoke(self, _link: ExtensionLink, wanted: OneGrant) -> dict[str, Any]:
        grants.revoke(self.home, wanted.id)
        return {"ok": True}

    def _page(self, _link: ExtensionLink, page: OnePage) -> dict[str, Any]:
        """The pattern for the page's site, everyone's level for it, and what agents may do there, as sentences."""
        pattern = pattern_of(page.url)
        if pattern is None:
            return {"pattern": None, "level": None, "explanations": []}
        entry = next((each for each in self.settings.current.sites if each.pattern == pattern), None)
        tools = (self.registry.by_name[name].tool for name in _EXPLAINED if name in self.registry.by_name)
        return {
            "pattern": str(pattern),
            "level": entry.levels.get(EVERYONE) if entry is not None else None,
            "explanations": [self.permission.explain(tool, page.agent, page.url) for tool in tools],
        }
