"""What is found only after something else has been opened: tabs, sections, menus, trees, pages of results."""

from __future__ import annotations

import re

from bench.miniwob.actions import click, hover, write
from bench.miniwob.policies.registry import button, spot, target, task
from bench.miniwob.products.base import Product
from bench.miniwob.view import Node, View

_ACTS = "clickable generic link menuitem text listitem"


@task("click-tab")
async def tab(p: Product, v: View) -> None:
    (name,) = v.find(r"Click on (Tab #\d)")
    await p.do(click(target(v, name)))


@task("click-tab-2", "click-tab-2-easy", "click-tab-2-medium", "click-tab-2-hard")
async def link_in_tabs(p: Product, v: View) -> None:
    (name,) = v.find(r'the link "(.*?)"')
    await _open_until(p, v, name, "tab")


@task("click-collapsible-2", "click-collapsible-2-nodelay")
async def link_in_sections(p: Product, v: View) -> None:
    (name,) = v.find(r'the link "(.*?)"')
    await _open_until(p, v, name, "tab")


async def _open_until(p: Product, v: View, name: str, role: str) -> None:
    """Open one part after the other until a link is on the page."""
    seen = v
    for number in range(len(v.all(role)) + 1):
        found = [node for node in seen.all("clickable generic link", name) if node.ref]
        if found or re.search(rf"(?<!\w){re.escape(name)}(?!\w)", seen.text.split(f'link "{name}"', 1)[1]):
            await p.do(click(found[0] if found else name))
            return
        if number < len(v.all(role)):
            await p.do(click(_head(seen, role, number)))
            seen = await p.view()


def _head(v: View, role: str, nth: int) -> Node:
    """A tab, or the link that it consists of."""
    node = v.one(role, nth=nth)
    return node if node.name else next((one for one in v.within(node) if one.role == "link"), node)


@task("click-collapsible", "click-collapsible-nodelay")
async def section(p: Product, v: View) -> None:
    await p.do(click(v.one("tab", like="Section")), click(button(v)))


@task("click-menu")
async def menu(p: Product, v: View) -> None:
    (path,) = v.find(r"Select (\S+(?:>\S+)*)")
    *above, last = path.split(">")
    await p.do(*(hover(name) for name in above), click(last))


_ICONS = {
    "disk": "Save",
    "seek-start": "Prev",
    "stop": "Stop",
    "play": "Play",
    "seek-end": "Next",
    "zoomin": "Zoom In",
    "zoomout": "Zoom Out",
}
"""What the pictures of the menu's items mean."""


@task("click-menu-2")
async def menu_with_icons(p: Product, v: View) -> None:
    named = re.search(r'labeled "(.*?)"', v.text)
    name = named[1] if named else _ICONS[await _asked_icon(p)]
    inner = name in ("Prev", "Stop", "Play", "Next")
    await p.do(click(v.one("button", "Menu")), *([hover("Playback")] if inner else []), click(name))


async def _asked_icon(p: Product) -> str:
    (icon,) = await p.elements("#query .ui-icon", "class")
    return icon.fact("class").split("ui-icon-")[-1]


@task("click-pie", "click-pie-nodelay")
async def pie(p: Product, v: View) -> None:
    (name,) = v.find(r'labeled "(.*?)"')
    await p.do(click(target(v, "+")), click(target(v, name)))


@task("navigate-tree")
async def tree(p: Product, v: View) -> None:
    (name,) = v.find(r'named "(.*?)"')
    seen, opened = v, set[str]()
    while True:
        after = seen.text.split(f'named "{name}"', 1)[1]
        if re.search(rf"\b{name}\b", after):
            await p.do(click(_last(seen, name)))
            return
        folder = next(node for node in seen.nodes if _is_folder(node) and _label(node) not in opened)
        opened.add(_label(folder))
        await p.do(click(spot(folder) if folder.ref else _label(folder)))
        seen = await p.view()


def _label(node: Node) -> str:
    return node.name or node.text


def _is_folder(node: Node) -> bool:
    return bool(re.fullmatch(r"[A-Z][a-z]+", _label(node)))


def _last(v: View, name: str) -> Node | str:
    found = [node for node in v.nodes if _label(node) == name and node.ref]
    return found[-1] if found else name


@task("phone-book")
async def phone_book(p: Product, v: View) -> None:
    name, kind = v.find(r"Find (.*?) in the contact book and click on their (\w+)")
    seen = v
    pattern = {"phone": r"^\d+-\d+-\d+$", "email": "@", "address": r"^\d+ [A-Z]"}[kind]
    for _ in range(5):
        if f"click on their {kind}" in seen.text and re.search(rf"\b{name}\b", seen.text.split("contact book", 1)[1]):
            found = seen.all(None, like=pattern)
            best = next((node for node in found if node.ref), None)
            await p.do(click(best if best is not None else found[0].name or found[0].text))
            return
        await p.do(click(target(seen, ">")))
        seen = await p.view()


@task("search-engine")
async def search(p: Product, v: View) -> None:
    text, nth = v.find(r'enter "(.*?)" and press .* the (\d)')
    page, place = divmod(int(nth) - 1, 3)
    pages = [click(str(page + 1))] if page else []
    await p.do(write(v.one("textbox"), text), click(v.one("button", "Search")), *pages)
    seen = await p.view()
    await p.do(click([node for node in seen.all("link") if re.match(r"[A-Z][a-z]+", node.name)][place]))
