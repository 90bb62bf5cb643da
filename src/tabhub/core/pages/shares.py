"""How many tools a document may list: shares by tab, embedded site, site and in total, fair between sites.

Owns the accounts that a document's tools count towards, and which sites give way when all of them together are too
many: those with the most, so that a site with few tools keeps them whatever others do. Knows no tools, only sizes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from operator import itemgetter
from typing import NamedTuple, TypeVar

from tabhub.limits import Limits

_Account = TypeVar("_Account", bound=Hashable)


class Share(NamedTuple):
    """A number of tools and the bytes of their definitions."""

    tools: int = 0
    size: int = 0

    def plus(self, other: Share) -> Share:
        return Share(self.tools + other.tools, self.size + other.size)

    def minus(self, other: Share) -> Share:
        return Share(max(self.tools - other.tools, 0), max(self.size - other.size, 0))

    def within(self, other: Share) -> Share:
        return Share(min(self.tools, other.tools), min(self.size, other.size))


NOTHING = Share()


@dataclass(frozen=True, slots=True)
class Place:
    """Where a document is, as far as its share depends on it."""

    tab_id: int
    top: bool
    """Whether it is the tab's own page, and no frame in it."""
    site: str
    embedded: bool
    """Whether the tab's own page is of another site."""


class PageShares:
    """What every site and tab uses of its share."""

    def __init__(self, limits: Limits) -> None:
        self._document = Share(limits.page_tools, limits.page_bytes)
        self._embedded = Share(limits.page_embedded_tools, limits.page_embedded_bytes)
        self._tab = Share(limits.page_tab_tools, limits.page_tab_bytes)
        self._site = Share(limits.page_site_tools, limits.page_site_bytes)
        self._all = Share(limits.page_tools_all, limits.page_bytes_all)
        self._used: dict[tuple[str | int, ...], Share] = {}
        self._sites: dict[str, Share] = {}
        self._total = NOTHING

    def __len__(self) -> int:
        return len(self._used) + len(self._sites)

    def room(self, place: Place) -> Share:
        """What a document may list by all shares but the total."""
        room = self._document.within(self._site.minus(self.of_site(place.site)))
        for account, most in self._accounts(place):
            room = room.within(most.minus(self._used.get(account, NOTHING)))
        return room

    def add(self, place: Place, share: Share) -> None:
        """Count a document's tools; a negative share takes them back."""
        if share != NOTHING:
            for account, _ in self._accounts(place):
                _add(self._used, account, share)
            _add(self._sites, place.site, share)
            self._total = self._total.plus(share)

    @property
    def all_fit(self) -> bool:
        return self._total.within(self._all) == self._total

    def of_site(self, site: str) -> Share:
        return self._sites.get(site, NOTHING)

    def overdrawn(self) -> dict[str, Share]:
        """The sites that have to give way, the largest first, each with the least it keeps; empty if all fit."""
        if self.all_fit:
            return {}
        tools = _fair_part((share.tools for share in self._sites.values()), self._all.tools)
        size = _fair_part((share.size for share in self._sites.values()), self._all.size)
        most = Share(tools, size)
        largest = sorted(self._sites.items(), key=itemgetter(1), reverse=True)
        return {site: most for site, used in largest if used.within(most) != used}

    def _accounts(self, place: Place) -> list[tuple[tuple[str | int, ...], Share]]:
        found: list[tuple[tuple[str | int, ...], Share]] = [(("tab", place.tab_id), self._tab)]
        if not place.top:
            found.append((("frames", place.tab_id), self._tab.minus(self._document)))
        if place.embedded:
            found.append((("embedded", place.tab_id, place.site), self._embedded))
        return found


def _add(used: dict[_Account, Share], account: _Account, share: Share) -> None:
    now = used.get(account, NOTHING).plus(share)
    if now == NOTHING:
        del used[account]
    else:
        used[account] = now


def _fair_part(uses: Iterable[int], most: int) -> int:
    """The most that each may use so that all together use no more than `most`; who uses less keeps all."""
    ordered = sorted(uses)
    left = most
    for place, use in enumerate(ordered):
        part = left // (len(ordered) - place)
        if use > part:
            return part
        left -= use
    return most
