"""Network reading tools: requests with bodies, WebSocket frames, and continuous capture."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any

from tabhub.browser.driver.page import Page
from tabhub.browser.record import bodies, headers
from tabhub.browser.record.recorder import TabRecord, url_matcher
from tabhub.browser.record.traffic import Request
from tabhub.browser.record.visible_records import is_hidden, visible_frames, visible_requests
from tabhub.browser.schemas import boolean, free_object, integer, known, list_of, text
from tabhub.browser.tool_spec import Call, data_result, text_result, tool
from tabhub.browser.tools.inspecting.console import iso_time, open_record, text_by_page
from tabhub.core.tools import ToolResult
from tabhub.errors import CommandFailed, InvalidArguments
from tabhub.trust.redact import redact

_DEFAULT_LIMIT, _DEFAULT_LIMIT_WITH_BODIES = 100, 20
_BODY_LISTED, _BODY_ALONE = 4_000, 100_000
_CLEAR = boolean("Show each only once.")


@tool(
    "browser_enable_network_capture",
    "Capture network",
    "Keeps recording the tab while it is not in use, and keeps small responses across navigations. A tab in use is "
    "always recorded.",
    params={
        "maxRequests?": integer(least=1, most=5000),
        "urlFilter?": text("Only these: part of the URL, or with *.", most=500),
        "maxConsoleLogs?": integer(least=1, most=10_000),
        "maxWsFrames?": integer(least=1, most=5000),
    },
    output={
        "tabId": "integer",
        "capturing": "boolean",
        **dict.fromkeys(("maxRequests?", "maxConsoleLogs?", "maxWsFrames?"), "integer"),
        "recordingSince?": "string",
    },
    idempotent=True,
)
async def enable_capture(call: Call) -> ToolResult:
    page, args = await call.page(), call.args
    await call.box.record.refreshed_record(page)
    record = call.box.record.start_capture(
        page,
        call.ctx.session,
        args.get("urlFilter", ""),
        requests=args.get("maxRequests"),
        console=args.get("maxConsoleLogs"),
        frames=args.get("maxWsFrames"),
    )
    return data_result(
        {
            "tabId": page.tab_id,
            "capturing": True,
            "maxRequests": record.traffic.requests.most,
            "maxConsoleLogs": record.console.most,
            "maxWsFrames": record.traffic.frames.most,
            "recordingSince": iso_time(record.since),
        }
    )


@tool(
    "browser_disable_network_capture",
    "Stop capturing",
    "Ends browser_enable_network_capture; the record can still be read.",
    output={"tabId": "integer", "capturing": "boolean", "requests?": "integer"},
    idempotent=True,
)
async def disable_capture(call: Call) -> ToolResult:
    page = await call.page()
    record = call.box.record.stop_capture(page.key)
    return data_result(
        {
            "tabId": page.tab_id,
            "capturing": False,
            "requests": len(visible_requests(call.view, record, record.traffic.requests)),
        }
    )


@tool(
    "browser_get_network_requests",
    "Network requests",
    "The tab's requests with status and timing, oldest first; secrets are redacted.",
    params={
        "filter?": text("URL part, or with *; type:fetch status:4xx method:POST", most=500),
        "withBodies?": "boolean",
        "limit?": integer("default 100", least=1),
        "clear?": _CLEAR,
    },
    output={"requests": "array"},
    read_only=True,
    repeats_page=True,
)
async def get_requests(call: Call) -> ToolResult:
    args, wanted = call.args, request_filter(call.args.get("filter", ""))
    page, record, reader = await open_record(call)
    there = [r for r in visible_requests(call.view, record, record.traffic.requests.uncleared(reader)) if wanted(r)]
    with_bodies = args.get("withBodies", False)
    shown = there[-args.get("limit", _DEFAULT_LIMIT_WITH_BODIES if with_bodies else _DEFAULT_LIMIT) :]
    paused = call.box.interceptions.pending(page)
    waiting = {p.network_id: p.id for p in paused}
    facts = [call.view.mask_values(_summary(request, waiting.get(request.key[1]))) for request in shown]
    if with_bodies:
        await _add_bodies(call, page, shown, facts)
    notes = _notes(record)
    if left := len(there) - len(shown):
        notes.insert(0, f"{left} older ones are left out; raise limit or filter.")
    recorded = {request.key[1] for request in record.traffic.requests}
    facts += [p.summary() for p in paused if p.network_id not in recorded]
    if args.get("clear"):
        record.traffic.requests.clear(reader)
    lines = text_by_page("requests", ((line.get("page"), _lines(line)) for line in facts), record)
    return text_result(lines, {"requests": facts}, *notes)


@tool(
    "browser_get_network_request",
    "One network request",
    "One request in full: headers (secrets redacted), bodies, timing.",
    params={
        "requestId": text("From browser_get_network_requests, e.g. r12."),
        "part?": {"enum": ["headers", "request", "response", "timing", "all"], "description": "Default all."},
    },
    output={
        "id": "string",
        "url": "string",
        "status?": "integer",
        "requestHeaders?": "object",
        "responseHeaders?": "object",
        "requestBody?": "string",
        "responseBody?": "string",
        "timing?": free_object("Milliseconds."),
    },
    read_only=True,
    repeats_page=True,
)
async def get_request(call: Call) -> ToolResult:
    page, record, _ = await open_record(call)
    part = call.args.get("part", "all")
    request = record.traffic.find(call.args["requestId"])
    if request is None or is_hidden(call.view, record, request):
        newest = visible_requests(call.view, record, record.traffic.requests)[-5:]
        there = ", ".join(f"{r.id} ({r.method} {redact(r.url)[:80]})" for r in newest) or "none recorded"
        raise CommandFailed(
            f"There is no request {call.args['requestId'][:50]!r} in the record of this tab.",
            hint=f"The newest: {there}. browser_get_network_requests lists them all.",
        )
    details = {
        "initiator": request.initiator,
        "statusText": request.status_text,
        "protocol": request.protocol,
        "address": request.address,
        "redirectedTo": request.redirect,
    }
    facts = _summary(request) | {name: redact(value) for name, value in details.items() if value}
    if part in ("headers", "request", "all"):
        facts["requestHeaders"] = headers.redact_headers(request.request_headers)
    if part in ("headers", "response", "all"):
        facts["responseHeaders"] = headers.redact_headers(request.response_headers)
    facts = call.view.mask_values(facts)  # where it was redirected to, and what led to it
    if part in ("request", "all") and request.has_body:
        body = (await bodies.request_body(page, request)).masked(call.mask_text)
        sent = request.request_headers.get("Content-Type", request.request_headers.get("content-type", ""))
        facts["requestBody"] = body.preview(sent.partition(";")[0], _BODY_ALONE)
    if part in ("response", "all"):
        body = (await bodies.response_body(page, request)).masked(call.mask_text)
        facts["responseBody"] = body.preview(request.mime, _BODY_ALONE)
    if part in ("timing", "all"):
        facts["timing"] = timing_phases(request)
    return data_result(facts)


@tool(
    "browser_get_websocket_frames",
    "WebSocket frames",
    "Frames sent and received over the tab's WebSockets, oldest first.",
    params={"clear?": _CLEAR},
    output={"sockets": list_of("object"), "frames": list_of("object"), "note?": "string"},
    read_only=True,
    repeats_page=True,
)
async def get_frames(call: Call) -> ToolResult:
    _, record, reader = await open_record(call)
    frames = []
    for frame in visible_frames(call.view, record, record.traffic.frames.uncleared(reader)):
        truncated = len(frame.data) < (frame.length if frame.opcode == 1 else frame.length * 4 // 3)
        facts = {
            "socket": frame.socket,
            "sent": frame.sent,
            "time": iso_time(frame.at),
            "data": redact(call.mask_text(frame.data)) if frame.opcode == 1 else frame.data,
            "type": {1: "text", 2: "binary, as base64"}.get(frame.opcode, f"opcode {frame.opcode}"),
            "length": frame.length if truncated else None,
        }
        frames.append(known(facts))
    every = [request for request in record.traffic.requests if request.kind == "websocket"]
    sockets = [_summary(request) for request in visible_requests(call.view, record, every)]
    dropped = record.traffic.frames.dropped
    if call.args.get("clear"):
        record.traffic.frames.clear(reader)
    note = f"{dropped} older frames are no longer kept." if dropped else ""
    return data_result({"sockets": sockets, "frames": frames}, note)


def request_filter(terms: str) -> Callable[[Request], bool]:
    """Parse a filter: type:, status: and method: terms, and parts of the URL."""
    tests = [_filter_term(term) for term in terms.split()]
    return lambda request: all(test(request) for test in tests)


def _filter_term(term: str) -> Callable[[Request], bool]:
    name, _, value = term.partition(":")
    wanted = value.lower()
    if name == "type" and wanted:
        return lambda request: request.kind == wanted
    if name == "method" and wanted:
        return lambda request: request.method.lower() == wanted
    if name == "status" and wanted == "failed":
        return lambda request: bool(request.error)
    if name == "status" and wanted:
        if not re.fullmatch(r"[0-9]{3}|[0-9]{2}x|[0-9]xx", wanted):
            raise InvalidArguments(
                f"filter {term!r} is not a status.", hint="Use status:404, status:5xx or status:failed."
            )
        return lambda request: request.status > 0 and str(request.status).startswith(wanted.rstrip("x"))
    matches = url_matcher(term)
    return lambda request: matches(request.url)


def timing_phases(request: Request) -> dict[str, Any]:
    """Duration of each step in milliseconds; steps that did not happen are missing."""
    times = {name: value for name, value in request.timing.items() if value >= 0}
    facts: dict[str, Any] = {"started": iso_time(request.at)}
    for name, begin, end in (
        ("dns", "dnsStart", "dnsEnd"),
        ("connect", "connectStart", "connectEnd"),
        ("ssl", "sslStart", "sslEnd"),
        ("send", "sendStart", "sendEnd"),
        ("wait", "sendEnd", "receiveHeadersEnd"),
    ):
        if begin in times and times.get(end, -1) >= times[begin]:
            facts[name] = round(times[end] - times[begin], 3)
    first = min((times[name] for name in ("dnsStart", "connectStart", "sendStart") if name in times), default=None)
    if first is not None:
        queued = (times.get("requestTime", request.begun) - request.begun) * 1000
        facts["blocked"] = round(max(0.0, queued + first), 3)
    if request.ended is not None and request.answered is not None:
        facts["receive"] = round(max(0.0, request.ended - request.answered) * 1000, 3)
    if request.milliseconds is not None:
        facts["total"] = round(request.milliseconds, 3)
    return facts


def _summary(request: Request, paused: str | None = None) -> dict[str, Any]:
    pending = request.ended is None and not request.error and not request.abandoned
    return known(
        {
            "id": request.id,
            "method": request.method,
            "url": redact(request.url),
            "type": request.kind,
            "page": request.page,
            "status": request.status or None,
            "mime": request.mime or None,
            "bytes": request.size or None,
            "ms": round(request.milliseconds) if request.milliseconds is not None else None,
            "from": request.cached or None,
            "error": request.error or None,
            "pending": True if pending else None,
            "paused": paused if request.ended is None else None,
        }
    )


async def _add_bodies(call: Call, page: Page, shown: list[Request], facts: list[dict[str, Any]]) -> None:
    gate = asyncio.Semaphore(bodies.PARALLEL)

    async def add(request: Request, line: dict[str, Any]) -> None:
        async with gate:
            if request.has_body:
                sent = (await bodies.request_body(page, request)).masked(call.mask_text)
                line["requestBody"] = sent.preview("", _BODY_LISTED)
            got = (await bodies.response_body(page, request)).masked(call.mask_text)
            line["responseBody"] = got.preview(request.mime, _BODY_LISTED)

    await asyncio.gather(*(add(request, line) for request, line in zip(shown, facts, strict=True)))


def _notes(record: TabRecord) -> list[str]:
    notes = []
    if record.traffic.requests.dropped:
        notes.append(f"{record.traffic.requests.dropped} older ones are no longer kept.")
    if record.missed >= 1:
        notes.append(
            f"Nothing was recorded for {record.missed:.0f} s while the tab was not in use;"
            " browser_enable_network_capture records continuously."
        )
    if record.capture is not None and record.capture.url_filter:
        notes.append(f"Only URLs with {record.capture.url_filter!r} are recorded.")
    return notes


def _lines(line: dict[str, Any]) -> list[str]:
    state = line.get("error") or line.get("status") or "pending"
    took = f" {line['ms']}ms" if "ms" in line else ""
    size = f" {line['bytes']}B" if "bytes" in line else ""
    paused = f" PAUSED {line['paused']}" if "paused" in line else ""
    head = f"{line['id']} {line['method']} {state} {line['type']}{took}{size}{paused} {line['url']}"
    return [head, *(f"    {name}: {line[name]}" for name in ("requestBody", "responseBody") if name in line)]
