"""Matching tabs after the browser, its extension or the hub was disconnected.

Owns when a tab counts as one that was there before. While the browser runs, a tab keeps its id; after a restart of the
browser the ids are new, and only the URL identifies a tab. Both states are passed in. URLs are stored as digests: they
only need to be compared, and may contain private data.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from tabhub.core.tabs import Tab


@dataclass(frozen=True, slots=True)
class TabFingerprint:
    """What identifies a tab after a reconnect."""

    tab_id: int
    browser_id: str
    chrome_id: int
    origin: str | None
    page: str

    @classmethod
    def of(cls, tab: Tab) -> TabFingerprint:
        return cls(tab.tab_id, tab.browser_id, tab.chrome_id, tab.origin, digest(tab.url))

    def matches(self, tab: Tab) -> bool:
        """Whether a tab with the same id in the browser is still that tab: at the same URL, or the same site."""
        return (self.origin is not None and self.origin == tab.origin) or self.page == digest(tab.url)


@dataclass(frozen=True, slots=True)
class TabMatches:
    """The tabs that were found under a new id, and those that were not found."""

    lost: list[int] = field(default_factory=list)
    moved: dict[int, int] = field(default_factory=dict)
    """Old hub id to new."""


def match_tabs(
    before: Mapping[int, TabFingerprint], ids_before: Collection[int], now: Collection[Tab], free: set[int]
) -> TabMatches:
    """Compare the tabs of a browser from before with those now.

    `before` are the tabs of interest by hub id, `ids_before` all tab ids the browser had. A tab is matched by URL alone
    only if the browser was restarted (no tab id is the same), only among the `free` tabs, and only if exactly one
    matches.
    """
    by_chrome_id = {tab.chrome_id: tab for tab in now}
    restarted = not any(chrome_id in by_chrome_id for chrome_id in ids_before)
    matches = TabMatches()
    for tab_id, fingerprint in before.items():
        same = by_chrome_id.get(fingerprint.chrome_id)
        if same is not None and same.tab_id == tab_id and fingerprint.matches(same):
            continue
        found = _find_by_url(fingerprint, now, free) if restarted else None
        if found is None:
            matches.lost.append(tab_id)
        else:
            free.discard(found)
            matches.moved[tab_id] = found
    return matches


def _find_by_url(fingerprint: TabFingerprint, now: Iterable[Tab], free: set[int]) -> int | None:
    if fingerprint.origin is None:
        return None
    found = [tab.tab_id for tab in now if tab.origin == fingerprint.origin and digest(tab.url) == fingerprint.page]
    return found[0] if len(found) == 1 and found[0] in free else None


def digest(url: str) -> str:
    return hashlib.sha256(url.encode("utf-8", "surrogatepass")).hexdigest()[:32]
