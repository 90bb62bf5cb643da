"""Site rules and grants in the panel: what it shows of them, and the methods that change them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from tabhub.calls.approvals.memory import ApprovalMemory
from tabhub.calls.approvals.permission_check import PermissionCheck
from tabhub.config.sensitive_sites import CATEGORIES
from tabhub.core.registry import Registry
from tabhub.errors import InvalidParams
from tabhub.links.extension import ExtensionLink, Handler
from tabhub.server.settings import Settings
from tabhub.store import grants
from tabhub.store.home import Home
from tabhub.wire.panel import Explain, OneGrant, SensitiveSites, SiteLevel


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
            "permissions.explain": self._explain,
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

    def _explain(self, _link: ExtensionLink, wanted: Explain) -> dict[str, Any]:
        found = self.registry.by_name.get(wanted.tool)
        if found is None:
            raise self.registry.unknown(wanted.tool)
        return {"explanation": self.permission.explain(found.tool, wanted.agent, wanted.url)}
