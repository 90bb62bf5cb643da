"""Text into a field that is ready for it: typed key by key, or as one paste.

Owns how line breaks, indentation and the selection are handled in text fields, rich text and code editors. Which field
it is, and what is reported of it, is up to the tools.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack

from tabhub.browser.actions import TrackedAction
from tabhub.browser.driver.cdp_values import parse_object
from tabhub.browser.elements import keys, pointer
from tabhub.browser.elements.editor_model import EditorModel, editor_model
from tabhub.browser.elements.element import ActionableElement, Element
from tabhub.errors import CommandFailed, TabFailed

_CHUNK = 400
"""Characters sent in one message; each is two commands."""
_TOLD = 1000
"""Characters after which progress is reported."""
_SHIFT = keys.MODIFIERS["Shift"]
Progress = Callable[[int, int], None]


async def type_keys(
    action: TrackedAction, target: ActionableElement, text: str, *, clear: bool, keep: bool, progress: Progress
) -> None:
    """Type a text as a person does. A line break is Enter, and indentation that the editor adds is not typed again."""
    await place_cursor(action, target, clear=clear, keep=keep, empty=not text)
    lines, multiline = text.replace("\r\n", "\n").split("\n"), target.kind in ("area", "rich", "code")
    async with AsyncExitStack() as stack:
        model = await _model(action, target, stack) if target.kind == "code" and len(lines) > 1 else None
        done = told = 0
        for number, line in enumerate(lines):
            rest = line
            if number:
                await _send(action, pointer.key_press(keys.NAMED["enter"]))
                if multiline and not action.page_left:
                    rest = await _after_indent(action, target, model, line)
            for piece in _pieces(rest):
                if action.page_left:
                    return
                await _send(action, pointer.typing_events(piece, tab_leaves=not multiline))
                done += len(piece)
                if done - told >= _TOLD:
                    progress(told := done, len(text))


async def enter_text(
    action: TrackedAction, target: ActionableElement, text: str, *, clear: bool, keep: bool
) -> str | None:
    """Enter a text in one piece; returns how the page took it: `pasted` or `inserted`. None if it navigated."""
    await place_cursor(action, target, clear=clear, keep=keep, empty=not text)
    if not text:
        return "inserted"
    answer = await action.tolerate_navigation(target.element.call("enter_text", {"text": text}), target.element.frame)
    if answer == "" and not action.page_left:
        await _send(action, [(pointer.INSERT, {"text": text})])
        return "inserted"
    return answer if isinstance(answer, str) else None


async def place_cursor(
    action: TrackedAction, target: ActionableElement, *, clear: bool, keep: bool, empty: bool = False
) -> None:
    """Select everything in a code editor or go to its end, by keys; other fields are selected by script.

    `empty`: nothing is entered over the selection, so it is deleted.
    """
    events: list[pointer.Event] = []
    if target.kind == "code" and not keep:
        mac = bool(target.facts.get("mac"))
        held = keys.MODIFIERS["Meta" if mac else "Control"]
        key = keys.CHARACTERS["a"] if clear else keys.NAMED["arrowdown" if mac else "end"]
        events = pointer.key_press(key, held)
    if clear and empty and not target.facts.get("empty"):
        events += pointer.key_press(keys.NAMED["delete"])
    await _send(action, events)


async def _after_indent(action: TrackedAction, target: ActionableElement, model: EditorModel | None, line: str) -> str:
    """What of a line is left to type after the indentation that Enter made, which is removed where it does not fit."""
    indent = await _before_cursor(action, target, model)
    if not indent or indent.strip(" \t"):
        return line
    if line.startswith(indent):
        return line[len(indent) :]
    if target.kind == "code":
        remove = pointer.key_press(keys.NAMED["home"], _SHIFT)
    else:
        remove = pointer.key_press(keys.NAMED["arrowleft"], _SHIFT) * len(indent)
    await _send(action, [*remove, *pointer.key_press(keys.NAMED["delete"])])
    return line


async def _before_cursor(action: TrackedAction, target: ActionableElement, model: EditorModel | None) -> str | None:
    try:
        text = await action.tolerate_navigation(model.before_cursor()) if model else None
        if text is None and not action.page_left:
            text = await action.tolerate_navigation(target.element.call("before_cursor"))
    except TabFailed:
        raise
    except CommandFailed:  # the field was replaced
        return None
    return text if isinstance(text, str) else None


async def _model(action: TrackedAction, target: ActionableElement, stack: AsyncExitStack) -> EditorModel | None:
    element = target.element
    try:
        state = parse_object(await element.call("field_value", {}))
        if "editor" not in state:
            return None
        root = Element(action.page, element.frame, str(state["editor"]), element.label)
        return await stack.enter_async_context(editor_model(root))
    except TabFailed:
        raise
    except CommandFailed:
        return None


async def _send(action: TrackedAction, events: list[pointer.Event]) -> None:
    if events and not action.page_left:
        await action.tolerate_navigation(pointer.send_events(action.page, events))


def _pieces(text: str) -> Iterator[str]:
    for start in range(0, len(text), _CHUNK):
        yield text[start : start + _CHUNK]
