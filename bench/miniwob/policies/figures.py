"""Figures and colours: what has no text, so that its kind, colour and place must be asked for."""

from __future__ import annotations

import colorsys
import re
from dataclasses import dataclass

from bench.miniwob.actions import click, press, write
from bench.miniwob.policies.registry import button, spot, task
from bench.miniwob.products.base import Product
from bench.miniwob.view import Node, View

_KINDS = {"circle": "circle", "rect": "rectangle", "polygon": "triangle"}


@dataclass(frozen=True, slots=True)
class Figure:
    """One drawn thing."""

    node: Node
    size: str
    colour: str
    kind: str
    """shape, letter or digit."""
    name: str
    """circle, rectangle, triangle, or the letter or digit."""

    def fits(self, words: str) -> bool:
        """Whether a description such as `large red digit` fits."""
        *facts, what = words.split(" ")
        known = {self.size, self.colour, self.kind, self.name, "item"}
        return what in known and all(fact in (self.size, self.colour) for fact in facts)


async def figures(p: Product) -> list[Figure]:
    found = []
    for node in await p.elements("svg > *", "fill", "font-size", "points"):
        text = node.text.strip()
        kind = "shape" if node.role in _KINDS else "digit" if text.isdigit() else "letter"
        size = "large" if _size(node) > 15 else "small"
        found.append(Figure(node, size, node.fact("fill"), kind, _KINDS.get(node.role, text)))
    return found


def _size(node: Node) -> float:
    if size := node.fact("font-size"):
        return float(size.removesuffix("px"))
    return node.box[2] if node.box else 0.0


@task("click-shape")
async def click_shape(p: Product, v: View) -> None:
    (words,) = v.find(r"Click on an? (.*?)(?: Last reward|$)")
    words = words.split("  ")[0]
    one = next(figure for figure in await figures(p) if any(figure.fits(part) for part in _starts(words)))
    await p.do(click(spot(one.node)))


def _starts(words: str) -> list[str]:
    """The description alone: what follows it on the page may be letters."""
    found = re.match(r"(?:(?:large|small) )?(?:(?:red|green|blue|aqua|black|magenta|yellow) )?\S+", words)
    return [found[0]] if found else []


@task("count-shape")
async def count_shape(p: Product, v: View) -> None:
    (words,) = v.find(r"How many (.*?)s are there\?")
    count = sum(figure.fits(words) for figure in await figures(p))
    await p.do(click(v.one("button", str(count))))


@task("identify-shape")
async def identify(p: Product, v: View) -> None:
    (figure,) = await figures(p)
    name = {"letter": "Letter", "digit": "Number"}.get(figure.kind, figure.name.capitalize())
    await p.do(click(v.one("button", name)))


@task("grid-coordinate")
async def coordinate(p: Product, v: View) -> None:
    x, y = v.find(r"coordinate \((-?\d), ?(-?\d)\)")
    points = await p.elements("svg circle")
    across = sorted({node.centre.x for node in points})
    upward = sorted({node.centre.y for node in points}, reverse=True)
    at = (across[int(x) + 2], upward[int(y) + 2])
    await p.do(click(spot(next(node for node in points if (node.centre.x, node.centre.y) == at))))


@task("ascending-numbers")
async def ascending(p: Product, v: View) -> None:
    numbers = sorted((await p.elements("svg text")), key=lambda node: int(node.text))
    await p.do(*(click(node.centre) for node in numbers))


def _colour(node: Node) -> str:
    found = re.search(r"background-color: ?([^;]+)", node.fact("style"))
    return found[1].strip() if found else ""


@task("click-color")
async def click_colour(p: Product, v: View) -> None:
    boxes = await p.elements(".color", "style", "data-color")
    named = re.search(r"Click on the (\w+) colored box", v.text)
    own = [node for node in boxes if node.fact("data-color")]
    colour = named[1] if named else next(_colour(node) for node in boxes if not node.fact("data-color"))
    await p.do(click(spot(next(node for node in own if _colour(node) == colour))))


@task("click-shades")
async def click_shades(p: Product, v: View) -> None:
    (colour,) = v.find(r"shades of (\w+)")
    wanted = ("red", "green", "blue").index(colour)
    spots = [spot(node) for node in await p.elements("#area span", "style") if _hue(_colour(node)) == wanted]
    await p.do(*(click(one) for one in spots), click(button(v)))


def _hue(colour: str) -> int:
    parts = [float(part) for part in re.findall(r"[\d.]+", colour)]
    if colour.startswith("hsl"):
        parts = [255 * part for part in colorsys.hls_to_rgb(parts[0] / 360, parts[2] / 100, parts[1] / 100)]
    return parts.index(max(parts[:3]))


_NAMED = {
    "black": "000000", "white": "ffffff", "aqua": "00ffff", "blue": "0000ff", "gray": "808080", "green": "008000",
    "lime": "00ff00", "maroon": "800000", "navy": "000080", "olive": "808000", "purple": "800080", "red": "ff0000",
    "silver": "c0c0c0", "teal": "008080", "yellow": "ffff00", "pink": "ffc0cb", "magenta": "ff00ff", "gold": "ffd700",
    "orange": "ffa500",
}  # fmt: skip


@task("use-colorwheel")
async def colour_field(p: Product, v: View) -> None:
    (name,) = v.find(r"Select (\w+) with the color picker")
    await _set_colour(p, v, _NAMED[name])


@task("use-colorwheel-2")
async def shown_colour_field(p: Product, v: View) -> None:
    (shown,) = await p.elements("#query .cc", "style")
    colour = _colour(shown)
    parts = [int(part) for part in re.findall(r"\d+", colour)] if colour.startswith("rgb") else []
    await _set_colour(p, v, "".join(f"{part:02x}" for part in parts) or colour.removeprefix("#"))


async def _set_colour(p: Product, v: View, code: str) -> None:
    await p.do(write(v.one("textbox"), code.upper()), *press("Tab"), click(button(v)))


@task("visual-addition")
async def count_blocks(p: Product, v: View) -> None:
    blocks = await p.elements(".addition-block")
    await p.do(write(v.one("textbox"), str(len(blocks))), click(button(v)))


@task("text-transform")
async def captcha(p: Product, v: View) -> None:
    letters = await p.elements("#captcha span")
    await p.do(write(v.one("textbox"), "".join(node.text for node in letters)), click(button(v)))
