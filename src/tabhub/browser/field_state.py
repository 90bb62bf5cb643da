"""What a field holds after an action, as the page or the editor says itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tabhub.browser.actions import TrackedAction
from tabhub.browser.elements.editor_model import editor_model
from tabhub.browser.elements.element import ActionableElement, Element
from tabhub.errors import CommandFailed, TabFailed

_MOST_SHOWN = 500
"""Characters of a value in a result; the whole is compared with what was asked."""
State = dict[str, Any]


async def field_state(action: TrackedAction, target: ActionableElement) -> State | None:
    """The current state of the field; None if the page navigated or is blocked by a dialog."""
    return None if action.page_left else await action.unless_navigating(_read(action, target))


async def complete(action: TrackedAction, target: ActionableElement, state: State) -> State:
    """A state with the full text of a code editor instead of the lines that it shows."""
    if "editor" not in state:
        return state
    root = Element(action.page, target.element.frame, str(state["editor"]), target.element.label)
    if (text := await model_text(root)) is None:
        return state
    return {**state, "value": text, "length": len(text), "shown": False}


async def model_text(root: Element) -> str | None:
    """The full text of a code editor; None where its objects cannot be found."""
    try:
        async with editor_model(root) as model:
            return await model.text()
    except TabFailed:
        raise
    except CommandFailed:
        return None


async def _read(action: TrackedAction, target: ActionableElement) -> State | None:
    try:
        state = await action.tolerate_navigation(target.element.call("field_value", {"keyups": 0}))
    except TabFailed:
        raise
    except CommandFailed:
        state = await _rerendered(action, target)
    return await complete(action, target, state) if isinstance(state, dict) else None


async def _rerendered(action: TrackedAction, target: ActionableElement) -> Any:
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


def shown_value(state: Mapping[str, Any]) -> dict[str, Any]:
    """The facts about a field's value for a result; none for a secret."""
    value = state.get("value")
    if not isinstance(value, str):
        return {}
    return {"value": value[:_MOST_SHOWN]} | ({"length": state["length"]} if len(value) > _MOST_SHOWN else {})


def value_notes(state: Mapping[str, Any], text: str, before: str | None = None) -> list[str]:
    """What to say where a field does not hold a text that was entered, or not for sure.

    `before`: what it held, if that is known and should still be there.
    """
    notes = [f"The page says of the field: {state['invalid']}"] if state.get("invalid") else []
    value = state.get("value")
    if not isinstance(value, str):
        return notes
    held, entered = _plain(value), _plain(text)
    if entered in held and (before is None or len(held) == len(_plain(before)) + len(entered)):
        return notes
    if state.get("shown"):
        return [*notes, "The editor shows only part of its text; whether it holds all of what was entered is unknown."]
    return [*notes, "The field does not hold the text as it was given: the page or its editor changed it."]


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\u00a0", " ")
