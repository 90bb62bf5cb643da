"""Summary of a performance trace: time by kind of work, long tasks, slowest functions. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import orjson

_LARGEST = 32 * 1024 * 1024
_LONG = 50_000
"""Microseconds from which a task of the main thread counts as long."""
_KINDS = {
    "scripting": """EvaluateScript FunctionCall v8.compile v8.compileModule v8.evaluateModule RunMicrotasks TimerFire
        FireAnimationFrame FireIdleCallback EventDispatch XHRReadyStateChange XHRLoad V8.Execute""",
    "layout": """Layout UpdateLayoutTree RecalculateStyles HitTest InvalidateLayout ScheduleStyleRecalculation
        IntersectionObserverController::computeIntersections PrePaint UpdateLayer UpdateLayerTree""",
    "painting": """Paint PaintImage PaintSetup Layerize Commit CompositeLayers RasterTask DecodeImage ResizeImage
        DrawLazyPixelRef""",
    "loading": """ParseHTML ParseAuthorStyleSheet ResourceReceivedData ResourceReceiveResponse ResourceFinish
        ResourceSendRequest CommitLoad""",
    "garbage": "MajorGC MinorGC V8.GCScavenger V8.GCCompactor V8.GCIncrementalMarking V8.GC_MC_BACKGROUND_MARKING",
}
_KIND_OF = {name: kind for kind, names in _KINDS.items() for name in names.split()}


def visible_events(trace: bytes, hidden: Callable[[str], bool]) -> bytes:
    """The trace without the events whose JSON is hidden; empty if it cannot be read."""
    try:
        read = orjson.loads(trace)
        events = [event for event in read["traceEvents"] if not hidden(orjson.dumps(event).decode())]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return b'{"traceEvents":[]}'
    return orjson.dumps({**read, "traceEvents": events})


def summarize(trace: bytes) -> dict[str, Any]:
    if len(trace) > _LARGEST:
        return {"note": "The trace is too large to be summarized."}
    try:
        events = [event for event in orjson.loads(trace)["traceEvents"] if isinstance(event, dict)]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return {"note": "The trace could not be summarized: it has an unexpected format."}
    threads = {
        (event.get("pid"), event.get("tid"))
        for event in events
        if event.get("name") == "thread_name" and event.get("args") == {"name": "CrRendererMain"}
    }
    times: Counter[str] = Counter()
    long: list[float] = []
    for thread in threads:
        work = [event for event in events if _timed(event) and (event.get("pid"), event.get("tid")) == thread]
        work.sort(key=lambda event: (event["ts"], -event["dur"]))
        _walk(work, times)
        long += [event["dur"] for event in work if event.get("name") == "RunTask" and event["dur"] > _LONG]
    return {
        "milliseconds": {kind: round(spent / 1000, 1) for kind, spent in times.most_common()},
        "longTasks": {
            "count": len(long),
            "longest": round(max(long, default=0) / 1000, 1),
            "total": round(sum(long) / 1000, 1),
        },
        "functions": [
            {"function": name, "url": url, "line": line, "milliseconds": round(spent / 1000, 1)}
            for (name, url, line), spent in _functions(events).most_common(10)
        ],
    }


def _timed(event: dict[str, Any]) -> bool:
    return event.get("ph") == "X" and type(event.get("ts")) in (int, float) and type(event.get("dur")) in (int, float)


def _walk(work: list[dict[str, Any]], times: Counter[str]) -> None:
    """Add each event's own time to its kind; an event without a kind counts for the event around it."""
    stack: list[tuple[float, str]] = []  # when it ends, its kind
    for event in work:
        begun, spent, name = event["ts"], event["dur"], str(event.get("name"))
        while stack and stack[-1][0] <= begun:
            stack.pop()
        kind = _KIND_OF.get(name) or (stack[-1][1] if stack else "other")
        if stack:
            times[stack[-1][1]] -= spent
        times[kind] += spent
        stack.append((begun + spent, kind))


def _functions(events: list[dict[str, Any]]) -> Counter[tuple[str, str, int]]:
    """Sampled time per function, by name, URL and line."""
    spent: Counter[tuple[str, str, int]] = Counter()
    names: dict[tuple[Any, Any, Any], tuple[str, str, int]] = {}
    for event in events:
        if event.get("name") != "ProfileChunk":
            continue
        data = (event.get("args") or {}).get("data") or {}
        profile, whose = data.get("cpuProfile") or {}, (event.get("pid"), event.get("id"))
        for node in profile.get("nodes") or []:
            frame = node.get("callFrame") or {}
            line = frame.get("lineNumber")
            place = (str(frame.get("functionName", ""))[:100], str(frame.get("url", ""))[:300])
            names[(*whose, node.get("id"))] = (*place, line + 1 if type(line) is int else 0)
        for node_id, delta in zip(profile.get("samples") or [], data.get("timeDeltas") or [], strict=False):
            name = names.get((*whose, node_id))
            # (idle), (program) and (root) are not functions of the page.
            if name is not None and type(delta) is int and (name[1] or not name[0].startswith("(")):
                spent[name] += delta
    return spent
