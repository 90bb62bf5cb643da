"""`/metrics`: the hub's counters in Prometheus' text format."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from tabhub.calls.engine import Engine
from tabhub.links.browsers import Browsers
from tabhub.store.call_figures import BUCKETS


@dataclass(frozen=True, eq=False)
class _HubCollector:
    """Reads the numbers when they are asked for, so that counting costs nothing else."""

    engine: Engine
    browsers: Browsers
    refusals: Mapping[int, int]

    def collect(self) -> Iterable[Metric]:
        engine, browsers = self.engine, self.browsers
        calls = CounterMetricFamily("tabhub_calls", "Tool calls answered", labels=["plugin", "outcome"])
        seconds = HistogramMetricFamily("tabhub_call_seconds", "Time from call to answer", labels=["plugin"])
        by_plugin = {plugin: series for plugin, series in engine.audit.figures.series.items() if plugin is not None}
        for plugin, series in sorted(by_plugin.items()):
            calls.add_metric([plugin, "ok"], series.ok)
            calls.add_metric([plugin, "failed"], series.failed)
            total, buckets = 0, []
            for bound, count in zip([*map(str, BUCKETS), "+Inf"], series.buckets, strict=True):
                total += count
                buckets.append((bound, total))
            seconds.add_metric([plugin], buckets, series.seconds)
        yield calls
        yield seconds
        refused = CounterMetricFamily("tabhub_refused", "Requests the guard refused", labels=["status"])
        for status, count in sorted(self.refusals.items()):
            refused.add_metric([str(status)], count)
        yield refused
        yield GaugeMetricFamily("tabhub_calls_in_flight", "Calls without an answer yet", value=len(engine.calls))
        yield GaugeMetricFamily("tabhub_tasks", "Tasks of the event loop", value=len(asyncio.all_tasks()))
        yield GaugeMetricFamily("tabhub_sessions", "Open sessions", value=len(engine.sessions))
        yield GaugeMetricFamily("tabhub_tools", "Tools in the catalogue", value=len(engine.registry.tools()))
        yield GaugeMetricFamily("tabhub_browsers", "Connected browsers", value=len(browsers.links()))
        yield GaugeMetricFamily("tabhub_tabs", "Tabs of connected browsers", value=len(browsers.book))
        dropped = sum(link.dropped for link in browsers.links())
        yield GaugeMetricFamily("tabhub_replies_dropped", "Late, doubled or foreign replies", value=dropped)
        yield CounterMetricFamily(
            "tabhub_audit_lost", "Audit lines that never reached the disk", value=engine.audit.lost
        )


def render(engine: Engine, browsers: Browsers, refusals: Mapping[int, int]) -> bytes:
    registry = CollectorRegistry()
    registry.register(_HubCollector(engine, browsers, refusals))
    ProcessCollector(registry=registry)
    return generate_latest(registry)
