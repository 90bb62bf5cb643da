"""browser_screenshot_tab: the viewport, the full page or one element, also of background tabs."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import orjson

from tabhub.browser.driver.cdp_values import parse_number, parse_object
from tabhub.browser.driver.page import Page
from tabhub.browser.elements.element import TARGET, Area, Element, find_element, names_element
from tabhub.browser.schemas import boolean, integer, number
from tabhub.browser.screenshots import Mark, capture, collect_marks
from tabhub.browser.tool_spec import Call, content_result, data_result, tool, with_note
from tabhub.core.tools import ToolResult
from tabhub.errors import CommandFailed, InvalidArguments

_MAX_SIDE = 16_384
"""The largest side a browser can render, in device pixels."""
_SUFFIXES = {"png": (".png",), "jpeg": (".jpg", ".jpeg"), "webp": (".webp",)}


@tool(
    "browser_screenshot_tab",
    "Take a screenshot",
    "Takes a screenshot of the viewport, the full page, or one element; `filePath` saves it.",
    params={
        **TARGET,
        "fullPage?": "boolean",
        "annotate?": boolean("Boxes with refs around actionable elements."),
        "scale?": number(least=0.1, most=4),
        "format?": {"enum": ["png", "jpeg", "webp"]},
        "quality?": integer(least=0, most=100),
        "filePath?": "string",
        "overwrite?": "boolean",
    },
    output={
        "tabId": "integer",
        "mimeType": "string",
        "bytes": "integer",
        "width?": integer("In image pixels."),
        "height?": "integer",
        "filePath?": "string",
        "note?": "string",
    },
    read_only=True,
)
async def screenshot_tab(call: Call) -> ToolResult:
    args, folder = call.args, call.box.folder
    if names_element(args) and args.get("fullPage"):
        raise InvalidArguments("An element cannot be combined with fullPage.", hint="Omit one of them.")
    kind = _format_of(args)
    path = folder.output_path(args["filePath"], _SUFFIXES[kind]) if "filePath" in args else None
    page = await call.page()
    lost = call.box.emulation.pop_lost_note(page)
    clip, note, shown = await _clip(page, args)
    whole = shown if args.get("fullPage") else None
    params: dict[str, Any] = {"format": kind}
    if kind != "png":
        params["quality"] = args.get("quality", 80)
    elif path is None and whole is None:
        params["optimizeForSpeed"] = True  # a larger picture of the same pixels
    if clip:
        params.update(clip=clip, captureBeyondViewport=True)
    marks: list[Mark] = []
    if args.get("annotate"):
        found = await collect_marks(page, whole=shown is not None)
        marks = [mark for mark in found if shown is None or shown.meets(mark)]
    with call.box.awake.awake(page):
        encoded = await capture(page, call.box.emulation, params, marks, whole)
    size = len(encoded) * 3 // 4 - encoded[-2:].count(b"=")
    facts = with_note({"tabId": page.tab_id, "mimeType": f"image/{kind}", "bytes": size}, note, lost)
    facts |= _size(kind, encoded)
    texts = [facts["note"]] if "note" in facts else []
    if args.get("annotate"):
        texts.append("\n".join(mark.label for mark in marks) or "There are no actionable elements in the screenshot.")
    if path is None:
        image = b'{"type":"image","data":"' + encoded + b'","mimeType":"image/' + kind.encode() + b'"}'
        text_parts = b"".join(b',{"type":"text","text":' + orjson.dumps(text) + b"}" for text in texts)
        return ToolResult(b'{"content":[' + image + text_parts + b"]}", facts=orjson.dumps(facts), has_media=True)
    data = await asyncio.to_thread(base64.b64decode, encoded)
    await asyncio.to_thread(folder.write, path, data, overwrite=args.get("overwrite", False))
    facts["filePath"] = str(path)
    if not args.get("annotate"):
        return data_result(facts)
    content = [{"type": "text", "text": text} for text in (orjson.dumps(facts).decode(), texts[-1])]
    return content_result(content, facts)


def _format_of(args: dict[str, Any]) -> str:
    if "format" in args:
        return str(args["format"])
    ending = str(args.get("filePath", "")).lower()
    return next((kind for kind, suffixes in _SUFFIXES.items() if ending.endswith(suffixes)), "png")


async def _clip(page: Page, args: dict[str, Any]) -> tuple[dict[str, float] | None, str, Area | None]:
    """The clip to capture, unless it is just the viewport, a note, and the area relative to the viewport."""
    scale = args.get("scale", 1)
    note = ""
    shown: Area | None = None
    if names_element(args):
        element = await find_element(page, args)
        shown = await _element_area(element)
        note = f"{element.others} more elements match; the screenshot shows the first." if element.others else ""
    elif not args.get("fullPage") and scale == 1:
        return None, "", None
    metrics = await page.cdp("Page.getLayoutMetrics")
    view = _area(metrics, "cssLayoutViewport")
    if shown is not None:
        area = Area(shown.x + view.x, shown.y + view.y, shown.width, shown.height)
    elif args.get("fullPage"):
        area = _area(metrics, "cssContentSize")
        shown = Area(area.x - view.x, area.y - view.y, area.width, area.height)
    else:
        area = _area(metrics, "cssVisualViewport")
    longest = _MAX_SIDE / scale
    if area.width > longest or area.height > longest:
        note = (
            f"The page is {area.width:.0f} x {area.height:.0f}; only the first {longest:.0f} pixels of a side are in "
            "the screenshot."
        )
    clip = {"x": area.x, "y": area.y, "width": min(area.width, longest), "height": min(area.height, longest)}
    return {**clip, "scale": scale}, note, shown


async def _element_area(element: Element) -> Area:
    """The viewport area of an element after scrolling it into view in all its frames."""
    page, frame = element.page, element.frame
    outer = []
    while frame.parent is not None:
        outer.append(frame)
        frame = frame.parent
    for inner in reversed(outer):
        if inner.parent is not None:
            await inner.parent.evaluate("scroll_into_view", {"ref": await inner.owner_ref()})
    await element.call("scroll_into_view")
    box = await element.box()
    if box.width < 1 or box.height < 1:
        raise CommandFailed(
            f"{element.label} has no size in tab {page.tab_id}: it is hidden or empty.",
            hint="Capture an enclosing element, or the whole tab.",
        )
    return box


def _area(metrics: Any, name: str) -> Area:
    area = parse_object(parse_object(metrics).get(name))
    if not area:
        raise CommandFailed(f"invalid response: the browser did not give {name}.")
    sides = ("x", "y", "width", "height") if "width" in area else ("pageX", "pageY", "clientWidth", "clientHeight")
    return Area(*(parse_number(area.get(side)) for side in sides))


def _size(kind: str, encoded: bytes) -> dict[str, int]:
    if kind != "png" or len(encoded) <= 60:
        return {}
    head = base64.b64decode(encoded[:44])
    return {"width": int.from_bytes(head[16:20], "big"), "height": int.from_bytes(head[20:24], "big")}
