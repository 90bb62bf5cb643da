"""Playwright MCP as policies use it: its answers contain the page after each action, so it is seldom asked for."""

from __future__ import annotations

import json
import re
from typing import Any

from bench.miniwob.actions import Action, Target
from bench.miniwob.products.mcp import Client, Meter
from bench.miniwob.view import Node, Point, View, parse_playwright

_ELEMENTS = """() => JSON.stringify([...document.querySelectorAll(SELECTOR)].map((one) => {
  const {x, y, width, height} = one.getBoundingClientRect();
  const given = ATTRIBUTES.map((name) => [name, one.getAttribute(name)]).filter(([, value]) => value !== null);
  const text = one.textContent.trim().slice(0, 200);
  const box = [x, y, width, height].map((side) => Math.round(10 * side) / 10);
  return {tag: one.localName, text, box, ...Object.fromEntries(given)};
}))"""


class Playwright:
    """The adapter of Playwright MCP."""

    name = "Playwright MCP"

    def __init__(self, client: Client) -> None:
        self._client = client
        self._last = View()

    def begin(self, *, log: bool) -> Meter:
        self._client.meter = Meter(log=[] if log else None)
        self._last = View()
        return self._client.meter

    async def open(self, url: str) -> View:
        await self._call("browser_navigate", {"url": url})
        return await self.view()

    async def view(self, *, boxes: bool = False) -> View:
        if boxes or not self._last.nodes:
            await self._call("browser_snapshot", {"boxes": True} if boxes else {})
        seen, self._last = self._last, View()
        return seen

    async def do(self, *actions: Action) -> None:
        rest = list(actions)
        while rest:
            fields = []
            while rest and rest[0].verb == "write":
                fields.append(rest.pop(0))
            if len(fields) > 1:
                await self._call("browser_fill_form", {"fields": [_field(one) for one in fields]})
            elif fields:
                given = {"target": _target(fields[0].at), "text": fields[0].given["text"]}
                await self._call("browser_type", given)
            if rest:
                for name, arguments in _calls(rest.pop(0)):
                    await self._call(name, arguments)

    async def value(self, node: Node) -> str:
        return node.value

    async def elements(self, selector: str, *attributes: str) -> list[Node]:
        source = _ELEMENTS.replace("SELECTOR", json.dumps(selector)).replace("ATTRIBUTES", json.dumps(attributes))
        text = await self._call("browser_evaluate", {"function": source})
        found = re.search(r"### Result\n(.*?)(?=\n### |\Z)", text, re.DOTALL)
        listed = json.loads(json.loads(found[1])) if found else []
        return [_element(one, f"{selector} >> nth={number}") for number, one in enumerate(listed)]

    async def _call(self, name: str, arguments: dict[str, Any]) -> str:
        text = await self._client.call(name, arguments)
        self._last = parse_playwright(text)
        return text


def _element(one: dict[str, Any], selector: str) -> Node:
    x, y, width, height = one.pop("box")
    tag, text = one.pop("tag"), one.pop("text")
    states = tuple(f"{name}={value}" for name, value in one.items())
    return Node(tag, ref=selector, text=text, states=states, box=(x, y, width, height))


def _field(action: Action) -> dict[str, Any]:
    node = action.at
    name = (node.name if isinstance(node, Node) else "") or "field"
    return {"target": _target(node), "name": name, "type": "textbox", "value": action.given["text"]}


def _calls(action: Action) -> list[tuple[str, dict[str, Any]]]:
    """The calls of one action."""
    at, given = action.at, action.given
    match action.verb, at:
        case ("click", Point(x, y)):
            extra = {"clickCount": given["count"]} if given["count"] > 1 else {}
            return [("browser_mouse_click_xy", {"x": x, "y": y, **extra})]
        case ("click", _):
            arguments: dict[str, Any] = {"target": _target(at)}
            if given["count"] == 2:
                arguments["doubleClick"] = True
            if given["modifiers"]:
                arguments["modifiers"] = list(given["modifiers"])
            return [("browser_click", arguments)]
        case ("hover", _):
            return [("browser_hover", {"target": _target(at)})]
        case ("enter", _):
            return [("browser_type", {"target": _target(at), "text": given["text"], "slowly": True})]
        case ("keys", _):
            return [("browser_press_key", {"key": letter}) for letter in given["text"]]
        case ("press", _):
            return [("browser_press_key", {"key": given["key"]})]
        case ("choose", _):
            return [("browser_select_option", {"target": _target(at), "values": list(given["labels"])})]
        case ("carry", Point()):
            to = given["to"]
            return [
                *_calls(Action("mouse", at, {"do": "down"})),
                *(
                    _mouse_to(at.x + part * (to.x - at.x), at.y + part * (to.y - at.y))
                    for part in (0.3, 0.9, 1.08, 1.0)
                ),
                ("browser_mouse_up", {}),
            ]
        case ("drag", Point(x, y)):
            to = given["to"] if isinstance(given["to"], Point) else given["to"].centre
            return [("browser_mouse_drag_xy", {"startX": x, "startY": y, "endX": to.x, "endY": to.y})]
        case ("drag", _):
            return [("browser_drag", {"startTarget": _target(at), "endTarget": _target(given["to"])})]
        case ("mouse", Point(x, y)):
            there = _mouse_to(x, y)
            return [there] if given["do"] == "move" else [there, (f"browser_mouse_{given['do']}", {})]
        case ("wheel", Point(x, y)):
            return [_mouse_to(x, y), ("browser_mouse_wheel", {"deltaX": 0, "deltaY": given["by"]})]
        case ("wait", _):
            return [("browser_wait_for", {"time": given["seconds"]})]
        case _:
            raise ValueError(f"Playwright MCP has nothing for {action}")


def _mouse_to(x: float, y: float) -> tuple[str, dict[str, Any]]:
    return "browser_mouse_move_xy", {"x": x, "y": y}


def _target(at: Target | None) -> str:
    if isinstance(at, Node) and at.ref:
        return at.ref
    if isinstance(at, Node):
        at = at.name or at.text
    if isinstance(at, str):
        return f'text="{at}"'
    raise ValueError(f"{at} is no element")
