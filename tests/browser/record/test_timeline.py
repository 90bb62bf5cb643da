"""Trace summaries: own time by kind, long tasks and functions; invalid traces are reported."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from tabhub.browser.record.timeline import summarize

MAIN = {"name": "thread_name", "ph": "M", "pid": 1, "tid": 2, "args": {"name": "CrRendererMain"}}


def event(name: str, ts: int, dur: int, **more: Any) -> dict[str, Any]:
    return {"name": name, "ph": "X", "pid": 1, "tid": 2, "ts": ts, "dur": dur, **more}


def summary(*events: Any) -> dict[str, Any]:
    return summarize(orjson.dumps({"traceEvents": [MAIN, *events]}))


def test_time_counts_for_the_innermost_kind() -> None:
    facts = summary(
        event("RunTask", 0, 100_000),
        event("FunctionCall", 10_000, 60_000),
        event("Layout", 20_000, 20_000),
        event("SomethingElse", 45_000, 5_000),
        event("RunTask", 200_000, 10_000),
        event("FunctionCall", 0, 999_000, tid=3),
    )
    assert facts["milliseconds"] == {"other": 50.0, "scripting": 40.0, "layout": 20.0}
    assert facts["longTasks"] == {"count": 1, "longest": 100.0, "total": 100.0}


def test_functions_are_ranked_by_sampled_time() -> None:
    frame = {"functionName": "slow", "url": "https://x.example/a.js", "lineNumber": 9}
    nodes = [{"id": 1, "callFrame": frame}, {"id": 2, "callFrame": {"functionName": "(idle)"}}]
    first = {"cpuProfile": {"nodes": nodes, "samples": [1, 2]}, "timeDeltas": [1000, 5000]}
    second = {"cpuProfile": {"samples": [1, 3]}, "timeDeltas": [2000, 1]}
    chunks = [
        {"name": "ProfileChunk", "ph": "P", "pid": 1, "id": "0x1", "args": {"data": data}} for data in (first, second)
    ]
    assert summary(*chunks)["functions"] == [
        {"function": "slow", "url": "https://x.example/a.js", "line": 10, "milliseconds": 3.0}
    ]


@pytest.mark.parametrize("trace", [b"", b"[]", b"{}", b'{"traceEvents":5}', b"\xff"])
def test_an_invalid_trace_is_reported(trace: bytes) -> None:
    assert "could not be summarized" in summarize(trace)["note"]


def test_events_of_any_shape_are_tolerated() -> None:
    facts = summary(5, None, {}, event("Layout", 0, 1) | {"ts": "x"}, {"name": "ProfileChunk", "args": None})
    assert facts["milliseconds"] == {}
