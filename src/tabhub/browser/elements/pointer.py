"""Mouse and keyboard input as CDP Input events, sent together without waiting in between.

Owns how a click, a move or typed text becomes events. The browser handles them in order, so only the last one is
awaited.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tabhub.browser.driver.page import Page
from tabhub.browser.elements import keys

MOUSE = "Input.dispatchMouseEvent"
KEY = "Input.dispatchKeyEvent"
INSERT = "Input.insertText"
BUTTONS = {"left": 1, "right": 2, "middle": 4}
_MAX_TYPED = 300
"""Longer text is inserted as a whole: single key presses would take seconds."""
Event = tuple[str, dict[str, Any]]


async def send_events(page: Page, events: Sequence[Event], session_id: str | None = None) -> None:
    """Send events in order, to the tab or to a frame in another process, and wait for the last one."""
    for method, params in events[-1:]:
        ahead = [{"method": name, "params": given} for name, given in events[:-1]]
        await page.cdp(method, params, session_id, ahead=ahead)


def mouse_event(
    kind: str, x: float, y: float, *, button: str = "", pressed: bool = False, count: int = 0, modifiers: int = 0
) -> Event:
    """One mouse event of a CDP type; `pressed`: the button is down when the page handles it."""
    params: dict[str, Any] = {"type": kind, "x": x, "y": y, "modifiers": modifiers}
    if button:
        params["button"] = button
    if pressed and button:
        params["buttons"] = BUTTONS[button]
    if count:
        params["clickCount"] = count
    return MOUSE, params


def click(x: float, y: float, *, button: str = "left", count: int = 1, modifiers: int = 0) -> list[Event]:
    events = [mouse_event("mouseMoved", x, y, modifiers=modifiers)]
    for number in range(1, count + 1):
        how: dict[str, Any] = {"button": button, "count": number, "modifiers": modifiers}
        events.append(mouse_event("mousePressed", x, y, pressed=True, **how))
        events.append(mouse_event("mouseReleased", x, y, **how))
    return events


def key_press(key: keys.Key, held: int = 0) -> list[Event]:
    return [(KEY, event) for event in keys.press_events(key, held)]


def typing_events(text: str, *, lines: bool) -> list[Event]:
    """The events of typing text; in a field with `lines`, a line break is Shift+Enter, which submits no form."""
    if len(text) > _MAX_TYPED:
        return [(INSERT, {"text": text})]
    events: list[Event] = []
    enter, tab = keys.NAMED["enter"], keys.NAMED["tab"]
    for character in text.replace("\r\n", "\n"):
        if character == "\n":
            made: list[dict[str, Any]] | None = keys.press_events(enter, keys.MODIFIERS["Shift"] if lines else 0)
        elif character == "\t":
            made = None if lines else keys.press_events(tab)
        else:
            made = keys.character_events(character)
        if made is not None:
            events += [(KEY, event) for event in made]
        elif events and events[-1][0] == INSERT:
            events[-1][1]["text"] += character
        else:
            events.append((INSERT, {"text": character}))
    return events
