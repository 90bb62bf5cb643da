"""The network record of a tab as an HTTP Archive (HAR 1.2), returned or written to a file.

Owns the format. Secrets are redacted, because archives are shared.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterable
from dataclasses import replace
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl

import orjson

from tabhub import __version__
from tabhub.browser.driver.page import Page
from tabhub.browser.record import bodies, headers
from tabhub.browser.record.bodies import Body
from tabhub.browser.record.recorder import TabRecord
from tabhub.browser.record.traffic import Request, WebSocketFrame
from tabhub.browser.record.visible_records import visible_requests
from tabhub.browser.schemas import boolean, known, text
from tabhub.browser.tool_spec import Call, data_result, tool, with_note
from tabhub.browser.tools.inspecting.console import iso_time, open_record
from tabhub.browser.tools.inspecting.network import timing_phases
from tabhub.core.tools import ToolResult
from tabhub.trust.redact import HIDDEN, redact
from tabhub.trust.visibility import EVERYTHING, View

_STEPS = ("blocked", "dns", "connect", "ssl", "send", "wait", "receive")
_BODY, _ALL_BODIES = 1024 * 1024, 32 * 1024 * 1024
_VERSIONS = {"http/1.0": "HTTP/1.0", "http/1.1": "HTTP/1.1", "h2": "HTTP/2", "h3": "HTTP/3"}


@tool(
    "browser_export_har",
    "Export HAR",
    "The tab's recorded requests as HTTP Archive 1.2, secrets redacted; with filePath to a file.",
    params={
        "clear?": boolean("Do not export them again."),
        "includeWebSocketFrames?": "boolean",
        "filePath?": text("Below the files folder, e.g. site.har."),
        "overwrite?": boolean("Replace a file that exists."),
    },
    output={
        "tabId": "integer",
        "entries": "integer",
        "filePath?": "string",
        "bytes?": "integer",
        "har?": "object",
        "note?": "string",
    },
    read_only=True,
    repeats_page=True,
)
async def export_har(call: Call) -> ToolResult:
    args = call.args
    path = call.box.folder.output_path(args["filePath"], (".har", ".json")) if "filePath" in args else None
    page, record, reader = await open_record(call)
    requests = visible_requests(call.view, record, record.traffic.requests.uncleared(reader))
    frames = record.traffic.frames.uncleared(reader) if args.get("includeWebSocketFrames") else []
    frames = [replace(frame, data=call.mask_text(frame.data)) if frame.opcode == 1 else frame for frame in frames]
    body_of = await _load_bodies(call, page, requests)
    archive = har(record, requests, body_of, frames, call.view)
    dropped = record.traffic.requests.dropped
    note = f"{dropped} older requests are no longer kept." if dropped else ""
    facts = with_note({"tabId": page.tab_id, "entries": len(requests)}, note)
    if path is None:
        facts["har"] = archive
    else:
        data = call.mask_file(orjson.dumps(archive, option=orjson.OPT_INDENT_2))
        await asyncio.to_thread(call.box.folder.write, path, data, overwrite=args.get("overwrite", False))
        facts |= {"filePath": str(path), "bytes": len(data)}
    if args.get("clear"):
        record.traffic.requests.clear(reader)
        record.traffic.frames.clear(reader)
    return data_result(facts)


def har(
    record: TabRecord,
    requests: list[Request],
    body_of: dict[Request, tuple[Body, Body]],
    frames: list[WebSocketFrame],
    view: View = EVERYTHING,
) -> dict[str, Any]:
    starts: dict[int, float] = {}
    for request in requests:
        starts.setdefault(request.page, request.at)
    titles = dict(record.pages)
    return {
        "log": {
            "version": "1.2",
            "creator": {"name": "tabhub", "version": __version__},
            "pages": [
                {
                    "startedDateTime": iso_time(at),
                    "id": f"page_{number}",
                    "title": redact(titles.get(number, "")),
                    "pageTimings": {"onContentLoad": -1, "onLoad": -1},
                }
                for number, at in sorted(starts.items())
            ],
            "entries": [_visible_entry(_entry(request, *body_of[request], frames), view) for request in requests],
        }
    }


def _visible_entry(entry: dict[str, Any], view: View) -> dict[str, Any]:
    """An entry whose headers and redirect do not name a site that the agent is kept off."""
    if view.active:
        for part in (entry["request"], entry["response"]):
            part["headers"] = view.mask_values(part["headers"])
        entry["response"]["redirectURL"] = view.mask(entry["response"]["redirectURL"])
    return entry


def _entry(request: Request, sent: Body, got: Body, frames: list[WebSocketFrame]) -> dict[str, Any]:
    timings = timing_phases(request)
    steps: dict[str, float] = {name: timings.get(name, -1) for name in _STEPS}
    for name in ("send", "wait", "receive"):
        steps[name] = max(0, steps[name])
    if steps["blocked"] < 0 and not request.timing and request.milliseconds is not None:
        steps["wait"] = max(0.0, request.milliseconds - steps["receive"])
    # `ssl` is part of `connect`; the rest adds up.
    total = sum(value for name, value in steps.items() if name != "ssl" and value > 0)
    return known(
        {
            "pageref": f"page_{request.page}",
            "startedDateTime": iso_time(request.at),
            "time": round(total, 3),
            "request": _request(request, sent),
            "response": _response(request, got),
            "cache": {},
            "timings": steps,
            "serverIPAddress": request.address.rpartition(":")[0].strip("[]") or None,
            "_resourceType": request.kind,
            "_requestId": request.id,
            "_error": request.error or None,
            "_webSocketMessages": [_frame(frame) for frame in frames if frame.socket == request.id] or None,
        }
    )


def _request(request: Request, sent: Body) -> dict[str, Any]:
    url = redact(request.url)
    query = url.partition("#")[0].partition("?")[2]
    lower_headers = {name.lower(): value for name, value in request.request_headers.items()}
    facts: dict[str, Any] = {
        "method": request.method,
        "url": url,
        "httpVersion": _VERSIONS.get(request.protocol, request.protocol or "unknown"),
        "cookies": _pairs((name, HIDDEN) for name in headers.cookie_names(lower_headers.get("cookie", ""))),
        "headers": _headers(request.request_headers),
        "queryString": _pairs(parse_qsl(query, keep_blank_values=True)),
        "headersSize": -1,
        "bodySize": _posted_size(lower_headers.get("content-length", ""), sent) if request.has_body else 0,
    }
    if request.has_body:
        mime = lower_headers.get("content-type", "")
        facts["postData"] = {"mimeType": mime, "text": headers.redact_body(sent.text or "", mime)}
        if sent.text is None:
            facts["postData"]["comment"] = sent.reason or f"{sent.length} bytes, not text"
    return facts


def _posted_size(content_length: str, sent: Body) -> int:
    """The Content-Length; the text alone would not give the size of a binary body."""
    if content_length.isdecimal():
        return int(content_length[:15])
    return len(sent.text.encode(errors="replace")) if sent.text is not None else -1


def _response(request: Request, got: Body) -> dict[str, Any]:
    # A cached response transfers no body, at most a 304.
    cached = request.status == HTTPStatus.NOT_MODIFIED or request.cached.endswith("cache")
    came = max(0, request.size - request.head) if not cached else 0
    body_size = came if request.ended is not None and not request.error else -1
    content: dict[str, Any] = {"size": got.length or max(0, body_size), "mimeType": request.mime or "x-unknown"}
    if got.text is not None:
        content["size"] = len(got.text.encode(errors="replace"))
        content["text"] = headers.redact_body(got.text, request.mime)
    elif got.data is not None:
        content |= {"text": base64.b64encode(got.data).decode(), "encoding": "base64"}
    else:
        content["comment"] = got.reason
    lower_headers = {name.lower(): value for name, value in request.response_headers.items()}
    cookies = [line.partition("=")[0].strip() for line in lower_headers.get("set-cookie", "").split("\n") if line]
    return {
        "status": request.status,
        "statusText": request.status_text,
        "httpVersion": _VERSIONS.get(request.protocol, request.protocol or "unknown"),
        "cookies": _pairs((name, HIDDEN) for name in cookies),
        "headers": _headers(request.response_headers),
        "content": content,
        "redirectURL": redact(request.redirect),
        "headersSize": request.head or -1,
        "bodySize": body_size,
        "_transferSize": request.size,
    }


def _headers(given: dict[str, str]) -> list[dict[str, str]]:
    """One entry per line: repeated headers are lines of one value."""
    return _pairs((name, line) for name, value in headers.redact_headers(given).items() for line in value.split("\n"))


def _pairs(items: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in items]


def _frame(frame: WebSocketFrame) -> dict[str, Any]:
    data = redact(frame.data) if frame.opcode == 1 else frame.data
    return {"type": "send" if frame.sent else "receive", "time": frame.at, "opcode": frame.opcode, "data": data}


async def _load_bodies(call: Call, page: Page, requests: list[Request]) -> dict[Request, tuple[Body, Body]]:
    """The bodies still available, newest first, up to a total size."""
    gate, body_of, room = asyncio.Semaphore(bodies.PARALLEL), dict[Request, tuple[Body, Body]](), _ALL_BODIES

    async def add(request: Request) -> None:
        nonlocal room
        async with gate:
            sent = await bodies.request_body(page, request)
            large = request.size > _BODY or room <= 0
            got = Body(reason="too large for the archive") if large else await bodies.response_body(page, request)
            if got.length > _BODY:
                got = Body(reason="too large for the archive")
            room -= got.length
            body_of[request] = (sent.masked(call.mask_text), got.masked(call.mask_text))

    await asyncio.gather(*(add(request) for request in reversed(requests)))
    return body_of
