"""Page tools that stay listed after their page is closed, because the page asked for it.

Owns how many are kept: beyond the maximum the site with the most loses its oldest, so that no site can push out
another's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tabhub.config.public_suffixes import site_of
from tabhub.core.pages.shares import NOTHING, Share
from tabhub.limits import Limits

if TYPE_CHECKING:
    from tabhub.core.pages.tools import PageTool


@dataclass(frozen=True, slots=True)
class CachedTool:
    """A tool that stays listed even if no open page declares it."""

    origin: str
    url: str
    tool: PageTool
    seen: float


class CachedTools:
    """The cached tools of all sites."""

    def __init__(self, limits: Limits) -> None:
        self._most = Share(limits.page_cached, limits.page_cached_bytes)
        self._tools: dict[str, dict[str, CachedTool]] = {}
        self._shares: dict[str, Share] = {}
        """By site."""
        self._total = NOTHING

    def __bool__(self) -> bool:
        return bool(self._tools)

    def __iter__(self) -> Iterator[CachedTool]:
        return (cached for tools in self._tools.values() for cached in tools.values())

    def origins(self) -> set[str]:
        return set(self._tools)

    def of(self, origin: str) -> dict[str, CachedTool]:
        return self._tools.get(origin, {})

    def add(self, cached: CachedTool) -> None:
        if (known := self.of(cached.origin).get(cached.tool.name)) is not None:
            self._remove(known)
        self._tools.setdefault(cached.origin, {})[cached.tool.name] = cached
        self._count(cached, 1)
        while (excess := self._total.minus(self._most)) != NOTHING:
            by = 0 if excess.tools else 1
            largest = max(self._shares, key=lambda site: self._shares[site][by])
            self._remove(min((each for each in self if site_of(each.origin) == largest), key=lambda each: each.seen))

    def mark_seen(self, origin: str, name: str, now: float) -> None:
        if (cached := self.of(origin).get(name)) is not None:
            self._tools[origin][name] = replace(cached, seen=now)

    def _remove(self, cached: CachedTool) -> None:
        tools = self._tools[cached.origin]
        del tools[cached.tool.name]
        if not tools:
            del self._tools[cached.origin]
        self._count(cached, -1)

    def _count(self, cached: CachedTool, sign: int) -> None:
        site, share = site_of(cached.origin), Share(sign, sign * cached.tool.size)
        self._total = self._total.plus(share)
        now = self._shares.get(site, NOTHING).plus(share)
        if now == NOTHING:
            del self._shares[site]
        else:
            self._shares[site] = now
