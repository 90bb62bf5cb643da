"""browser_fill_form and browser_select_option: form fields of every kind."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from tabhub.browser.actions import OUTPUT, TrackedAction
from tabhub.browser.driver.cdp_values import parse_object
from tabhub.browser.elements import pointer
from tabhub.browser.elements.element import TARGET, TARGET_NAMES, ActionableElement, names_element, wait_actionable
from tabhub.browser.elements.field_formats import canonical
from tabhub.browser.field_state import field_state, shown_value, value_notes
from tabhub.browser.secrets.text import conceal_secret, is_secret
from tabhub.browser.text_entry import enter_text, type_keys
from tabhub.browser.tool_spec import Call, data_result, tool
from tabhub.browser.tools.acting import widgets
from tabhub.browser.tools.acting.click import click_until_it_lands
from tabhub.core.tools import ToolResult
from tabhub.errors import CommandFailed, InvalidArguments, PermissionDenied

_ONE_OR_MORE = {"type": ["string", "array"], "items": {"type": "string"}}
_VALUE = {"type": ["string", "number", "boolean", "array"], "items": {"type": "string"}}
_MAX_FIELDS = 100
_WIDGETS = {
    "range": widgets.fill_range,
    "slider": widgets.fill_slider,
    "segment": widgets.fill_segment,
    "segments": widgets.fill_segments,
}
_Entered = tuple[dict[str, Any], ActionableElement]
"""What is reported of a text field, and the field."""
_FALSE, _TRUE = ("false", "no", "off", "unchecked", "0", ""), ("true", "yes", "on", "checked", "1")


@tool(
    "browser_fill_form",
    "Fill in a form",
    "Fills in fields except files; value: text, number, true/false, or an option's value or label (list "
    "for several). Does not submit.",
    params={
        "fields": {
            "type": "array",
            "maxItems": _MAX_FIELDS,
            "items": {
                "type": "object",
                "properties": {**{name: {"type": "string"} for name in TARGET_NAMES}, "value": _VALUE},
                "required": ["value"],
            },
        }
    },
    output=OUTPUT,
    destructive=True,
    idempotent=True,
    tells_changes=True,
)
async def fill_form(call: Call) -> ToolResult:
    box, page, args = call.box, await call.page(), call.args
    fields = args["fields"]
    for number, field in enumerate(fields, 1):
        if unknown := [
            name for name in field if name != "value" and not (name in TARGET_NAMES and isinstance(field[name], str))
        ]:
            raise InvalidArguments(
                f"Field {number} has {unknown[0]!r}, which is not a target. Nothing was filled in.",
                hint="A field is {value} with selector, ref, text, role or label as strings.",
            )
        if not names_element(field):
            raise InvalidArguments(
                f"Field {number} has no target. Nothing was filled in.",
                hint="Name it by its label, a ref (from browser_snapshot), a selector, a text or a role.",
            )
    done: list[dict[str, Any]] = []
    entered: list[_Entered] = []
    with box.activity.track_action(page) as action:
        for number, field in enumerate(fields, 1):
            try:
                done.append(await _fill_one(call, action, field, entered))
            except (CommandFailed, PermissionDenied) as error:
                before = f"The {number - 1} before it are filled in." if number > 1 else "Nothing was filled in."
                error.message = f"Field {number} of {len(fields)}: {error.message} {before}"
                if number > 1:
                    error.outcome = "failed"
                raise
            if action.url is not None or page.dialog:
                break
        await asyncio.gather(*(_add_later_change(action, *each) for each in entered if each[0] is not done[-1]))
        count = f"{len(done)} of {len(fields)}" if len(done) < len(fields) else len(done)
        return data_result(
            await action.result(f"Filled in {count} field{'' if len(fields) == 1 else 's'}", fields=done)
        )


async def _add_later_change(action: TrackedAction, facts: dict[str, Any], target: ActionableElement) -> None:
    """Correct what is reported of a field that the page changed when the focus had left it."""
    shown = shown_value(await field_state(action, target) or {})
    if shown and shown["value"] != facts.get("value"):
        facts |= shown
        facts["note"] = "The page changed it when the focus left it; give the value as the page writes it."


async def _fill_one(
    call: Call, action: TrackedAction, field: Mapping[str, Any], entered: list[_Entered]
) -> dict[str, Any]:
    """Fill in one field; a text that may change later is added to those `entered`."""
    page, value, secret = action.page, field["value"], is_secret(field["value"])
    option = value if isinstance(value, str) and not secret else None
    target = await wait_actionable(page, field, "field", all=True, value=option)
    facts: dict[str, Any] = {"field": target.element.label}
    if secret:
        await call.box.secrets.insert(action, target, value)
        state = await field_state(action, target)
        return facts | ({"value": value} if state is None or state.get("length") else {"note": "The field is empty."})
    conceal_secret(call.ctx, target, value)
    if target.kind == "select":
        chosen = await target.element.call("choose", {"either": _texts(value)})
        return facts | {"value": chosen["chosen"] if isinstance(value, list) else ", ".join(chosen["chosen"])}
    if target.kind in ("check", "radio", "switch"):
        return facts | {"checked": await _set_checked(action, field, target, value)}
    if target.kind in ("list", "combo"):
        return facts | await widgets.fill_list(action, field, target, _texts(value), several=isinstance(value, list))
    text = _text(value)
    if target.kind in _WIDGETS:
        return facts | await _WIDGETS[target.kind](action, target, text)
    if target.kind == "whole":
        return facts | {"value": await set_value(target, text)}
    if target.kind == "other":
        raise CommandFailed(
            f"{target.element.label} is not a form field ({target.facts.get('name')}).",
            hint="Try browser_click_element or browser_type_text; click a custom list to open it first.",
        )
    if not text or "\n" in text or target.kind == "code":
        await enter_text(action, target, text, clear=True, keep=False)
    else:
        await action.tolerate_navigation(pointer.send_events(page, [(pointer.INSERT, {"text": text})]))
    state = await field_state(action, target) or {}
    if _is_unchanged(target, state, text):
        # Some input masks accept key events only.
        target = await wait_actionable(page, field, "field", all=True)
        await type_keys(action, target, text, clear=True, keep=False, progress=lambda *_: None)
        state = await field_state(action, target) or {}
    if _is_unchanged(target, state, text):
        raise CommandFailed(
            f"{target.element.label} did not take the text: it still holds {str(state['value'])[:80]!r}.",
            hint=state.get("invalid") or "The page changed it back; take a browser_snapshot to see what it accepts.",
        )
    if not state:
        return facts | {"note": "The page removed or replaced the field; take a browser_snapshot."}
    if "value" not in state:
        return facts | {"value": f"{state.get('length', len(text))} characters"}
    notes = value_notes(state, text)
    facts |= shown_value(state) | ({"note": " ".join(notes)} if notes else {})
    entered.append((facts, target))
    return facts


def _is_unchanged(target: ActionableElement, state: Mapping[str, Any], text: str) -> bool:
    """Whether a field that can be compared still holds what it held before."""
    return bool(text) and "value" in state and state["value"] == target.facts.get("held") != text


async def _set_checked(
    action: TrackedAction, field: Mapping[str, Any], target: ActionableElement, value: Any
) -> bool | None:
    """Click a checkbox or radio button unless it already has the wanted state."""
    wanted = value
    if isinstance(value, str) and target.kind != "radio":
        wanted = value.strip().lower() in _TRUE
        if not wanted and value.strip().lower() not in _FALSE:
            raise CommandFailed(
                f"{target.element.label} is a checkbox; {value[:40]!r} is neither true nor false.",
                hint="Give true or false.",
            )
    elif isinstance(value, str):
        # The element search chose the radio button with that value or label; false and off are not labels.
        wanted = value.strip().lower() not in ("false", "off")
    if bool(target.facts.get("checked")) is bool(wanted):
        return bool(wanted)
    if target.kind == "radio" and not wanted:
        raise CommandFailed(
            f"{target.element.label} is a radio button and cannot be unchecked.",
            hint="Check another one of its group.",
        )
    _, landed = await click_until_it_lands(action, field, need="field", target=target)
    state = await field_state(action, target) if target.kind == "check" else None
    if state is not None and state.get("checked") is not bool(wanted):
        raise CommandFailed(
            f"{target.element.label} was clicked, but is still {'off' if wanted else 'on'}.",
            hint="The page reverted the click or asks something first; take a browser_snapshot.",
        )
    return bool(wanted) if landed is not None or state is not None else None


async def set_value(target: ActionableElement, text: str) -> Any:
    """Set a date, time or colour, given as people write it; returns the value that the field has then."""
    value = canonical(str(target.facts.get("type")), text)
    return parse_object(await target.element.call("set_value", {"value": value})).get("value")


def _text(value: Any) -> str:
    if isinstance(value, bool | list | dict):
        raise CommandFailed(f"value {str(value)[:40]!r} is not text.", hint="Give text or a number for this field.")
    return "" if value is None else str(value)


def _texts(value: Any) -> list[str]:
    return [_text(each) for each in value] if isinstance(value, list) else [_text(value)]


@tool(
    "browser_select_option",
    "Choose an option",
    "Chooses options of a list by value or label; a list for several.",
    params={
        **TARGET,
        "value?": _ONE_OR_MORE,
        "label?": {**_ONE_OR_MORE, "description": "the option's; beside value alone, the field's"},
    },
    output=OUTPUT,
    destructive=True,
    idempotent=True,
    tells_changes=True,
)
async def select_option(call: Call) -> ToolResult:
    box, page, args = call.box, await call.page(), call.args
    if "value" not in args and "label" not in args:
        raise InvalidArguments("No option is given.", hint="Give `value`, or `label` for the option's text.")
    field = {name: value for name, value in args.items() if name != "label"}
    if not names_element(field):
        if not isinstance(args.get("label"), str) or "value" not in args:
            raise InvalidArguments(
                "No field is given.", hint="Give its ref or selector, or its name as `label` and the option as `value`."
            )
        # An option may be given by its label as well.
        field, wanted = {"label": args["label"]}, {"either": _texts(args["value"])}
    else:
        keys = (("values", "value"), ("labels", "label"))
        wanted = {name: _texts(args[key]) for name, key in keys if key in args}
    with box.activity.track_action(page) as action:
        target = await wait_actionable(page, field, "field")
        if target.kind in ("list", "combo"):
            names = [name for given in wanted.values() for name in given]
            several = any(isinstance(args.get(key), list) for key in ("value", "label"))
            facts = await widgets.fill_list(action, field, target, names, several=several)
            did = f"Chose {', '.join(names)} in {target.element.label}"
            return data_result(await action.result(did, **facts))
        facts = parse_object(await action.tolerate_navigation(target.element.call("choose", wanted)))
        did = f"Chose {', '.join(facts.get('chosen') or ['nothing'])} in {target.element.label}"
        note = None if facts.get("changed", True) else "It was already selected."
        return data_result(await action.result(did, chosen=facts.get("chosen"), note=note))
