"""What a product shows of a page, read from the text of its answers: roles, names, refs, values, boxes.

Owns the notations of both products. A policy sees only this.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

Box = tuple[float, float, float, float]
_QUOTED = r'"(?:[^"\\]|\\.)*"'


@dataclass(frozen=True, slots=True)
class Point:
    """A place in the tab's viewport, in CSS pixels."""

    x: float
    y: float

    def plus(self, x: float, y: float) -> Point:
        return Point(self.x + x, self.y + y)


@dataclass(frozen=True, slots=True)
class Node:
    """One line of a snapshot."""

    role: str
    name: str = ""
    ref: str = ""
    value: str = ""
    """What a field holds."""
    text: str = ""
    """Its text, where that is not its name."""
    states: tuple[str, ...] = ()
    box: Box | None = None
    depth: int = 0

    @property
    def centre(self) -> Point:
        return self.at(0.5, 0.5)

    def at(self, across: float, down: float) -> Point:
        """A point of its box; 0 and 1 are the edges."""
        if self.box is None:
            raise LookupError(f"there is no box of {self.role} {self.name!r}")
        x, y, width, height = self.box
        return Point(x + across * width, y + down * height)

    def fact(self, name: str) -> str:
        """A state of the form name=value."""
        return next((state.partition("=")[2] for state in self.states if state.startswith(f"{name}=")), "")


@dataclass(frozen=True, slots=True)
class View:
    """A page as it was shown last."""

    nodes: tuple[Node, ...] = ()
    _words: list[str] = field(default_factory=list, compare=False, repr=False)

    @property
    def text(self) -> str:
        """All text in the order of the page."""
        if not self._words:
            self._words.extend(word for node in self.nodes for word in (node.name, node.text, node.value) if word)
        return " ".join(" ".join(self._words).split())

    def all(self, role: str | None = None, name: str | None = None, like: str | None = None) -> list[Node]:
        """Nodes of a role (several separated by blanks), with this name or text, or one like the pattern."""
        roles = role.split() if role else ()

        def matches(node: Node) -> bool:
            words = node.name or node.text
            if roles and node.role not in roles:
                return False
            return (name is None or words == name) and (like is None or re.search(like, words) is not None)

        return [node for node in self.nodes if matches(node)]

    def one(self, role: str | None = None, name: str | None = None, like: str | None = None, nth: int = 0) -> Node:
        found = self.all(role, name, like)
        if nth >= len(found):
            raise LookupError(f"{role or 'nothing'} {name or like or ''} is not on the page ({nth + 1}.)")
        return found[nth]

    def within(self, node: Node) -> list[Node]:
        """Everything inside a node."""
        at = self.nodes.index(node) + 1
        end = next((n for n in range(at, len(self.nodes)) if self.nodes[n].depth <= node.depth), len(self.nodes))
        return list(self.nodes[at:end])

    def find(self, pattern: str) -> tuple[str, ...]:
        """The groups of the first match in the text of the page."""
        if (found := re.search(pattern, self.text)) is None:
            raise LookupError(f"the page does not say {pattern!r}: {self.text[:200]}")
        return found.groups()


_TABHUB = re.compile(rf"(?P<role>[a-z]+)(?: (?P<name>{_QUOTED}))?(?: \[(?P<marks>[^\]]*)\])?(?P<after>.*)", re.DOTALL)
_TABHUB_VALUE = re.compile(rf"(?: [a-z]+ {_QUOTED})* = ({_QUOTED})")
_TABHUB_TEXT = re.compile(rf": ({_QUOTED})$")


def parse_tabhub(text: str) -> View:
    """The answer of browser_snapshot; its first line names the page."""
    return View(tuple(_tabhub_nodes(text.split("\n")[1:])))


def _tabhub_nodes(lines: list[str]) -> Iterator[Node]:
    for line in lines:
        bare = line.lstrip(" ")
        depth = len(line) - len(bare)
        if bare.startswith(('"', '- "')):
            yield Node("text", text=_unquoted(bare.removeprefix("- ")), depth=depth)
        elif (found := _TABHUB.fullmatch(bare)) is not None:
            ref, states, box = _marks((found["marks"] or "").split())
            value, inner = _TABHUB_VALUE.match(found["after"]), _TABHUB_TEXT.search(found["after"])
            yield Node(
                found["role"],
                _unquoted(found["name"] or ""),
                ref,
                _unquoted(value[1]) if value else "",
                _unquoted(inner[1]) if inner and not value else "",
                states,
                box,
                depth,
            )


_ELEMENT = re.compile(
    rf"(?P<tag>[\w-]+)(?: (?P<role>[a-z]+))?(?: (?P<text>{_QUOTED}))? \[(?P<marks>[^\]]*)\](?P<given>.*)", re.DOTALL
)


def parse_elements(text: str) -> list[Node]:
    """The answer of browser_query_elements: a line for each element below the first."""
    found = []
    for line in text.split("\n")[1:]:
        if (shape := _ELEMENT.fullmatch(line)) is not None:
            ref, _, box = _marks(shape["marks"].split())
            given = re.findall(rf" ([\w-]+)=({_QUOTED})", shape["given"])
            states = tuple(f"{name}={_unquoted(value)}" for name, value in given)
            found.append(Node(shape["tag"], ref=ref, text=_unquoted(shape["text"] or ""), states=states, box=box))
    return found


def _marks(words: list[str]) -> tuple[str, tuple[str, ...], Box | None]:
    ref = next((word[4:] for word in words if word.startswith("ref=")), "")
    box = next((word[4:] for word in words if word.startswith("box=")), "")
    sides = [float(side) for side in box.split(",")] if box else []
    rest = tuple(word for word in words if not word.startswith(("ref=", "box=")))
    return ref, rest, (sides[0], sides[1], sides[2], sides[3]) if len(sides) == 4 else None


def _unquoted(text: str) -> str:
    try:
        return str(json.loads(text)) if text.startswith('"') else text
    except ValueError:
        return text.strip('"')


_PLAYWRIGHT = re.compile(
    rf"(?P<role>/?[a-z]+)(?: (?P<name>{_QUOTED}|/.*?/))?(?P<marks>(?: \[[^\]]*\])*)(?P<more>:)?", re.DOTALL
)


def parse_playwright(text: str) -> View:
    """The snapshot in an answer of Playwright MCP, in YAML; nothing if the answer has none."""
    found = re.search(r"```yaml\n(.*?)\n```", text, re.DOTALL)
    nodes: list[Node] = []
    for line in found[1].split("\n") if found else ():
        bare = line.lstrip(" ")
        if not bare.startswith("- "):
            continue
        depth = (len(line) - len(bare)) // 2
        key, value = _yaml_item(bare[2:])
        if key == "text":
            nodes.append(Node("text", text=value, depth=depth))
        elif key.startswith("/"):
            if key == "/placeholder" and nodes:
                nodes[-1] = replace(nodes[-1], states=(*nodes[-1].states, f"placeholder={value}"))
        elif (shape := _PLAYWRIGHT.match(key)) is not None:
            marks = re.findall(r"\[([^\]]*)\]", shape["marks"] or "")
            ref, states, box = _marks(marks)
            is_field = shape["role"] in ("textbox", "searchbox", "spinbutton", "combobox", "slider")
            name, words = _unquoted(shape["name"] or ""), "" if is_field else value
            nodes.append(Node(shape["role"], name, ref, value if is_field else "", words, states, box, depth))
    return View(tuple(nodes))


def _yaml_item(item: str) -> tuple[str, str]:
    """The key and the value of `key: value`, either of them quoted or not."""
    if item.startswith("'"):
        key, rest = re.fullmatch(r"'((?:[^']|'')*)'(.*)", item, re.DOTALL).groups()  # type: ignore[union-attr]
        key = key.replace("''", "'")
    else:
        shape = _PLAYWRIGHT.match(item)
        end = shape.end() - bool(shape["more"]) if shape else item.find(":")
        key, rest = (item[:end], item[end:]) if end >= 0 else (item, "")
    value = rest.removeprefix(":").strip()
    if value.startswith("'") and value.endswith("'") and len(value) > 1:
        value = value[1:-1].replace("''", "'")
    return key, _unquoted(value)
