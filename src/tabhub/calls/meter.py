"""Counters of the hub, kept as plain numbers on the hot path and read by /metrics and /health."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


@dataclass(slots=True)
class Series:
    """Calls of one plugin or source."""

    ok: int = 0
    failed: int = 0
    seconds: float = 0.0
    buckets: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))


class Meter:
    """What has been counted since the hub started."""

    def __init__(self) -> None:
        self.series: dict[str, Series] = {}
        self.refused: dict[int, int] = {}

    def call(self, plugin: str, seconds: float, *, ok: bool) -> None:
        """Count one answered call."""
        series = self.series.get(plugin)
        if series is None:
            series = self.series[plugin] = Series()
        if ok:
            series.ok += 1
        else:
            series.failed += 1
        series.seconds += seconds
        series.buckets[bisect_left(BUCKETS, seconds)] += 1

    def refuse(self, status: int) -> None:
        """Count one request the guard turned away."""
        self.refused[status] = self.refused.get(status, 0) + 1
