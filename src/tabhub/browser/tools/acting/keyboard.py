"""browser_type_text and browser_press_key: the keyboard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tabhub.browser.activity import Doing
from tabhub.browser.driver import page_code as pagecode
from tabhub.browser.driver.page import Follow, Page
from tabhub.browser.elements import keys, pointer
from tabhub.browser.elements.action_result import ALWAYS, GIVES, asked_with, carried, outcome, unsent
from tabhub.browser.elements.actionability import Aim, aim, refuse
from tabhub.browser.elements.element import TARGET, named
from tabhub.browser.tool_spec import Call, Toolbox, hints, tool
from tabhub.core.tools import ToolResult
from tabhub.errors import CommandFailed, DialogOpen, InvalidArguments, TabFailed

_PATIENCE = 60
"""Milliseconds a page may take to hear of the next key before it is asked once more, after the last."""


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
    if not named(field_of(args)):
        raise InvalidArguments(
            "No field is named.",
            hint="Give a ref (from browser_snapshot), a selector, or its name as `label`; `text` is what is typed.",
        )
    with box.activity.doing(page) as doing:
        follow = _at_once(text, submit=submit)
        aimed = await _aimed(box, page, args, clear=clear, follow=follow)
        if aimed is None:
            began = f"Began to type into {' '.join(str(value)[:80] for value in field_of(args).values())}"
            return await outcome(box, page, doing, began, note="How much of the text came there is not known.")
        if follow is not None and follow.done:
            held = await _followed(box, page, doing, aimed, follow)
        elif aimed.kind == "whole":
            held = await aimed.element.call("put", {"value": text})
            refuse(aimed.element, held)
            held = await _struck(box, page, doing, aimed, _enter(submit), ask_ahead=False) or held
        else:
            events = typing(aimed, text, clear=clear) + _enter(submit)
            held = await _struck(box, page, doing, aimed, events, ask_ahead=not submit)
        facts = told(aimed, held)
        if submit and not _elsewhere(box, page, doing):
            # Where it leads is told before this is answered.
            facts["note"] = unsent(
                await doing.unless_leaving(carried(box, page, aimed.element.frame.evaluate("sent", {})))
            )
        did = f"Typed into {aimed.element.label}"
        return await outcome(box, page, doing, did, before=aimed.facts.get("url"), **facts)


def _enter(submit: bool) -> list[pointer.Event]:
    return pointer.stroke(keys.NAMED["enter"]) if submit else []


def _at_once(text: str, *, submit: bool) -> Follow | None:
    """The keys of a text as what follows the aim, where they are the same in every kind of field."""
    events = pointer.written(text, lines=False)
    if not events or "\n" in text or "\t" in text or any(method != pointer.KEY for method, _ in events):
        return None
    events += _enter(submit)
    asked = pagecode.literal({"keyups": _keyups(events), "patience": _PATIENCE})
    return Follow(events, f"return globalThis.tabhubKeys ? tabhubHolds.call(tabhubKeys.field, {asked}) : null;")


def _keyups(events: Sequence[pointer.Event]) -> int:
    return sum(params.get("type") == "keyUp" for _, params in events)


async def _aimed(
    box: Toolbox, page: Page, args: Mapping[str, Any], *, clear: bool, follow: Follow | None
) -> Aim | None:
    """The field, with what follows done; None if the page answered that with a dialog or by closing its tab."""
    try:
        return await aim(box, page, field_of(args), "edit", all=clear, follow=follow)
    except DialogOpen as error:
        if follow is None or error.outcome == "not_sent":
            raise
    except TabFailed:
        if follow is None or box.browsers.book.get(page.tab_id) is not None:
            raise
    return None


async def _followed(box: Toolbox, page: Page, doing: Doing, aimed: Aim, follow: Follow) -> dict[str, Any] | None:
    """What the field holds after the keys that followed the aim."""
    if follow.failed is not None:
        await carried(box, page, page.refused(follow.failed))
        return None
    if _elsewhere(box, page, doing):
        return None
    # A page that keeps the keys to itself did not tell when the last had come.
    return follow.value if isinstance(follow.value, dict) else await holds(box, page, doing, aimed)


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
    if ask_ahead and events and events[-1][1].get("type") == "keyUp":
        asked = _held(box, page, aimed, _keyups(events))
        held = await asked_with(work, asked, lambda: holds(box, page, doing, aimed))
        return None if _elsewhere(box, page, doing) else held
    await work
    return await holds(box, page, doing, aimed)


def _elsewhere(box: Toolbox, page: Page, doing: Doing) -> bool:
    """Whether the page has gone, is about to, or waits behind a dialog."""
    return bool(doing.unsettled or doing.url is not None or box.watch.dialog(page.link, page.tab.chrome_id))


async def holds(box: Toolbox, page: Page, doing: Doing, aimed: Aim) -> dict[str, Any] | None:
    """What the field holds now; None if the page has gone, or waits behind a dialog."""
    return None if _elsewhere(box, page, doing) else await doing.unless_leaving(_held(box, page, aimed, 0))


async def _held(box: Toolbox, page: Page, aimed: Aim, keyups: int) -> dict[str, Any] | None:
    try:
        held = await carried(box, page, aimed.element.call("holds", {"keyups": keyups}))
    except TabFailed:
        raise
    except CommandFailed:
        held = await _anew(box, page, aimed)
    return held if isinstance(held, dict) else None


async def _anew(box: Toolbox, page: Page, aimed: Aim) -> Any:
    """What the field of the same name holds that has the focus now: many pages draw a field anew when it is filled.

    None if there is none: the page took the field away, and that is its answer.
    """
    body = (
        "const field = document.activeElement;\nif (!field || !('value' in field)) return null;\n"
        f"return (\n{pagecode.source('holds')}\n).call(field, {{}})"
        ".then((held) => ({ ...held, label: kit.label(field) }));"
    )
    try:
        held = await carried(box, page, aimed.element.frame.ask(body))
    except TabFailed:
        raise
    except CommandFailed:
        return None
    if not isinstance(held, dict):
        return None
    before, now = (str(label).rpartition(" [")[0] for label in (aimed.element.label, held.get("label")))
    return held if before == now else None


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
            await doing.unless_leaving(carried(box, page, page.cdp("Runtime.evaluate", {"expression": "0"})))
        return await outcome(box, page, doing, f"Pressed {args['key']}{where}")


TOOLS = (type_text, press_key)
