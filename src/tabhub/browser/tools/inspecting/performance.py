"""Performance tools: load metrics and resource use; traces between two calls."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import urlsplit

from tabhub.browser.driver.cdp_values import parse_object, parse_objects
from tabhub.browser.driver.frames import main_frame
from tabhub.browser.record.timeline import summarize, visible_events
from tabhub.browser.schemas import boolean, free_object, list_of, text
from tabhub.browser.tool_spec import Call, data_result, tool
from tabhub.core.tools import ToolResult

_METRICS = {
    "JSHeapUsedSize": "heapBytes",
    "Nodes": "nodes",
    "Documents": "documents",
    "Frames": "frames",
    "JSEventListeners": "eventListeners",
    "LayoutCount": "layouts",
    "RecalcStyleCount": "styleRecalculations",
}
_DURATIONS = {
    "LayoutDuration": "layout",
    "RecalcStyleDuration": "style",
    "ScriptDuration": "script",
    "TaskDuration": "all",
}


@tool(
    "browser_performance_metrics",
    "Measure performance",
    "Load metrics (TTFB, FCP, LCP, CLS, long tasks, load) and resource use: heap, nodes, layout and script time. "
    "Browsers measure paints (FCP, LCP) only for visible tabs.",
    output={
        "tabId": "integer",
        "url": "string",
        "vitals": free_object("In ms; cls is a score. Missing if not measured."),
        "longTasks?": "object",
        "resources?": free_object("count, and bytes transferred"),
        "page": free_object("Counts, and heapBytes."),
        "spentMs?": free_object("Main thread time by kind of work."),
        "note?": "string",
    },
    read_only=True,
)
async def performance_metrics(call: Call) -> ToolResult:
    page = await call.page()
    page.cdp_nowait("Performance.enable")
    frame = await main_frame(page)
    counted, vitals = await asyncio.gather(page.cdp("Performance.getMetrics"), frame.evaluate("vitals", {}))
    metrics = parse_objects(parse_object(counted).get("metrics"))
    values = _numbers({str(metric.get("name")): metric.get("value") for metric in metrics})
    facts: dict[str, Any] = {
        "tabId": page.tab_id,
        "url": str(vitals.get("url", ""))[:2000],
        "vitals": _numbers(vitals.get("vitals")),
        "longTasks": _numbers(vitals.get("longTasks")),
        "resources": _numbers(vitals.get("resources")),
        "page": {ours: round(values[theirs]) for theirs, ours in _METRICS.items() if theirs in values},
        "spentMs": {ours: round(values[theirs] * 1000, 1) for theirs, ours in _DURATIONS.items() if theirs in values},
    }
    unseen = vitals.get("hidden") is True and "fcp" not in facts["vitals"]
    notes = (
        "The page is still loading." if vitals.get("ready") != "complete" else "",
        "The tab was never visible, so the browser did not measure paints." if unseen else "",
    )
    return data_result(facts, *notes)


def _numbers(value: Any) -> dict[str, float]:
    return {name[:40]: number for name, number in parse_object(value).items() if type(number) in (int, float)}


@tool(
    "browser_performance_trace",
    "Trace performance",
    "`start` begins tracing a tab; `stop` ends it, writes a trace file for DevTools and summarizes the time: scripts, "
    "layout, painting, long tasks, slowest functions.",
    params={
        "action": {"enum": ["start", "stop"]},
        "filePath?": text("For stop: below the files folder, ending in .json."),
        "overwrite?": boolean("Replace a file that exists (default false)."),
    },
    output={
        "tabId": "integer",
        "tracing": "boolean",
        "filePath?": "string",
        "bytes?": "integer",
        "seconds?": "number",
        "milliseconds?": free_object("Time of the page's main thread by kind of work."),
        "longTasks?": free_object("Tasks above 50 ms: count, longest, total."),
        "functions?": list_of("object", "Where scripts spent most time."),
        "note?": "string",
    },
    repeats_page=True,
)
async def performance_trace(call: Call) -> ToolResult:
    args, box = call.args, call.box
    if args["action"] == "start":
        box.folder.unused_path("trace", ".json")  # fail early if no file can be written
        page = await call.page()
        await box.traces.start(page, call.ctx.session)
        return data_result({"tabId": page.tab_id, "tracing": True})
    path = box.folder.output_path(args["filePath"], (".json",)) if "filePath" in args else None
    page = await call.page()
    path = path or box.folder.unused_path(f"{urlsplit(page.tab.url).hostname or 'page'}-trace", ".json")
    box.folder.check_vacant(path, overwrite=args.get("overwrite", False))
    data, seconds, full = await box.traces.stop(page, call.ctx.session, box.browsers.limits.file_bytes)
    if call.view.active:
        data = await asyncio.to_thread(visible_events, data, call.view.hides_text)
    data = await asyncio.to_thread(call.mask_file, data)
    await asyncio.to_thread(box.folder.write, path, data, overwrite=args.get("overwrite", False))
    facts = {"tabId": page.tab_id, "tracing": False, "filePath": str(path), "bytes": len(data)}
    summary = {"seconds": round(seconds, 3), **await asyncio.to_thread(summarize, data)}
    note = "The trace was full before its end; trace for a shorter time." if full else ""
    return data_result({**facts, **summary}, note, summary.get("note", ""))
