"""Tabhub as policies use it: one call for several actions, refs and texts as targets, coordinates on request."""

from __future__ import annotations

import json
from typing import Any

from bench.miniwob.actions import Action, Target
from bench.miniwob.products.mcp import Client, Meter
from bench.miniwob.view import Node, Point, View, parse_elements, parse_tabhub

_TOOLS = {"click_element", "type_text", "press_key", "select_option", "scroll"}
"""The actions that have a tool of their own in the default catalogue."""


class Tabhub:
    """The adapter of Tabhub."""

    name = "Tabhub"

    def __init__(self, client: Client) -> None:
        self._client = client

    def begin(self, *, log: bool) -> Meter:
        self._client.meter = Meter(log=[] if log else None)
        return self._client.meter

    async def open(self, url: str) -> View:
        await self._client.call("browser_navigate_tab", {"url": url})
        return await self.view()

    async def view(self, *, boxes: bool = False) -> View:
        return parse_tabhub(await self._client.call("browser_snapshot", {"boxes": True} if boxes else {}))

    async def do(self, *actions: Action) -> None:
        steps = [_step(action) for action in actions]
        kind, given = steps[0]
        if len(steps) == 1 and kind in _TOOLS:
            await self._client.call(f"browser_{kind}", given)
        else:
            await self._client.call("browser_act", {"actions": [{"action": name, **args} for name, args in steps]})

    async def value(self, node: Node) -> str:
        text = await self._client.call("browser_get_tab_content", {"ref": node.ref})
        return str(json.loads(text)["content"]) if text.startswith("{") else text

    async def elements(self, selector: str, *attributes: str) -> list[Node]:
        asked = {"selector": selector} | ({"attributes": list(attributes)} if attributes else {})
        return parse_elements(await self._client.call("browser_query_elements", asked))


def _step(action: Action) -> tuple[str, dict[str, Any]]:
    """The name and the arguments of an action."""
    given = action.given
    match action.verb, action.at:
        case ("click", Point(x, y)):
            extra = {"count": given["count"]} if given["count"] > 1 else {}
            return "mouse", {"do": "click", "x": x, "y": y, **extra}
        case ("click", _):
            extra = {"count": given["count"]} if given["count"] > 1 else {}
            if given["modifiers"]:
                extra["modifiers"] = list(given["modifiers"])
            return "click_element", _target(action.at) | extra
        case ("hover", _):
            return "hover_element", _target(action.at)
        case ("write", _):
            return "type_text", {**_target(action.at), "text": given["text"], "clear": True}
        case ("enter", _):
            return "type_text", {**_target(action.at), "text": given["text"]}
        case ("keys", _):
            return "type_text", {"text": given["text"]}
        case ("press", _):
            return "press_key", {"key": given["key"]}
        case ("choose", _):
            labels = list(given["labels"])
            return "select_option", {**_target(action.at), "value": labels if len(labels) > 1 else labels[0]}
        case (("drag" | "carry"), _):
            return "drag", {"from": _end(action.at), "to": _end(given["to"])}
        case ("mouse", Point(x, y)):
            return "mouse", {"do": given["do"], "x": x, "y": y}
        case ("wheel", Point(x, y)):
            return "mouse", {"do": "wheel", "x": x, "y": y, "deltaY": given["by"]}
        case ("wait", _):
            return "wait_for", {"timeout": round(1000 * given["seconds"])}
        case _:
            raise ValueError(f"Tabhub has nothing for {action}")


def _target(at: Target | None) -> dict[str, Any]:
    if isinstance(at, str):
        return {"text": at}
    if isinstance(at, Node):
        return {"ref": at.ref} if at.ref else {"text": at.name or at.text}
    raise ValueError(f"{at} is no element")


def _end(at: Target | None) -> Any:
    if isinstance(at, Point):
        return {"x": at.x, "y": at.y}
    target = _target(at)
    return target.get("ref", target)
