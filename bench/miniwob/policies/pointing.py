"""Where to point: geometry, searching with the mouse, sliders and spinners."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from bench.miniwob.actions import Action, click, down, drag, move, press, up, wheel
from bench.miniwob.policies.registry import button, task
from bench.miniwob.products.base import Product
from bench.miniwob.view import Node, Point, View


@task("circle-center")
async def centre(p: Product, v: View) -> None:
    (circle,) = await p.elements("svg circle")
    await p.do(click(circle.centre), click(button(v)))


@task("find-midpoint")
async def midpoint(p: Product, v: View) -> None:
    one, other = (node.centre for node in await p.elements("svg circle"))
    await p.do(click(Point((one.x + other.x) / 2, (one.y + other.y) / 2)), click(button(v)))


@task("bisect-angle")
async def bisect(p: Product, v: View) -> None:
    vertex, *ends = await _dots(p)
    directions = [_unit(vertex, end) for end in ends]
    x, y = sum(d[0] for d in directions), sum(d[1] for d in directions)
    (area,) = await p.elements("svg")
    if (point := _on_ray(area, vertex, math.atan2(y, x))) is not None:
        await p.do(click(point), click(button(v)))


@task("right-angle")
async def right_angle(p: Product, v: View) -> None:
    vertex, end = await _dots(p)
    x, y = _unit(vertex, end)
    angle = math.atan2(x, -y)
    (area,) = await p.elements("svg")
    turned = [point for turn in (0.0, math.pi) if (point := _on_ray(area, vertex, angle + turn)) is not None]
    far = max(turned, key=lambda point: math.dist((point.x, point.y), (vertex.x, vertex.y)))
    await p.do(click(far), click(button(v)))


async def _dots(p: Product) -> list[Point]:
    """The centres of the dots, the blue one first."""
    dots = await p.elements("svg circle", "fill")
    return [node.centre for node in sorted(dots, key=lambda node: node.fact("fill") != "blue")]


def _unit(start: Point, end: Point) -> tuple[float, float]:
    length = math.dist((start.x, start.y), (end.x, end.y))
    return (end.x - start.x) / length, (end.y - start.y) / length


def _on_ray(area: Node, start: Point, angle: float) -> Point | None:
    """The farthest point of a ray inside the drawing that a whole number of pixels hits well."""
    inside = []
    for length in range(5, 200):
        exact = Point(start.x + length * math.cos(angle), start.y + length * math.sin(angle))
        near = Point(round(exact.x), round(exact.y))
        corner, far = area.at(0, 0), area.at(1, 1)
        # A button may cover the lower edge.
        if corner.x + 2 < near.x < far.x - 2 and corner.y + 2 < near.y < far.y - 25:
            off = math.dist((near.x, near.y), (exact.x, exact.y)) / length
            inside.append((off - length / 1000, near))
    return min(inside, key=lambda pair: pair[0])[1] if inside else None


_HEAT = (("HOT", 5.0), ("WARM", 10.0), ("COLD", 40.0), ("ICE COLD", math.inf))
"""What the page says up to which distance from the hot place."""


@task("hot-cold")
async def hot_cold(p: Product, v: View) -> None:
    """Point where the answer tells most about where the hot place can still be."""
    (area,) = await p.elements("#touch-area")
    width, height = (area.box[2], area.box[3]) if area.box else (160.0, 125.0)
    places = [(x, y) for x in range(4, int(width) - 3, 2) for y in range(4, int(height) - 3, 2)]
    while places:
        some = places[:: max(1, len(places) // 40)]
        x, y = min(some, key=lambda at: max(Counter(_heat(at, place) for place in places).values()))
        point = area.at(0, 0).plus(x, y)
        await p.do(move(point))
        (heat,) = (await p.view()).find(r"area\..*?(HOT|WARM|ICE COLD|COLD)")
        if heat == "HOT":
            await p.do(click(point))
            return
        places = [place for place in places if _heat((x, y), place) == heat]


def _heat(at: tuple[int, int], hot: tuple[int, int]) -> str:
    distance = math.dist(at, hot)
    return next(name for name, limit in _HEAT if distance < limit)


@task("draw-circle")
async def draw_circle(p: Product, v: View) -> None:
    (dot,) = await p.elements("svg circle")
    points = [
        dot.centre.plus(round(20 * math.cos(step * math.pi / 12), 1), round(20 * math.sin(step * math.pi / 12), 1))
        for step in range(25)
    ]
    await p.do(*_stroke(points), click(button(v)))


@task("draw-line")
async def draw_line(p: Product, v: View) -> None:
    (direction,) = v.find(r"Draw a (\w+) line")
    (dot,) = await p.elements("svg circle")
    along = [(step, 0) if direction == "horizontal" else (0, step) for step in range(-24, 25, 4)]
    await p.do(*_stroke([dot.centre.plus(x, y) for x, y in along]), click(button(v)))


def _stroke(points: Sequence[Point]) -> list[Action]:
    return [move(points[0]), down(points[0]), *(move(point) for point in points[1:]), up(points[-1])]


@task("use-slider", "form-sequence")
async def slider(p: Product, v: View) -> None:
    (wanted,) = v.find(r"Select (-?\d+) with")
    nth = re.search(r"click the (\d)", v.text)
    checks = [click(v.one("checkbox", nth=int(nth[1]) - 1))] if nth else []
    (handle,) = await _handles(p)
    await p.do(click(handle), *press("Home"))
    low = await _slider_value(p)
    await p.do(*press("End"))
    high = await _slider_value(p)
    await p.do(*_slider_keys(int(wanted), low, high), *checks, click(button(v)))


async def _handles(p: Product) -> list[Point]:
    return [node.centre for node in await p.elements(".ui-slider-handle")]


async def _slider_value(p: Product) -> int:
    return int((await p.view()).find(r"[Ss]ubmit\.? (-?\d+) ")[0])


def _slider_keys(wanted: int, low: int, high: int) -> tuple[Action, ...]:
    """Keys from the lower end: a page is a fifth of the whole."""
    page = max(1, (high - low) // 5)
    pages = min(5, round((wanted - low) / page))
    rest = wanted - low - pages * page if pages < 5 else wanted - high
    return press("Home", *["PageUp"] * pages, *["ArrowRight" if rest > 0 else "ArrowLeft"] * abs(rest))


@task("use-slider-2")
async def three_sliders(p: Product, v: View) -> None:
    found = v.find(r"combination \[(\d+), ?(\d+), ?(\d+)\]")
    actions: list[Action] = []
    for handle, wanted in zip(await _handles(p), found, strict=True):
        actions += [click(handle), *_slider_keys(int(wanted), 0, 20)]
    await p.do(*actions, click(button(v)))


@task("use-spinner")
async def spinner(p: Product, v: View) -> None:
    (wanted,) = v.find(r"Select (-?\d+) with the spinner")
    steps = int(wanted)
    (arrow,) = await p.elements(f".ui-spinner-{'up' if steps > 0 else 'down'}")
    await p.do(*[click(arrow.centre)] * abs(steps), click(button(v)))


@task("scroll-text-2")
async def scroll_to_end(p: Product, v: View) -> None:
    (end,) = v.find(r"textarea to the (\w+)")
    seen = await p.view(boxes=True)
    area = seen.one("textbox").centre
    await p.do(wheel(area, 3000 if end == "bottom" else -3000), click(button(v)))


@task("resize-textarea")
async def resize(p: Product, v: View) -> None:
    side, direction = v.find(r"the (\w+) is (\w+) than")
    (corner,) = await p.elements(".ui-resizable-se")
    by = 20 if direction == "larger" else -20
    end = corner.centre.plus(by, 0) if side == "width" else corner.centre.plus(0, by)
    await p.do(drag(corner.centre, end), click(button(v)))
