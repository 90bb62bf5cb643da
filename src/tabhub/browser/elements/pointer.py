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


def typing_events(text: str, *, tab_leaves: bool) -> list[Event]:
    """The events of typing text on one line; a tab goes to the next field or is inserted."""
    events: list[Event] = []
    shift = False
    for character in text:
        if character == "\t":
            made = keys.press_events(keys.NAMED["tab"]) if tab_leaves else None
        else:
            made = keys.character_events(character)
        if made is not None:
            events += [(KEY, event) for event in made]
            shift = shift or bool(made[-1].get("modifiers"))
        elif events and events[-1][0] == INSERT:
            events[-1][1]["text"] += character
        else:
            events.append((INSERT, {"text": character}))
    # Editors that keep track of Shift would take it as still pressed.
    return [*events, (KEY, keys.release("Shift"))] if shift else events
