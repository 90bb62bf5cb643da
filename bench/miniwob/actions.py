"""What policies do: actions on nodes, visible texts and points, the same for both products."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bench.miniwob.view import Node, Point

Target = Node | str | Point
"""A node of a view, a visible text, or a point."""


@dataclass(frozen=True, slots=True)
class Action:
    """One action; what the verb needs is in `given`."""

    verb: str
    at: Target | None = None
    given: Mapping[str, Any] = field(default_factory=dict)


def click(at: Target, count: int = 1, *modifiers: str) -> Action:
    return Action("click", at, {"count": count, "modifiers": modifiers})


def hover(at: Target) -> Action:
    return Action("hover", at)


def write(at: Node, text: str) -> Action:
    """Replace what a field holds."""
    return Action("write", at, {"text": text})


def enter(at: Node, text: str) -> Action:
    """Type into a field key by key, as a page with suggestions needs it."""
    return Action("enter", at, {"text": text})


def keys(text: str) -> Action:
    """Type where the focus is."""
    return Action("keys", None, {"text": text})


def press(*names: str) -> tuple[Action, ...]:
    """Press keys where the focus is, one after the other."""
    return tuple(Action("press", None, {"key": name}) for name in names)


def choose(at: Node, *labels: str) -> Action:
    """Choose exactly these options of a list."""
    return Action("choose", at, {"labels": labels})


def drag(start: Target, end: Target) -> Action:
    return Action("drag", start, {"to": end})


def carry(start: Point, end: Point) -> Action:
    """Drag where other items make room on the way."""
    return Action("carry", start, {"to": end})


def move(at: Point) -> Action:
    return Action("mouse", at, {"do": "move"})


def down(at: Point) -> Action:
    return Action("mouse", at, {"do": "down"})


def up(at: Point) -> Action:
    return Action("mouse", at, {"do": "up"})


def wheel(at: Point, by: int) -> Action:
    """Turn the wheel down, or up if negative, by pixels."""
    return Action("wheel", at, {"by": by})


def wait(seconds: float) -> Action:
    return Action("wait", None, {"seconds": seconds})
