"""browser_type_text and browser_press_key: the keyboard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tabhub.browser.actions import OUTPUT, TrackedAction, run_and_probe
from tabhub.browser.driver.frames import FollowUp
from tabhub.browser.driver.page import Page
from tabhub.browser.driver.worlds import literal
from tabhub.browser.elements import keys, pointer
from tabhub.browser.elements.element import TARGET, ActionableElement, names_element, wait_actionable
from tabhub.browser.elements.hidden_frames import require_focus_outside
from tabhub.browser.schemas import list_of
from tabhub.browser.secret_text import conceal_secret, is_secret
from tabhub.browser.tool_spec import Call, data_result, tool
from tabhub.core.tools import ToolResult
from tabhub.errors import CommandFailed, DialogOpen, InvalidArguments, TabFailed

_KEY_TIMEOUT_MS = 60
"""How long a page may take to see the next key before the probe replies without it."""


@tool(
    "browser_type_text",
    "Type text",
    "Types into a field after its current text; `clear` replaces that.",
    params={
        **TARGET,
        "text": {"type": "string", "description": "what to type"},
        "clear?": "boolean",
        "submit?": {"type": "boolean", "description": "press Enter after"},
    },
    output=OUTPUT,
    destructive=True,
)
async def type_text(call: Call) -> ToolResult:
    box, page, args = call.box, await call.page(), call.args
    text, clear, submit = str(args["text"]), bool(args.get("clear")), bool(args.get("submit"))
    if not names_element(field_target(args)):
        raise InvalidArguments(
            "No field is given.",
            hint="Give a ref (from browser_snapshot), a selector, or its name as `label`; `text` is what is typed.",
        )
    with box.activity.track_action(page) as action:
        secret = is_secret(text)
        follow = None if secret else _follow_up_keys(text, submit=submit)
        target = await _find_field(page, args, clear=clear, follow=follow)
        if target is None:
            began = f"Began to type into {' '.join(str(value)[:80] for value in field_target(args).values())}"
            return data_result(await action.result(began, note="How much was typed is unknown."))
        conceal_secret(call.ctx, target, text)
        if follow is not None and follow.sent:
            state = await _state_after_follow_up(action, target, follow)
        elif secret:
            await box.secrets.insert(action, target, text)
            state = await _send_keys(action, target, _enter(submit), ask_ahead=False)
        elif target.kind == "whole":
            state = await target.element.call("set_value", {"value": text})
            state = await _send_keys(action, target, _enter(submit), ask_ahead=False) or state
        else:
            events = text_events(target, text, clear=clear) + _enter(submit)
            state = await _send_keys(action, target, events, ask_ahead=not submit)
        facts = field_facts(target, state)
        if submit and not action.page_left:
            facts["note"] = await action.unsent_form_note(target.element.frame)
        did = f"Typed into {target.element.label}"
        return data_result(await action.result(did, before=target.facts.get("url"), **facts))


def field_target(args: Mapping[str, Any]) -> dict[str, Any]:
    """The target of a tool whose `text` is what to type."""
    return {name: args[name] for name in ("selector", "ref", "role", "label") if name in args}


def _enter(submit: bool) -> list[pointer.Event]:
    return pointer.key_press(keys.NAMED["enter"]) if submit else []


def _follow_up_keys(text: str, *, submit: bool) -> FollowUp | None:
    """The keys to send along with the actionability check, if they are the same for every kind of field."""
    events = pointer.typing_events(text, lines=False)
    if not events or "\n" in text or "\t" in text or any(method != pointer.KEY for method, _ in events):
        return None
    events += _enter(submit)
    probe = literal({"keyups": _keyups(events), "patience": _KEY_TIMEOUT_MS})
    return FollowUp(events, f"return globalThis.tabhubKeys ? kit.fieldValue.call(tabhubKeys.field, {probe}) : null;")


def _keyups(events: Sequence[pointer.Event]) -> int:
    return sum(params.get("type") == "keyUp" for _, params in events)


async def _find_field(
    page: Page, args: Mapping[str, Any], *, clear: bool, follow: FollowUp | None
) -> ActionableElement | None:
    """Find the field and send the follow-up; None if that opened a dialog or closed the tab."""
    try:
        return await wait_actionable(page, field_target(args), "edit", all=clear, follow=follow)
    except DialogOpen as error:
        if follow is None or error.outcome == "not_sent":
            raise
    except TabFailed:
        if follow is None or page.browsers.book.get(page.tab_id) is not None:
            raise
    return None


async def _state_after_follow_up(
    action: TrackedAction, target: ActionableElement, follow: FollowUp
) -> dict[str, Any] | None:
    if follow.error is not None:
        await action.tolerate_navigation(action.page.raise_failure(follow.error))
        return None
    if action.page_left:
        return None
    # A page that stops key events did not report the last one.
    return follow.value if isinstance(follow.value, dict) else await field_state(action, target)


def text_events(target: ActionableElement, text: str, *, clear: bool) -> list[pointer.Event]:
    """The events that type a text at the cursor, replacing the selection if `clear`."""
    events = pointer.typing_events(text, lines=target.kind in ("area", "rich"))
    if clear and not text and not target.facts.get("empty"):
        events = pointer.key_press(keys.NAMED["delete"])
    return events


async def _send_keys(
    action: TrackedAction, target: ActionableElement, events: list[pointer.Event], *, ask_ahead: bool
) -> dict[str, Any] | None:
    """The state of the field after the keys; a probe that is sent along with the last one saves a round trip."""
    work = action.tolerate_navigation(pointer.send_events(action.page, events))
    if ask_ahead and events and events[-1][1].get("type") == "keyUp":
        state = await run_and_probe(work, _probe_field(action, target, _keyups(events)))
        if state is not None:
            return None if action.page_left else state
    else:
        await work
    return await field_state(action, target)


async def field_state(action: TrackedAction, target: ActionableElement) -> dict[str, Any] | None:
    """The current state of the field; None if the page navigated or is blocked by a dialog."""
    return None if action.page_left else await action.unless_navigating(_probe_field(action, target, 0))


async def _probe_field(action: TrackedAction, target: ActionableElement, keyups: int) -> dict[str, Any] | None:
    try:
        state = await action.tolerate_navigation(target.element.call("field_value", {"keyups": keyups}))
    except TabFailed:
        raise
    except CommandFailed:
        state = await _rerendered_field_state(action, target)
    return state if isinstance(state, dict) else None


async def _rerendered_field_state(action: TrackedAction, target: ActionableElement) -> Any:
    """The state of the focused field with the same label: many pages re-render a field when it is filled."""
    body = (
        "const field = document.activeElement;\nif (!field || !('value' in field)) return null;\n"
        "return kit.fieldValue.call(field, {})"
        ".then((held) => ({ ...held, label: kit.label(field) }));"
    )
    try:
        state = await action.tolerate_navigation(target.element.frame.run_code(body))
    except TabFailed:
        raise
    except CommandFailed:
        return None
    if not isinstance(state, dict):
        return None
    before, now = (str(label).rpartition(" [")[0] for label in (target.element.label, state.get("label")))
    return state if before == now else None


def field_facts(target: ActionableElement, state: dict[str, Any] | None) -> dict[str, Any]:
    if state is None:
        return {}
    facts = {"value": state.get("value"), "checked": state.get("checked")}
    if target.element.frame.parent is None:
        facts["now"] = state.get("url")
    if state.get("invalid"):
        facts["note"] = f"The page says of the field: {state['invalid']}"
    return facts


@tool(
    "browser_press_key",
    "Press a key",
    "Presses a key (Enter, ArrowDown, a, Control+A) in the focused or given element.",
    params={"key": "string", **TARGET, "modifiers?": list_of("string")},
    output=OUTPUT,
    destructive=True,
)
async def press_key(call: Call) -> ToolResult:
    box, page, args = call.box, await call.page(), call.args
    key, state = keys.parse(str(args["key"]), args.get("modifiers", ()))
    with box.activity.track_action(page) as action:
        place = ""
        if names_element(args):
            target = await wait_actionable(page, args, "key")
            place = f" in {target.element.label}"
        else:
            await require_focus_outside(page)
        await action.tolerate_navigation(pointer.send_events(page, pointer.key_press(key, state)))
        await action.round_trip()
        return data_result(await action.result(f"Pressed {args['key']}{place}"))
