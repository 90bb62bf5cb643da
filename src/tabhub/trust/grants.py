"""Grants: approvals that hold until they are revoked, each for an agent, a kind of action and a site.

Owns what a grant covers and how it reads. Grants are stored by store.grants; calls.approvals decides when one counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from tabhub.trust.actions import phrase
from tabhub.trust.tokens import UNNAMED

ANY = "*"
"""As agent or site of a grant: every one."""


class Scope(NamedTuple):
    """What one action needs: its kind, and the site it is done on."""

    kind: str
    site: str | None
    """An origin; None for what is not done on a site, or only on those of its own source."""


class Grant(msgspec.Struct, frozen=True, rename="camel"):
    """One approval that lasts."""

    id: str
    agent: str | None
    """The name of its token; None: agents without one; ANY: every agent."""
    kind: str
    site: str | None
    """An origin, None where the kind has no site, or ANY."""
    created: float
    approved_by: str

    def covers(self, agent: str | None, scope: Scope) -> bool:
        return self.agent in (ANY, agent) and self.kind == scope.kind and self.site in (ANY, scope.site)

    @property
    def text(self) -> str:
        return grant_text(self.agent, (Scope(self.kind, self.site),))


def find(grants: Iterable[Grant], agent: str | None, scope: Scope) -> Grant | None:
    return next((grant for grant in grants if grant.covers(agent, scope)), None)


def grant_text(agent: str | None, scopes: Iterable[Scope]) -> str:
    """What an agent may always do, as a sentence without its end."""
    who = "every agent" if agent == ANY else "agents without a token" if agent in (None, UNNAMED) else agent
    return f"{who} may always {' and '.join(_done(scope) for scope in scopes)}"


def _done(scope: Scope) -> str:
    place = "" if scope.site is None else " on every site" if scope.site == ANY else f" on {scope.site}"
    return f"{phrase(scope.kind)}{place}"
