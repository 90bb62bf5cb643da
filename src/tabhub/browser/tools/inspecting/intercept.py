"""Interception tools: pause requests, fulfill or fail them."""

from __future__ import annotations

import base64
from http.client import responses
from typing import Any

from tabhub.browser.driver.page import Page
from tabhub.browser.intercepted_requests import CONTINUE
from tabhub.browser.schemas import integer, list_of, text
from tabhub.browser.tool_spec import Call, data_result, tool
from tabhub.core.tools import ToolResult
from tabhub.errors import CommandFailed, InvalidArguments

_REASONS = [
    "Failed",
    "Aborted",
    "TimedOut",
    "AccessDenied",
    "ConnectionClosed",
    "ConnectionReset",
    "ConnectionRefused",
    "ConnectionAborted",
    "ConnectionFailed",
    "NameNotResolved",
    "InternetDisconnected",
    "AddressUnreachable",
    "BlockedByClient",
    "BlockedByResponse",
]
_PAUSED_ID = text("A paused request: p3, or its r12.")
_OUTPUT = {"tabId": "integer", "requestId": "string", "url?": "string"}


@tool(
    "browser_intercept_requests",
    "Intercept requests",
    "Pauses matching requests of the tab and its frames until fulfilled, failed, or 30 s have passed; lists paused "
    "ones. Call again to see more. While the page itself is paused, navigate with waitUntil none.",
    params={
        "urlPatterns?": list_of(
            text(least=1, most=1000), "With * and ?, e.g. https://site.example/api/*; default all.", least=1, most=50
        )
    },
    output={"tabId": "integer", "urlPatterns": list_of("string"), "paused": list_of("object"), "note?": "string"},
    idempotent=True,
)
async def intercept_requests(call: Call) -> ToolResult:
    page, box = await call.page(), call.box
    before = box.interceptions.patterns(page)
    patterns = tuple(call.args.get("urlPatterns") or before or ("*",))
    note = box.network_overrides.pop_lost_note(page)
    await box.record.refreshed_record(page)
    if box.interceptions.pop_ended(page) and "urlPatterns" not in call.args:
        patterns = ()  # only listing must not start another interception of everything
        note = f"{note} Nothing is intercepted now; call with urlPatterns to start again.".strip()
    elif patterns != before:
        await box.interceptions.start(page, call.ctx.session, patterns)
    now = page.link.loop.time()
    facts: dict[str, Any] = {
        "tabId": page.tab_id,
        "urlPatterns": list(patterns),
        "paused": call.view.mask_values([paused.details(now) for paused in box.interceptions.pending(page)]),
    }
    return data_result(facts, note, box.interceptions.pop_timed_out_note(page))


@tool(
    "browser_fulfill_request",
    "Fulfill a request",
    "Answers a paused request instead of the server.",
    params={
        "requestId": _PAUSED_ID,
        "status": integer(least=100, most=599),
        "headers?": {"type": "object", "additionalProperties": {"type": "string"}, "maxProperties": 100},
        "body?": text("Text.", most=2_000_000),
    },
    output={**_OUTPUT, "status?": "integer"},
    destructive=True,
)
async def fulfill_request(call: Call) -> ToolResult:
    args = call.args
    given: dict[str, str] = dict(args.get("headers", {}))
    for name, value in given.items():
        if not name or any(ord(letter) < 33 or letter == ":" for letter in name) or any(c in value for c in "\r\n\0"):
            raise InvalidArguments(f"headers: {name[:100]!r} is not a valid header.")
    body = args.get("body", "")
    if body and not any(name.lower() == "content-type" for name in given):
        given["Content-Type"] = "application/json" if body[:1] in "{[" else "text/plain; charset=utf-8"
    params: dict[str, Any] = {
        "responseCode": args["status"],
        "responsePhrase": responses.get(args["status"], "Answered"),
        "responseHeaders": [{"name": name, "value": value} for name, value in given.items()],
        "body": base64.b64encode(body.encode()).decode(),
    }
    return await _decide(call, "Fetch.fulfillRequest", params, status=args["status"])


@tool(
    "browser_fail_request",
    "Fail a request",
    "Fails a paused request like a network error.",
    params={"requestId": _PAUSED_ID, "errorReason?": {"enum": _REASONS, "description": "Default Failed."}},
    output={**_OUTPUT, "errorReason?": "string"},
    destructive=True,
)
async def fail_request(call: Call) -> ToolResult:
    reason = call.args.get("errorReason", "Failed")
    return await _decide(call, "Fetch.failRequest", {"errorReason": reason}, errorReason=reason)


@tool(
    "browser_stop_intercepting",
    "Stop intercepting",
    "Ends interception and continues paused requests. With requestId continues only that one; interception stays.",
    params={"requestId?": _PAUSED_ID},
    output={"tabId": "integer", "intercepting": "boolean", "continued": "integer", "note?": "string"},
    idempotent=True,
)
async def stop_intercepting(call: Call) -> ToolResult:
    page = await call.page()
    facts: dict[str, Any] = {"tabId": page.tab_id, "intercepting": False, "continued": 1}
    if "requestId" in call.args:
        await call.box.interceptions.decide(page, _paused_id(call, page), CONTINUE, {})
        return data_result(facts | {"intercepting": True})
    lost = call.box.network_overrides.pop_lost_note(page)
    was, facts["continued"] = await call.box.interceptions.stop(page)
    if not was:
        facts["note"] = lost or "Nothing was intercepted in this tab."
    return data_result(facts)


async def _decide(call: Call, method: str, params: dict[str, Any], **more: Any) -> ToolResult:
    page = await call.page()
    paused = await call.box.interceptions.decide(page, _paused_id(call, page), method, params)
    return data_result({"tabId": page.tab_id, "requestId": paused.id, "url": paused.summary()["url"], **more})


def _paused_id(call: Call, page: Page) -> str:
    """The id of the paused request; also accepts the id of the network record."""
    wanted: str = call.args["requestId"]
    request = call.box.record.tab_record(page.key).traffic.find(wanted)
    if request is None:
        return wanted
    found = [p.id for p in call.box.interceptions.pending(page) if p.network_id == request.key[1]]
    if not found:
        hint = "browser_intercept_requests lists paused requests."
        raise CommandFailed(f"Request {wanted} is not paused: it was sent.", hint=hint)
    return found[-1]
