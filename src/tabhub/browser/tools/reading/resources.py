"""Resource tools: the files a page has loaded, and their content."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from tabhub.browser.driver.cdp_values import parse_int, parse_text, parse_url
from tabhub.browser.driver.frames import list_frames
from tabhub.browser.driver.page import Page
from tabhub.browser.record import bodies
from tabhub.browser.record.bodies import Body
from tabhub.browser.schemas import integer, list_of, text
from tabhub.browser.tool_spec import Call, tool
from tabhub.core.tools import ToolResult
from tabhub.errors import CommandFailed, TabFailed
from tabhub.trust.redact import redact

_MAX_RESOURCES = 1000
_LENGTH = 50_000
_SOURCE_LOST_NOTE = "The browser did not keep the source; this is the current document."
_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")


@dataclass(frozen=True, slots=True)
class Resource:
    """One file a frame has loaded."""

    url: str
    kind: str
    mime: str
    size: int
    failed: bool
    frame_id: str
    session_id: str | None


@tool(
    "browser_list_resources",
    "List resources",
    "Files loaded by the page and its frames: documents, scripts, stylesheets, images, fonts.",
    params={"type?": text("Only one type, e.g. script, stylesheet.", most=30)},
    output={"resources": list_of("object"), "note?": "string"},
    read_only=True,
)
async def list_resources(call: Call) -> ToolResult:
    page = await call.page()
    every = await _resources(page)
    wanted = call.args.get("type", "").lower()
    there = [resource for resource in every if not wanted or resource.kind == wanted]
    listed = []
    for resource in there[:_MAX_RESOURCES]:
        facts: dict[str, Any] = {"url": redact(resource.url), "type": resource.kind, "mime": resource.mime}
        if resource.size:
            facts["bytes"] = resource.size
        if resource.failed:
            facts["failed"] = True
        listed.append(facts)
    answer: dict[str, Any] = {"resources": listed}
    if len(there) > _MAX_RESOURCES:
        answer["note"] = f"{len(there) - _MAX_RESOURCES} more are left out; narrow by type."
    elif wanted and not there:
        answer["note"] = f"None of that type; there are: {', '.join(sorted({r.kind for r in every}))}."
    return ToolResult.data(answer)


@tool(
    "browser_get_resource_content",
    "Read a resource",
    "The content of one file the page has loaded: text, image, or base64.",
    params={
        "url": text("As listed, or a part of it.", least=1, most=8192),
        "maxLength?": integer("Default 50000.", least=1, most=5_000_000),
    },
    output={
        "url": "string",
        "mime": "string",
        "content?": "string",
        "base64?": "string",
        "length": "integer",
        "note?": "string",
    },
    read_only=True,
)
async def get_resource_content(call: Call) -> ToolResult:
    page, most = await call.page(), call.args.get("maxLength", _LENGTH)
    url, mime, body = await _content(call, page, call.args["url"])
    facts: dict[str, Any] = {"url": redact(url), "mime": mime, "length": body.length}
    if body.text is not None:
        facts["content"] = body.text[:most]
        left = f"{body.length - most} of {body.length} characters left out; raise maxLength."
        if note := " ".join(filter(None, (body.reason, left if body.length > most else ""))):
            facts["note"] = note
        text = facts["content"] + (f"\n\n[{facts['note']}]" if "note" in facts else "")
        return ToolResult.of([{"type": "text", "text": text}], structured=facts)
    data = body.data or b""
    if mime in _IMAGES:
        encoded = base64.b64encode(data).decode()
        return ToolResult.of([{"type": "image", "data": encoded, "mimeType": mime}], structured=facts)
    limit = most // 4 * 3
    facts["base64"] = base64.b64encode(data[:limit]).decode()
    if len(data) > limit:
        facts["note"] = f"{len(data) - limit} of {len(data)} bytes left out; raise maxLength."
    return ToolResult.data(facts)


async def _content(call: Call, page: Page, wanted: str) -> tuple[str, str, Body]:
    every = await _resources(page)
    found = _matching(every, wanted)
    why = ""
    if found is not None:
        try:
            if found.session_id is not None:
                await page.cdp("Page.enable", None, found.session_id)
            answer = await page.cdp(
                "Page.getResourceContent", {"frameId": found.frame_id, "url": found.url}, found.session_id
            )
            if isinstance(answer, dict):
                body = bodies.decode_body(answer.get("content"), answer.get("base64Encoded") is True, found.mime)
                return found.url, found.mime, body
        except TabFailed:
            raise
        except CommandFailed as error:
            why = error.message
    record = call.box.record.tab_record(page.key)
    requests = [r for r in record.traffic.requests if _same_url(r.url, wanted, found) and r.ended is not None]
    for request in reversed(requests):
        body = await bodies.response_body(page, request)
        if not body.reason:
            return request.url, request.mime, body
        why = body.reason
    if found is not None and found.kind == "document" and (now := await _current_document(page, found)) is not None:
        return found.url, found.mime, now
    if found is not None or requests:
        raise CommandFailed(
            f"The content of {redact(wanted)[:200]} is not available: {why[:200]}",
            hint="Reload the tab (browser_reload_tab) and try again.",
        )
    near = sorted({r.url for r in every}, key=lambda url: SequenceMatcher(None, url[-200:], wanted[-200:]).ratio())
    raise CommandFailed(
        f"The page in tab {page.tab_id} has loaded nothing from {redact(wanted)[:200]!r}.",
        hint=f"Nearest: {', '.join(redact(url)[:150] for url in near[:-6:-1])}." if near else "It has loaded nothing.",
    )


async def _current_document(page: Page, found: Resource) -> Body | None:
    """The current markup of a document whose source the browser did not keep."""
    for frame in await list_frames(page):
        if frame.frame_id == found.frame_id:
            text = await frame.run_code("return document.documentElement.outerHTML.toWellFormed();")
            return Body(text=text, reason=_SOURCE_LOST_NOTE) if isinstance(text, str) else None
    return None


def _matching(every: list[Resource], wanted: str) -> Resource | None:
    """The resource with that URL, or the only one whose URL contains it."""
    exact = [resource for resource in every if wanted in (resource.url, redact(resource.url))]
    if exact:
        return exact[0]
    partial = [resource for resource in every if wanted in resource.url]
    if len({resource.url for resource in partial}) > 1:
        raise CommandFailed(
            f"{len(partial)} resources have {redact(wanted)[:200]!r} in their URL.",
            hint=f"Give one of: {', '.join(redact(resource.url)[:150] for resource in partial[:8])}.",
        )
    return partial[0] if partial else None


def _same_url(url: str, wanted: str, found: Resource | None) -> bool:
    return url == found.url if found is not None else wanted in (url, redact(url)) or wanted in url


async def _resources(page: Page) -> list[Resource]:
    """The resources of the tab and of its cross-process frames."""
    found = list(_walk_tree((await page.cdp("Page.getResourceTree")).get("frameTree"), None))
    for child in list(page.state.children.values()):
        if child.kind != "iframe":
            continue
        try:
            answer = await page.cdp("Page.getResourceTree", None, child.session_id)
        except CommandFailed:
            # The frame was removed meanwhile.
            continue
        found.extend(_walk_tree(answer.get("frameTree"), child.session_id))
    return found


def _walk_tree(tree: Any, session_id: str | None, depth: int = 0) -> Iterator[Resource]:
    if not isinstance(tree, dict) or depth > 50:
        return
    frame = tree.get("frame")
    frame = frame if isinstance(frame, dict) else {}
    frame_id = parse_text(frame.get("id"), 100)
    url = parse_url(frame.get("url"))
    yield Resource(url, "document", parse_text(frame.get("mimeType"), 100), 0, False, frame_id, session_id)
    resources = tree.get("resources")
    for each in resources if isinstance(resources, list) else ():
        if isinstance(each, dict):
            kind, mime = parse_text(each.get("type"), 30).lower(), parse_text(each.get("mimeType"), 100)
            # The full URL: the content is requested by it.
            where = parse_text(each.get("url"), 100_000)
            size, failed = (
                parse_int(each.get("contentSize")),
                each.get("failed") is True or each.get("canceled") is True,
            )
            yield Resource(where, kind, mime, size, failed, frame_id, session_id)
    children = tree.get("childFrames")
    for child in children if isinstance(children, list) else ():
        yield from _walk_tree(child, session_id, depth + 1)
