from __future__ import annotations

from typing import Any

from tabhub.core.tools import BROWSER, Source
from tabhub.limits import Limits
from tabhub.store.audit import AuditLog
from tabhub.store.audit_record import CallRecord
from tabhub.store.call_figures import OTHERS


def counted(*calls: Source, max_sites: int = 4) -> AuditLog:
    log = AuditLog(None, Limits(metric_sites=max_sites))
    for source in calls:
        facts: Any = {"session": "s1", "client": "agent", "via": "mcp", "args_digest": "0", "duration_ms": 20.0}
        log.write(CallRecord(tool="t", plugin=source.key, source=source.label, success=True, **facts))
    return log


def page(origin: str) -> Source:
    return Source("page", origin)


def test_sites_beyond_the_limit_are_counted_together_and_a_notice_says_so() -> None:
    pages = [page(f"https://site{number}.example") for number in range(1000)]
    log = counted(*pages, *pages[:3], page("https://last.example"))
    assert len(log.figures.series) == 5
    assert log.figures.series["https://site0.example"].ok == 2
    assert log.figures.series[OTHERS].ok == 997
    assert log.summary()["totalInvocations"] == 1004
    assert log.figures.notice is not None
    assert "997 calls of further sites are counted together as `other sites`" in log.figures.notice
    assert "limits.metric_sites" in log.figures.notice


def test_subdomains_of_one_site_give_way_to_other_sites_and_no_call_is_lost() -> None:
    flood = [page(f"https://x{number}.flood.example") for number in range(50)]
    log = counted(*flood, page("https://shop.test"), page("https://shop.test"), page("https://mail.test"), *flood)
    assert log.figures.series["https://shop.test"].ok == 2
    assert log.figures.series["https://mail.test"].ok == 1
    assert len([name for name in log.figures.series if "flood" in str(name)]) == 2
    assert log.summary()["totalInvocations"] == 103
    assert sum(log.figures.series[OTHERS].buckets) == log.figures.series[OTHERS].ok


def test_plugins_servers_and_built_in_tools_always_have_a_series() -> None:
    own = [BROWSER, Source("plugin", "slack"), Source("upstream", "files")]
    log = counted(*(page(f"https://site{number}.example") for number in range(20)), *own)
    assert {"browser", "slack", "files"} <= set(log.figures.series)
    assert counted(*own).figures.notice is None
