"""The browser's own accessibility tree of a page, in the notation of browser_snapshot, to compare a snapshot with."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from tests.e2e.live import DevTools

ACTING = {
    "button",
    "checkbox",
    "ColorWell",
    "combobox",
    "Date",
    "DisclosureTriangle",
    "link",
    "listbox",
    "menuitem",
    "menuitemcheckbox",
    "menuitemradio",
    "radio",
    "searchbox",
    "slider",
    "spinbutton",
    "switch",
    "tab",
    "textbox",
    "treeitem",
}
"""Roles of actionable elements, as Chromium names them."""
_OWN = {"Date", "DateTime", "InputTime", "ColorWell", "Video", "Audio"}
"""Composite controls, whose parts the browser adds itself."""
_STATES = ("checked", "disabled", "expanded", "focused", "invalid", "level", "pressed", "required", "selected")


async def full_tree(devtools: DevTools, url: str) -> list[list[dict[str, Any]]]:
    """The nodes of all documents of a page, except those in other processes."""
    async with devtools.connected() as wire:
        session = await wire.attach((await devtools.targets("page", url))[0])
        tree = (await wire.send("Page.getFrameTree", session))["frameTree"]
        found = []
        for frame in _frames(tree):
            nodes = (await wire.send("Accessibility.getFullAXTree", session, frameId=frame))["nodes"]
            found.append(nodes)
        return found


def _frames(tree: dict[str, Any]) -> Iterator[str]:
    yield tree["frame"]["id"]
    for child in tree.get("childFrames", []):
        yield from _frames(child)


def names(documents: list[list[dict[str, Any]]]) -> Counter[str]:
    """Actionable elements by name."""
    found: Counter[str] = Counter()
    for nodes in documents:
        inside = _inside(nodes)
        for node in nodes:
            if not node["ignored"] and node["role"]["value"] in ACTING and node["nodeId"] not in inside:
                found[node.get("name", {}).get("value", "").strip()] += 1
    return found


def _inside(nodes: list[dict[str, Any]]) -> set[str]:
    """The nodes that belong to the browser's composite controls."""
    by_id = {node["nodeId"]: node for node in nodes}
    found: set[str] = set()
    left = [
        child
        for node in nodes
        if not node["ignored"] and node["role"]["value"] in _OWN
        for child in node.get("childIds", [])
    ]
    while left:
        at = left.pop()
        found.add(at)
        left += by_id.get(at, {}).get("childIds", [])
    return found


def rendered(documents: list[list[dict[str, Any]]]) -> str:
    """The whole tree in the notation of a snapshot, with a ref for every actionable node."""
    lines: list[str] = []
    for nodes in documents:
        by_id = {node["nodeId"]: node for node in nodes}
        for node in nodes:
            if node.get("parentId") not in by_id:
                _render(node, by_id, 0, lines)
    return "\n".join(lines)


def _render(node: dict[str, Any], by_id: dict[str, dict[str, Any]], depth: int, lines: list[str]) -> None:
    inner = [by_id[child] for child in node.get("childIds", []) if child in by_id]
    if node["ignored"]:
        for child in inner:
            _render(child, by_id, depth, lines)
        return
    role = node["role"]["value"]
    name = node.get("name", {}).get("value", "")
    properties = {one["name"]: one["value"].get("value") for one in node.get("properties", [])}
    marks = [f"ref=e{len(lines)}"] if role in ACTING else []
    marks += [f"{key}={properties[key]}" for key in _STATES if properties.get(key) not in (None, False, "false")]
    line = f"{role} {json.dumps(name, ensure_ascii=False)}" if name else role
    if marks:
        line += f" [{' '.join(marks)}]"
    if "url" in properties:
        line += f" {properties['url']}"
    if node.get("value"):
        line += f" = {json.dumps(node['value'].get('value'), ensure_ascii=False)}"
    lines.append(" " * depth + line)
    for child in inner:
        _render(child, by_id, depth + 1, lines)
