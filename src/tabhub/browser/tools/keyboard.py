"""browser_type_text and browser_press_key: the keyboard."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tabhub.browser import keys, pointer
from tabhub.browser.activity import Doing
from tabhub.browser.outcome import ALWAYS, GIVES, asked_with, carried, outcome
from tabhub.browser.ready import Aim, aim, refuse
from tabhub.browser.spec import Call, Toolbox, hints, tool
from tabhub.browser.tab import Page
from tabhub.browser.target import TARGET, named
from tabhub.errors import CommandFailed
from tabhub.hub.tools import ToolResult
from tabhub.links.browsers import TabFailed


@tool(
    "browser_type_text",
    "Type text",
    "Types into a field after what it holds; `clear` replaces that.",
    takes={
        **TARGET,
        "text": {"type": "string", "description": "what to type"},
        "label": {"type": "string", "description": "the field's name"},
        "clear": {"type": "boolean"},
        "submit": {"type": "boolean", "description": "press Enter after"},
    },
    required=("text",),
    gives=GIVES,
    always=ALWAYS,
    annotations=hints(destructive=True),
)
async def type_text(call: Call) -> ToolResult:
    """Type, and tell what the field holds then."""
    return ToolResult.data(await write(call.box, await call.page(), call.args))


def field_of(args: Mapping[str, Any]) -> dict[str, Any]:
    """The target of a tool whose `text` is what to type: the field's own text comes as `label`."""
    wanted = {name: args[name] for name in ("selector", "ref", "role") if name in args}
    return wanted | ({"text": args["label"]} if "label" in args else {})


async def write(box: Toolbox, page: Page, args: Mapping[str, Any]) -> dict[str, Any]:
    """Type a text into the field that the arguments name."""
    text, clear, submit = str(args["text"]), bool(args.get("clear")), bool(args.get("submit"))
    with box.activity.doing(page) as doing:
        aimed = await aim(box, page, field_of(args), "edit", all=clear)
        did = f"Typed into {aimed.element.label}"
        if aimed.kind == "whole":
            put = await aimed.element.call("put", {"value": text})
            refuse(aimed.element, put)
            events = pointer.stroke(keys.NAMED["enter"]) if submit else []
            held = put if isinstance(put, dict) else None
        else:
            events, held = typing(aimed, text, clear=clear), None
            events += pointer.stroke(keys.NAMED["enter"]) if submit else []
        held = await _struck(box, page, doing, aimed, events, ask_ahead=not submit) or held
        return await outcome(box, page, doing, did, before=aimed.facts.get("url"), **told(aimed, held))


def typing(aimed: Aim, text: str, *, clear: bool) -> list[pointer.Event]:
    """The events that put a text where the cursor is, in the place of what is selected if `clear`."""
    events = pointer.written(text, lines=aimed.kind in ("area", "rich"))
    if clear and not text and not aimed.facts.get("empty"):
        events = pointer.stroke(keys.NAMED["delete"])
    return events


async def _struck(
    box: Toolbox, page: Page, doing: Doing, aimed: Aim, events: list[pointer.Event], *, ask_ahead: bool
) -> dict[str, Any] | None:
    """Send the keys, and give what the field holds then.

    That is asked for together with the last key: the page answers when it has seen that key, which saves a round trip.
    """
    work = carried(box, page, pointer.send(page, events))
    keyups = sum(params.get("type") == "keyUp" for _, params in events)
    if ask_ahead and events and events[-1][1].get("type") == "keyUp":
        held = await asked_with(work, _held(box, page, aimed, keyups), lambda: holds(box, page, doing, aimed))
        return None if _elsewhere(box, page, doing) else held
    await work
    return await holds(box, page, doing, aimed)


def _elsewhere(box: Toolbox, page: Page, doing: Doing) -> bool:
    """Whether the page has gone, is about to, or waits behind a dialog."""
    return bool(doing.unsettled or doing.url is not None or box.watch.dialog(page.link, page.tab.chrome_id))


async def holds(box: Toolbox, page: Page, doing: Doing, aimed: Aim) -> dict[str, Any] | None:
    """What the field holds now; None if the page has gone, or waits behind a dialog."""
    return None if _elsewhere(box, page, doing) else await _held(box, page, aimed, 0)


async def _held(box: Toolbox, page: Page, aimed: Aim, keyups: int) -> dict[str, Any] | None:
    try:
        held = await carried(box, page, aimed.element.call("holds", {"keyups": keyups}))
    except TabFailed:
        raise
    except CommandFailed:
        # The page took the field away when it was filled; that is its answer.
        return None
    return held if isinstance(held, dict) else None


def told(aimed: Aim, held: dict[str, Any] | None) -> dict[str, Any]:
    """The facts of a field for an answer."""
    if held is None:
        return {}
    facts = {"value": held.get("value"), "checked": held.get("checked")}
    if aimed.element.frame.main:
        facts["now"] = held.get("url")
    if held.get("invalid"):
        facts["note"] = f"The page says of the field: {held['invalid']}"
    return facts


@tool(
    "browser_press_key",
    "Press a key",
    "Presses a key (Enter, ArrowDown, a, Control+A) in the focused element or the one named.",
    takes={"key": {"type": "string"}, **TARGET, "modifiers": {"type": "array"}},
    required=("key",),
    gives=GIVES,
    always=ALWAYS,
    annotations=hints(destructive=True),
)
async def press_key(call: Call) -> ToolResult:
    """Press one key."""
    return ToolResult.data(await press(call.box, await call.page(), call.args))


async def press(box: Toolbox, page: Page, args: Mapping[str, Any]) -> dict[str, Any]:
    """Press a key, in the named element or where the focus is."""
    key, held = keys.parse(str(args["key"]), args.get("modifiers", ()))
    with box.activity.doing(page) as doing:
        where = ""
        if named(args):
            aimed = await aim(box, page, args, "key")
            where = f" in {aimed.element.label}"
        else:
            box.activity.wake(page)
        await carried(box, page, pointer.send(page, pointer.stroke(key, held)))
        # One more round trip: what the key set off is told before its answer.
        if box.watch.dialog(page.link, page.tab.chrome_id) is None and not doing.unsettled:
            await carried(box, page, page.cdp("Runtime.evaluate", {"expression": "0"}))
        return await outcome(box, page, doing, f"Pressed {args['key']}{where}")


TOOLS = (type_text, press_key)
