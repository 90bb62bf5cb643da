"""Counts of the calls of one hub: by plugin, server or site, and over the last day by the minute.

Owns how many series `/metrics` has. Plugins and servers are the person's choice and always have a series; sites that
offer tools come and go, so their series are bounded, and fair: a new site gets one while another has more.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Any

from tabhub.config.public_suffixes import site_of

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Upper bounds, in seconds, of the histogram of durations."""
OTHERS = "other sites"
"""The series of all sites without one of their own."""
_DAY_MINUTES = 24 * 60


@dataclass(slots=True)
class Series:
    """Counts of the calls of one plugin or source."""

    ok: int = 0
    failed: int = 0
    seconds: float = 0.0
    buckets: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))

    def merge(self, other: Series) -> None:
        self.ok += other.ok
        self.failed += other.failed
        self.seconds += other.seconds
        self.buckets = [own + more for own, more in zip(self.buckets, other.buckets, strict=True)]


class Figures:
    """Counts of calls."""

    def __init__(self, max_sites: int) -> None:
        self.series: dict[str | None, Series] = {}
        """By plugin, server or origin; under None those of earlier runs."""
        self._max_sites = max_sites
        self._origins: dict[str, list[str]] = {}
        """The origins that have a series, by site."""
        self._minutes: dict[int, list[int]] = {}
        """The failed and the successful calls of each minute."""
        self._minute = -1
        self._counts = [0, 0]
        """Of the minute of the last call."""

    def add(self, plugin: str | None, now: float, seconds: float, *, ok: bool, page: bool = False) -> None:
        """Count a call; `page` says that a page offers the tool, and `plugin` is its origin."""
        series = self.series.get(plugin)
        if series is None:
            series = self._series_of_site(plugin or "") if page else self.series.setdefault(plugin, Series())
        if ok:
            series.ok += 1
        else:
            series.failed += 1
        series.seconds += seconds
        series.buckets[bisect_left(BUCKETS, seconds)] += 1
        minute = now // 60
        if minute != self._minute:
            self._begin_minute(int(minute))
        self._counts[ok] += 1

    def _begin_minute(self, minute: int) -> None:
        self._minute = minute
        self._counts = self._minutes.setdefault(minute, [0, 0])
        while len(self._minutes) > _DAY_MINUTES + 60:
            del self._minutes[min(self._minutes)]

    @property
    def notice(self) -> str | None:
        """What is counted together, if anything is."""
        others = self.series.get(OTHERS)
        if others is None:
            return None
        return (
            f"/metrics has {self._max_sites} series of sites, which is the maximum (limits.metric_sites). "
            f"{others.ok + others.failed} calls of further sites are counted together as `{OTHERS}`."
        )

    def summary(self, now: float) -> dict[str, Any]:
        """The figures of `/health`."""
        success = sum(series.ok for series in self.series.values())
        failure = sum(series.failed for series in self.series.values())
        seconds = sum(series.seconds for series in self.series.values())
        since = int(now) // 60 - _DAY_MINUTES
        day = [counts for minute, counts in self._minutes.items() if minute > since]
        day_failure, day_success = sum(counts[0] for counts in day), sum(counts[1] for counts in day)
        return {
            "totalInvocations": success + failure,
            "successCount": success,
            "failureCount": failure,
            "last24h": {"total": day_failure + day_success, "success": day_success, "failure": day_failure},
            "avgDurationMs": round(seconds * 1000 / (success + failure)) if success + failure else 0,
        }

    def _series_of_site(self, origin: str) -> Series:
        """The series for a first call: a new one, or that of all other sites."""
        site = site_of(origin)
        if sum(map(len, self._origins.values())) >= self._max_sites and not self._make_room(site):
            return self.series.setdefault(OTHERS, Series())
        self._origins.setdefault(site, []).append(origin)
        return self.series.setdefault(origin, Series())

    def _make_room(self, site: str) -> bool:
        """Take a series from the site with the most, unless this one would then have more."""
        most = max(self._origins, key=lambda each: len(self._origins[each]), default=site)
        if len(self._origins.get(most, ())) <= len(self._origins.get(site, ())) + 1:
            return False
        self.series.setdefault(OTHERS, Series()).merge(self.series.pop(self._origins[most].pop()))
        return True
