"""Metrics, traces and CSS coverage of a real page in a background tab."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from tests.e2e.live import Caller
from tests.e2e.zoo import Zoo
from tests.harness.waiting import eventually


def written(result: dict[str, Any]) -> bytes:
    """The file that a tool wrote."""
    return Path(result["filePath"]).read_bytes()


async def test_metrics_report_load_times_and_resource_use(agent: Caller, zoo: Zoo) -> None:
    await agent.open(zoo.at("see_styles.html"))
    result = await agent.get("browser_performance_metrics")
    assert result["url"] == zoo.at("see_styles.html")
    assert 0 < result["vitals"]["ttfb"] <= result["vitals"]["load"]
    assert result["vitals"]["cls"] == 0
    assert result["page"]["nodes"] > 10
    assert result["page"]["heapBytes"] > 100_000
    assert result["resources"]["count"] >= 1
    assert "never visible" in result["note"]


async def test_paints_of_a_visible_tab_and_long_tasks_are_measured(agent: Caller, zoo: Zoo) -> None:
    await agent.open(zoo.at("see_styles.html"), active=True)
    await agent.run("document.querySelector('#slow').click()")

    async def measured() -> dict[str, Any] | None:
        result: dict[str, Any] = await agent.get("browser_performance_metrics")
        return result if "fcp" in result["vitals"] and result["longTasks"]["count"] else None

    result = await eventually(measured)
    assert result["vitals"]["fcp"] > 0
    assert result["longTasks"]["longest"] >= 100


BUSY = "document.querySelector('#slow').click(); document.body.append('x'); document.body.offsetHeight"


async def test_a_trace_is_written_to_a_file_with_a_summary_of_the_time_spent(guest: Caller, zoo: Zoo) -> None:
    tab = await guest.visit(zoo.at("see_styles.html"))
    assert (await guest.get("browser_performance_trace", action="start"))["tracing"] is True
    again = await guest.fail("browser_performance_trace", action="start")
    assert "has been traced for" in again["text"]
    await guest.run(BUSY)
    result = await guest.get("browser_performance_trace", action="stop", filePath=f"{zoo.port}/a.json")
    trace = orjson.loads(written(result))
    assert len(trace["traceEvents"]) > 20
    assert result["milliseconds"]["scripting"] > 100  # clock: reported of a page that is busy for 120 ms
    assert result["longTasks"]["count"] >= 1
    assert result["longTasks"]["longest"] > 100

    rounds = 1

    async def sampled() -> bool:
        """Whether the page's function was sampled. On a busy machine few samples are taken, so attempts get longer."""
        nonlocal rounds
        rounds = min(2 * rounds, 40)
        await guest.get("browser_performance_trace", action="start")
        await guest.run(f"for (let i = 0; i < {rounds}; i++) document.querySelector('#slow').click()")
        result = await guest.get("browser_performance_trace", action="stop")
        places = [(each["url"], each["line"]) for each in result["functions"]]
        return (zoo.at("see_styles.html"), 15) in places

    await eventually(sampled, within=200)
    none = await guest.fail("browser_performance_trace", action="stop", tabId=tab)
    assert "No trace runs" in none["text"]


async def test_a_second_trace_in_the_same_browser_is_refused(agent: Caller, zoo: Zoo) -> None:
    first = await agent.open(zoo.at("see_styles.html"))
    second = await agent.open(zoo.at("see_styles.html"))
    await agent.get("browser_performance_trace", action="start", tabId=first)
    refused = await agent.fail("browser_performance_trace", action="start", tabId=second)
    assert "one trace at a time" in refused["text"]
    await agent.get("browser_close_tab", tabId=first)
    # Closing a tab ends its trace.
    await agent.get("browser_performance_trace", action="start", tabId=second)
    result = await agent.get("browser_performance_trace", action="stop", tabId=second)
    assert Path(result["filePath"]).name.startswith("127.0.0.1-trace")


async def test_coverage_grows_with_what_the_page_uses(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("see_styles.html"))
    first = await guest.get("browser_get_css_coverage")
    assert first["started"] is True
    sheets = {sheet["url"].rpartition("/")[2]: sheet for sheet in first["sheets"]}
    assert set(sheets) == {"see_styles.html", "see_styles.css"}
    linked = sheets["see_styles.css"]
    assert 0 < linked["used"] < linked["length"]
    assert linked["percent"] == round(100 * linked["used"] / linked["length"], 1)
    await guest.run("document.querySelector('#box').classList.add('never')")
    second = await guest.get("browser_get_css_coverage")
    assert second["started"] is False
    assert second["used"] > first["used"]
    assert "Cross-site frames" in second["note"]
    await guest.get("browser_navigate_tab", url=zoo.at("see_inner.html"))
    assert (await guest.get("browser_get_css_coverage"))["sheets"] == []
