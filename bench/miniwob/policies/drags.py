"""Dragging: lists, boxes, shapes, calendars, a cube."""

from __future__ import annotations

import re

from bench.miniwob.actions import Action, carry, click, down, drag, move, up, wait, write
from bench.miniwob.policies.figures import figures
from bench.miniwob.policies.registry import button, task
from bench.miniwob.products.base import Product
from bench.miniwob.view import Node, View


@task("drag-box")
async def drag_box(p: Product, v: View) -> None:
    small, large = [(await p.elements(name))[0] for name in ("#draggableSmall", "#draggableLarge")]
    await p.do(drag(small.centre, large.centre), click(button(v)))


@task("drag-circle", "drag-single-shape")
async def drag_shape(p: Product, v: View) -> None:
    (direction,) = v.find(r"Drag the \w+ (\w+) then")
    (shape,) = await p.elements("svg > *")
    across, down_ = {"left": (-20, 0), "right": (20, 0), "up": (0, -20), "down": (0, 20)}[direction]
    await p.do(drag(shape.centre, shape.centre.plus(2 * across, 2 * down_)), click(button(v)))


@task("drag-shapes")
async def drag_into_box(p: Product, v: View) -> None:
    (kind,) = v.find(r"Drag all (\w+)s into")
    (box,) = await p.elements("#shape-container")
    wanted = [one.node for one in await figures(p) if one.name == kind and one.colour != "none"]
    await p.do(*_into(wanted, box), click(button(v)))


@task("drag-shapes-2")
async def drag_apart(p: Product, v: View) -> None:
    (kind,) = v.find(r"Drag all (.*?) into the left box")
    left, right = await p.elements("#shape-container")
    shapes = [one for one in await figures(p) if one.colour != "none"]
    chosen = [one for one in shapes if kind in (f"{one.name}s", f"{one.colour} shapes")]
    rest = [one for one in shapes if one not in chosen]
    actions = [*_into([one.node for one in chosen], left), *_into([one.node for one in rest], right)]
    await p.do(*actions, click(button(v)))


def _into(shapes: list[Node], box: Node) -> list[Action]:
    """Side by side, in the upper part of the box, away from its edges."""
    places = [box.at((at + 1) / (len(shapes) + 1), 0.45) for at in range(len(shapes))]
    return [drag(shape.centre, place) for shape, place in zip(shapes, places, strict=True)]


@task("drag-items")
async def drag_item(p: Product, v: View) -> None:
    name, where = v.find(r"Drag (\w+) (to the (?:top|bottom|\d\w\w position)|(?:up|down) by one position)")
    items = await p.elements("#sortable li")
    at = next(number for number, node in enumerate(items) if node.text.strip() == name)
    places = {"to the top": 0, "to the bottom": len(items) - 1, "down by one position": at + 1}
    to = places.get(where, at - 1)
    if found := re.match(r"to the (\d)", where):
        to = int(found[1]) - 1
    await p.do(carry(items[at].centre, items[to].at(0.5, 0.2 if to < at else 0.8)))


@task("drag-items-grid")
async def drag_in_grid(p: Product, v: View) -> None:
    name, where = v.find(r"Drag (\w+) (to the [\w ]+|\w+ by one)\.")
    items = await p.elements("#sortable li")
    at = next(number for number, node in enumerate(items) if node.text.strip() == name)
    row, column = divmod(at, 3)
    if where.endswith("by one"):
        down_, across = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}[where.split()[0]]
        row, column = row + down_, column + across
    else:
        row = 0 if "top" in where else 2 if "bottom" in where else 1
        column = 0 if "left" in where else 2 if "right" in where else 1
    to = 3 * row + column
    await p.do(carry(items[at].centre, items[to].centre))


@task("drag-sort-numbers")
async def sort_numbers(p: Product, v: View) -> None:
    """Drag the next smallest number to its place, until all are sorted."""
    items = await p.elements("#sortable li")
    numbers = [int(node.text) for node in items]
    places = [node.at(0.5, 0.5) for node in items]
    actions = []
    for at, number in enumerate(sorted(numbers)):
        now = numbers.index(number)
        if now != at:
            actions.append(carry(places[now], items[at].at(0.5, 0.2)))
            numbers.insert(at, numbers.pop(now))
    await p.do(*actions, click(button(v)))


_TURNS = {"1": (0, -20), "2": (-20, 0), "3": (-20, 0), "4": (20, 0), "5": (-20, 0), "6": (0, 20)}
"""In which direction the cube is pushed until a side is in front."""


@task("drag-cube")
async def turn_cube(p: Product, v: View) -> None:
    (wanted,) = v.find(r'so that "(\d)"')
    (frame,) = await p.elements(".viewport")
    start, end = frame.centre, frame.centre.plus(*_TURNS[wanted])
    for _ in range(20):
        (front,) = await p.elements(".cube-image.active")
        if front.text == wanted:
            break
        await p.do(move(start), down(start), move(end), up(end), wait(0.4))
    await p.do(click(button(v)))


_HOURS = {"8AM": 8, "12PM": 12, "4PM": 16, "8PM": 20}


@task("daily-calendar")
async def calendar(p: Product, v: View) -> None:
    amount, unit, name, start, end = v.find(
        r'Create a ([\d.]+) (hours?|mins) event named "(\w+)", between (\w+) and (\w+)'
    )
    halves = int(2 * float(amount)) if unit.startswith("hour") else int(amount) // 30
    taken = [_half_hours(node) for node in await p.elements(".event", "style")]
    free = next(
        first
        for first in range(2 * _HOURS[start], 2 * _HOURS[end] - halves + 1)
        if all(first + halves <= busy[0] or first > busy[1] for busy in taken)
    )
    area, first = (await p.elements("#area"))[0], (await p.elements(f"#hh-{free}"))[0]
    offset = first.centre.y - area.at(0, 0.4).y
    await p.do(Action("wheel", area.centre, {"by": round(offset)}))
    for _ in range(3):  # a page may scroll a moment later
        slots = await p.elements(f"#hh-{free}, #hh-{free + halves - 1}")
        if slots[0].centre.y < area.at(0, 1).y:
            break
    points = [slots[0].at(0.5, 0.3), slots[0].at(0.5, 0.5), slots[-1].at(0.5, 0.5), slots[-1].at(0.5, 0.6)]
    await p.do(down(points[0]), *(move(point) for point in points[1:]), up(points[-1]))
    seen = await p.view()
    await p.do(write(seen.one("textbox"), name), click(button(seen, "Create")))


def _half_hours(event: Node) -> tuple[int, int]:
    """The first and the last half hour of an event."""
    top, height = (float(number) for number in re.findall(r"[\d.]+(?=px)", event.fact("style")))
    first = round((top - 4) / 20.42)
    return first, first + round(height / 20) - 1
