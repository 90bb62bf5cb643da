"""Resource tools: the files a page has loaded, and their content."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from tabhub.browser.driver.cdp_values import parse_int, parse_object, parse_objects, parse_text, parse_url
from tabhub.browser.driver.frames import list_frames
from tabhub.browser.driver.page import Page
from tabhub.browser.record import bodies
from tabhub.browser.record.bodies import Body
from tabhub.browser.record.visible_records import visible_requests
from tabhub.browser.schemas import integer, known, list_of, text
from tabhub.browser.tool_spec import Call, content_result, data_result, text_result, tool
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

    def describe(self) -> dict[str, Any]:
        facts = {"url": redact(self.url), "type": self.kind, "mime": self.mime}
        return known({**facts, "bytes": self.size or None, "failed": True if self.failed else None})


@tool(
    "browser_list_resources",
    "List resources",
    "Files loaded by the page and its frames: documents, scripts, stylesheets, images, fonts.",
    params={"type?": text("Only one type, e.g. script, stylesheet.", most=30)},
    output={"resources": list_of("object"), "note?": "string"},
    read_only=True,
    repeats_page=True,
)
async def list_resources(call: Call) -> ToolResult:
    page = await call.page()
    every = await _resources(page)
    wanted = call.args.get("type", "").lower()
    there = [resource for resource in every if not wanted or resource.kind == wanted]
    listed = [resource.describe() for resource in there[:_MAX_RESOURCES]]
    note = ""
    if len(there) > _MAX_RESOURCES:
        note = f"{len(there) - _MAX_RESOURCES} more are left out; narrow by type."
    elif wanted and not there:
        note = f"None of that type; there are: {', '.join(sorted({r.kind for r in every}))}."
    return data_result({"resources": listed}, note)


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
    repeats_page=True,
)
async def get_resource_content(call: Call) -> ToolResult:
    page, most = await call.page(), call.args.get("maxLength", _LENGTH)
    url, mime, body = await _content(call, page, call.args["url"])
    facts: dict[str, Any] = {"url": redact(url), "mime": mime, "length": body.length}
    left = f"{body.length - most} of {body.length} characters left out; raise maxLength."
    if body.text is not None:
        content = body.text[:most]
        return text_result(content, {**facts, "content": content}, body.reason, left if body.length > most else "")
    data = body.data or b""
    if mime in _IMAGES:
        encoded = base64.b64encode(data).decode()
        return content_result([{"type": "image", "data": encoded, "mimeType": mime}], facts)
    limit = most // 4 * 3
    facts["base64"] = base64.b64encode(data[:limit]).decode()
    note = f"{len(data) - limit} of {len(data)} bytes left out; raise maxLength." if len(data) > limit else ""
    return data_result(facts, note)


async def _content(call: Call, page: Page, wanted: str) -> tuple[str, str, Body]:
    every = await _resources(page)
    found = _matching(every, wanted)
    why = ""
    if found is not None:
        try:
            if found.session_id is not None:
                await page.cdp("Page.enable", None, found.session_id)
            params = {"frameId": found.frame_id, "url": found.url}
            answer = parse_object(await page.cdp("Page.getResourceContent", params, found.session_id))
            body = bodies.decode_body(answer.get("content"), answer.get("base64Encoded") is True, found.mime)
            return found.url, found.mime, body
        except TabFailed:
            raise
        except CommandFailed as error:
            why = error.message
    record = call.box.record.tab_record(page.key)
    ended = [r for r in visible_requests(page.view, record, record.traffic.requests) if r.ended is not None]
    if found is not None:
        requests = [r for r in ended if r.url == found.url]
    else:
        requests = [r for r in ended if wanted in r.url or wanted == redact(r.url)]
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
            return Body(text=text, reason=_SOURCE_LOST_NOTE)
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


async def _resources(page: Page) -> list[Resource]:
    found = list(_walk_tree(await page.cdp("Page.getResourceTree"), None))
    for child, kind in list(page.state.children.items()):
        if kind == "iframe":
            with suppress(CommandFailed):  # the frame was removed
                found += _walk_tree(await page.cdp("Page.getResourceTree", None, child), child)
    if not page.view.active:
        return found
    frames = {frame.frame_id for frame in await list_frames(page)}
    found = [resource for resource in found if resource.frame_id in frames]
    return page.view.keep(found, lambda resource: page.view.hides(resource.url), lambda one: ("entry", one.url))


def _walk_tree(answer: Any, session_id: str | None) -> Iterator[Resource]:
    trees = [parse_object(parse_object(answer).get("frameTree"))]
    while trees:
        tree = trees.pop(0)
        frame = parse_object(tree.get("frame"))
        frame_id, mime = parse_text(frame.get("id"), 100), parse_text(frame.get("mimeType"), 100)
        yield Resource(parse_url(frame.get("url")), "document", mime, 0, False, frame_id, session_id)
        for each in parse_objects(tree.get("resources")):
            yield Resource(
                url=parse_text(each.get("url"), 100_000),  # the full URL: the content is requested by it
                kind=parse_text(each.get("type"), 30).lower(),
                mime=parse_text(each.get("mimeType"), 100),
                size=parse_int(each.get("contentSize")),
                failed=each.get("failed") is True or each.get("canceled") is True,
                frame_id=frame_id,
                session_id=session_id,
            )
        trees += parse_objects(tree.get("childFrames"))
