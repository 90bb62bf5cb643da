"""browser_type_text and browser_press_key: the keyboard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tabhub.browser import field_state as fields
from tabhub.browser import text_entry
from tabhub.browser.actions import OUTPUT, TrackedAction
from tabhub.browser.driver.frames import FollowUp
from tabhub.browser.driver.page import Page
from tabhub.browser.driver.worlds import literal
from tabhub.browser.elements import keys, pointer
from tabhub.browser.elements.element import TARGET, ActionableElement, names_element, wait_actionable
from tabhub.browser.elements.field_formats import canonical
from tabhub.browser.elements.focus import focused_target, require_shown_focus
from tabhub.browser.elements.input_frames import require_focus_permitted
from tabhub.browser.reactions import send_watched
from tabhub.browser.schemas import list_of
from tabhub.browser.secrets.text import conceal_secret, is_secret
from tabhub.browser.tool_spec import Call, data_result, tool
from tabhub.core.tools import ToolResult
from tabhub.errors import DialogOpen, InvalidArguments, TabFailed

_KEY_TIMEOUT_MS = 60
"""How long a page may take to see the next key before the probe replies without it."""
_MOST_FOLLOWING = 400
"""Characters that travel with the check of the field; each is two commands."""


@tool(
    "browser_type_text",
    "Type text",
    "Types into a field, or the focused one, after its text; `clear` replaces that.",
    params={
        **TARGET,
        "text": {"type": "string", "description": "what to type"},
        "clear?": "boolean",
        "insert?": {"type": "boolean", "description": "pasted exactly, not key by key"},
        "submit?": {"type": "boolean", "description": "press Enter after"},
    },
    output=OUTPUT,
    destructive=True,
    tells_changes=True,
)
async def type_text(call: Call) -> ToolResult:
    box, page, args = call.box, await call.page(), call.args
    text, clear, submit, insert = str(args["text"]), *(bool(args.get(name)) for name in ("clear", "submit", "insert"))
    secret = is_secret(text)
    if not insert and len(text) > (most := box.browsers.limits.typed_characters):
        raise InvalidArguments(
            f"The text has {len(text)} characters; at most {most} are typed key by key. Nothing was typed.",
            hint="Repeat the call with insert: true, which enters the text in one piece.",
        )
    with box.activity.track_action(page) as action:
        named = names_element(field_target(args))
        if not named:
            await require_shown_focus(page)
        wanted = field_target(args) if named else await focused_target(page)
        keep = not named and not clear
        follow = None if secret or insert else _follow_up_keys(text, submit=submit)
        target = await _find_field(page, wanted, follow, all=clear, keep=keep)
        if target is None:
            began = f"Began to type into {' '.join(str(value)[:80] for value in wanted.values())}"
            return data_result(await action.result(began, note="How much was typed is unknown."))
        conceal_secret(call.ctx, target, text)
        did, before = "Typed into", target.facts.get("held") if not clear else ""
        if follow is not None and follow.sent:
            state = await _state_after_follow_up(action, target, follow)
        elif target.kind == "whole" and not secret:
            value = canonical(str(target.facts.get("type")), text)
            state = await target.element.call("set_value", {"value": value})
            state = await _submit(action, target, submit=submit) or state
        else:
            if not clear and target.kind in ("area", "code"):
                before = (await fields.field_state(action, target) or {}).get("value")
            if secret:
                await box.secrets.insert(action, target, text, paste=insert)
            elif insert:
                did = "Inserted into"
                await text_entry.enter_text(action, target, text, clear=clear, keep=keep)
            else:

                def progress(done: int, of: int) -> None:
                    call.ctx.progress(done, of, f"Typed {done} of {of} characters")

                await text_entry.type_keys(action, target, text, clear=clear, keep=keep, progress=progress)
            state = await _submit(action, target, submit=submit)
        before = before if target.kind in ("text", "area", "code") else None
        facts = field_facts(target, state, "" if secret or submit or target.kind == "whole" else text, before)
        if submit and not action.page_left and (unsent := await action.unsent_form_note(target.element.frame)):
            facts["note"] = unsent
        did = f"{did} {target.element.label}"
        return data_result(await action.result(did, before=target.facts.get("url"), **facts))


def field_target(args: Mapping[str, Any]) -> dict[str, Any]:
    """The target of a tool whose `text` is what to type."""
    return {name: args[name] for name in ("selector", "ref", "role", "label") if name in args}


async def _submit(action: TrackedAction, target: ActionableElement, *, submit: bool) -> fields.State | None:
    """Press Enter if asked to, and return the state of the field then."""
    if submit and not action.page_left:
        await action.tolerate_navigation(pointer.send_events(action.page, _enter()))
    return await fields.field_state(action, target)


def _enter() -> list[pointer.Event]:
    return pointer.key_press(keys.NAMED["enter"])


def _follow_up_keys(text: str, *, submit: bool) -> FollowUp | None:
    """The keys to send along with the actionability check, if they are the same for every kind of field."""
    if len(text) > _MOST_FOLLOWING or "\n" in text or "\t" in text:
        return None
    events = pointer.typing_events(text, tab_leaves=True)
    if not events or any(method != pointer.KEY for method, _ in events):
        return None
    events += _enter() if submit else []
    probe = literal({"keyups": _keyups(events), "patience": _KEY_TIMEOUT_MS})
    return FollowUp(events, f"return globalThis.tabhubKeys ? kit.fieldValue.call(tabhubKeys.field, {probe}) : null;")


def _keyups(events: Sequence[pointer.Event]) -> int:
    return sum(params.get("type") == "keyUp" for _, params in events)


async def _find_field(
    page: Page, wanted: Mapping[str, Any], follow: FollowUp | None, **how: bool
) -> ActionableElement | None:
    """Find the field and send the follow-up; None if that opened a dialog or closed the tab."""
    try:
        return await wait_actionable(page, wanted, "edit", follow=follow, **how)
    except DialogOpen as error:
        if follow is None or error.outcome == "not_sent":
            raise
    except TabFailed:
        if follow is None or page.browsers.book.get(page.tab_id) is not None:
            raise
    return None


async def _state_after_follow_up(
    action: TrackedAction, target: ActionableElement, follow: FollowUp
) -> fields.State | None:
    if follow.error is not None:
        await action.tolerate_navigation(action.page.raise_failure(follow.error))
        return None
    if action.page_left:
        return None
    # A page that stops key events did not report the last one.
    return follow.value if isinstance(follow.value, dict) else await fields.field_state(action, target)


def field_facts(target: ActionableElement, state: fields.State | None, text: str, before: str | None) -> dict[str, Any]:
    """What a result says of the field and of the text that was entered; nothing of the text if that is empty."""
    if state is None:
        return {}
    facts = {**fields.shown_value(state), "checked": state.get("checked"), "focus": state.get("focus")}
    if target.element.frame.parent is None:
        facts["now"] = state.get("url")
    if notes := fields.value_notes(state, text, before if text else None):
        facts["note"] = " ".join(notes)
    return facts


@tool(
    "browser_press_key",
    "Press a key",
    "Presses a key (Enter, ArrowDown, a, Control+A) in the focused or given element.",
    params={"key": "string", **TARGET, "modifiers?": list_of("string")},
    output=OUTPUT,
    destructive=True,
    tells_changes=True,
)
async def press_key(call: Call) -> ToolResult:
    box, page, args = call.box, await call.page(), call.args
    key, state = keys.parse(str(args["key"]), args.get("modifiers", ()))
    with box.activity.track_action(page) as action:
        place, events = "", pointer.key_press(key, state)
        if names_element(args):
            target = await wait_actionable(page, args, "key")
            place = f" in {target.element.label}"
            await action.tolerate_navigation(pointer.send_events(page, events))
        else:
            await require_focus_permitted(page)
            await require_shown_focus(page)
            await action.unless_navigating(action.tolerate_navigation(send_watched(page, events)))
        await action.round_trip()
        return data_result(await action.result(f"Pressed {args['key']}{place}"))
