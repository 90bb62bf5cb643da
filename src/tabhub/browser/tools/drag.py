"""browser_drag: from one place to another, with the mouse, or as the browser's own drag and drop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tabhub.browser import pointer
from tabhub.browser.activity import Doing
from tabhub.browser.outcome import ALWAYS, GIVES, carried, outcome
from tabhub.browser.ready import aim
from tabhub.browser.spec import Call, Toolbox, hints, tool
from tabhub.browser.tab import Page
from tabhub.browser.target import REF, TARGET, named
from tabhub.errors import InvalidArguments
from tabhub.hub.tools import ToolResult

_SIDE = {"type": "number", "minimum": 0, "maximum": 100_000}
_END = {
    "type": ["string", "object"],
    "properties": {**TARGET, "x": _SIDE, "y": _SIDE},
    "additionalProperties": False,
    "minLength": 1,
    "maxLength": 2000,
}
_STEPS = 8
_Place = tuple[float, float, str]


@tool(
    "browser_drag",
    "Drag and drop",
    "Drags with the mouse from one element or place to another and drops there.",
    takes={
        "from": {**_END, "description": "A ref or selector, or {selector|ref|text|role}, or {x, y} in the viewport."},
        "to": {**_END, "description": "The same."},
    },
    required=("from", "to"),
    gives=GIVES,
    always=ALWAYS,
    annotations=hints(destructive=True),
)
async def browser_drag(call: Call) -> ToolResult:
    """Drag."""
    return ToolResult.data(await drag(call.box, await call.page(), call.args))


async def drag(box: Toolbox, page: Page, args: Mapping[str, Any]) -> dict[str, Any]:
    """Press at one end, move, and release at the other; the second end is looked for while the button is down."""
    start, end = _named("from", args["from"]), _named("to", args["to"])
    with box.activity.doing(page) as doing:
        x, y, what = await _end(box, page, start)
        page.ahead("Input.setInterceptDrags", {"enabled": True})
        at = (x, y)
        try:
            begin = [pointer.moved(x, y), pointer.pressed(x, y)]
            # A few pixels make a press a drag.
            begin += [pointer.moved(x + step, y + step, held="left") for step in (3, 6, 9)]
            await pointer.send(page, begin)
            end_x, end_y, where = await _end(box, page, end)
            at = (end_x, end_y)
            if doing.drag is not None:
                await _drop(box, page, doing, end_x, end_y)
            else:
                await pointer.send(page, _path((x + 9, y + 9), (end_x, end_y)))
        finally:
            page.ahead(*pointer.released(*at))
            page.ahead("Input.setInterceptDrags", {"enabled": False})
        await carried(box, page, page.cdp("Runtime.evaluate", {"expression": "0"}))
        return await outcome(box, page, doing, f"Dragged {what} to {where}")


async def _drop(box: Toolbox, page: Page, doing: Doing, x: float, y: float) -> None:
    """Finish a drag of the browser's own kind: what the page put into it goes along."""
    events: list[pointer.Event] = [
        ("Input.dispatchDragEvent", {"type": kind, "x": x, "y": y, "data": doing.drag})
        for kind in ("dragEnter", "dragOver", "dragOver", "drop")
    ]
    await carried(box, page, pointer.send(page, events))


def _path(start: tuple[float, float], end: tuple[float, float]) -> list[pointer.Event]:
    steps = [(step + 1) / _STEPS for step in range(_STEPS)]
    return [
        pointer.moved(start[0] + (end[0] - start[0]) * part, start[1] + (end[1] - start[1]) * part, held="left")
        for part in (*steps, 1)
    ]


def _named(side: str, given: Any) -> dict[str, Any]:
    """One end as it is named, before anything is done."""
    if isinstance(given, str):
        return {"ref" if REF.fullmatch(given) else "selector": given}
    if ("x" in given and "y" in given) or named(given):
        return dict(given)
    raise InvalidArguments(
        f"`{side}` names no place.", hint="Give a ref, a selector, a text, or both x and y. Nothing was done."
    )


async def _end(box: Toolbox, page: Page, given: Mapping[str, Any]) -> _Place:
    """Where one end is, and what is there."""
    if "x" in given and "y" in given:
        box.activity.wake(page)
        return float(given["x"]), float(given["y"]), f"{given['x']:g}, {given['y']:g}"
    aimed = await aim(box, page, given, "hover")
    return aimed.x, aimed.y, aimed.element.label


TOOLS = (browser_drag,)
