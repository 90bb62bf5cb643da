"""Isolated worlds: the scripts of `js/` in the documents of a tab, out of the page's reach.

Every document gets one world with the kit of `js/` in it (elements by ref), and the world ends with the document. A
debugger that reattaches gets the same world again, so refs survive while the tab is not watched. This module owns the
source of the scripts and what is known of the worlds of a tab. It sends nothing.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Set
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

import orjson

LOST = "tabhub:lost"
"""The value of a script whose world has ended."""
_LETTERS = "eabcdghkmnpqrstuvwxyz"
"""Ref prefixes: the first document of a tab uses the first letter, the next one the second, and so on, so that a ref
of an earlier document is not mistaken for one of the current document."""
_KIT = (
    *("roles", "accessible_name", "secret_fields", "fields", "states", "actionable"),
    *("walk", "outline", "candidates", "match", "search", "reactions", "kit"),
)
_KIT_METHODS = {"waitActionable": "wait_actionable", "clickLanded": "click_landed", "fieldValue": "field_value"}
"""What acting needs; part of the kit, so that its source is sent once per document."""
FrameKey = tuple[str | None, str]
"""A frame by its child session (None is the tab's own) and its id."""


@cache
def _scripts() -> dict[str, Traversable]:
    """The scripts below `js/` by name; their folders only group them by subject."""
    folders = files("tabhub.browser").joinpath("js").iterdir()
    return {script.name.removesuffix(".js"): script for folder in folders for script in folder.iterdir()}


@cache
def source(name: str) -> str:
    return _scripts()[name].read_text("utf-8").strip()


def literal(value: Any) -> str:
    """A value as a JavaScript expression.

    JSON.parse instead of an object literal, in which a `__proto__` key would set the prototype.
    """
    return f"JSON.parse({orjson.dumps(orjson.dumps(value).decode()).decode()})"


def call_source(name: str, argument: dict[str, Any], library: str = "") -> str:
    """A function body that calls the function of script `<name>.js`, with the names of a library file in its scope."""
    shared = source(library) + "\n" if library else ""
    return f"{shared}return (\n{source(name)}\n)({literal(argument)});"


@cache
def _kit() -> str:
    """The body of a function that makes the kit, without the comments and indentation of its source."""
    methods = "\n".join(f"kit.{method} = (\n{source(name)}\n);" for method, name in _KIT_METHODS.items())
    whole = "\n".join((*map(source, _KIT), "const kit = makeKit();", methods, "return kit;"))
    lines = (line.strip() for line in whole.split("\n"))
    return "\n".join(line for line in lines if line and not line.startswith("//"))


@cache
def world_name() -> str:
    """Includes the kit's hash, so that another version gets its own worlds."""
    return f"tabhub {hashlib.sha256(_kit().encode()).hexdigest()[:12]}"


@cache
def install_expression() -> str:
    """Installs the kit unless the world has one. It is always the same, so that the browser compiles it once."""
    return f"(globalThis.tabhubKit ??= (() => {{\n{_kit()}\n}})(), true)"


def begin_expression(token: str, prefix: str) -> str:
    """Names the world unless it has been named, and returns the token and prefix it has."""
    return f"tabhubKit.begin({orjson.dumps(token).decode()}, {orjson.dumps(prefix).decode()})"


@dataclass(frozen=True, slots=True)
class World:
    """The isolated world of one document."""

    context_id: int
    token: str
    """Distinguishes this world from a later one with the same context id."""
    prefix: str
    """Ref prefix of the document: `e`, or `f2e` in a frame."""

    def script(self, body: str) -> dict[str, Any]:
        """The parameters to evaluate a function body in this world, and in no other, with `kit` in scope."""
        guard = f'kit?.token !== {orjson.dumps(self.token).decode()} ? "{LOST}"'
        expression = f"((kit) => {guard} : (() => {{\n{body}\n}})())(globalThis.tabhubKit)"
        return {"expression": expression, "contextId": self.context_id, "returnByValue": True, "awaitPromise": True}


@dataclass(slots=True)
class TabWorlds:
    """The worlds of one tab."""

    by_frame: dict[FrameKey, World] = field(default_factory=dict)
    main: str | None = None
    """The id of the main frame."""
    main_is_current: bool = False
    """Whether it is that of the document that the tab shows now."""
    documents: int = 0
    numbered: int = 0
    owners: dict[str, str] = field(default_factory=dict)
    """The ref of the frame element, by frame id."""
    silent: set[str] = field(default_factory=set)
    """Sessions of frames that did not answer last time."""
    heard: dict[str, set[int]] = field(default_factory=dict)
    """The elements known to listen for the mouse, as the browser numbers them, by the token of their world."""
    acted: set[FrameKey] = field(default_factory=set)
    """The frames whose reaction to the running action is watched; see `js/kit/reactions.js`."""
    last_snapshots: OrderedDict[Any, Any] = field(default_factory=OrderedDict)
    """The last snapshot of each session, to report changes against."""

    def prefix(self, *, main: bool) -> str:
        """A ref prefix for a new document."""
        if main:
            self.documents += 1
            return _LETTERS[(self.documents - 1) % len(_LETTERS)]
        self.numbered += 1
        return f"f{self.numbered}e"

    def adopt(self, key: FrameKey, world: World) -> None:
        """Register a world, which may have been created by an earlier hub process."""
        self.by_frame[key] = world
        frame = world.prefix[1:-1]
        if frame.isdigit():
            self.numbered = max(self.numbered, int(frame))
        elif world.prefix in _LETTERS and not self.documents:
            self.documents = _LETTERS.index(world.prefix) + 1

    @property
    def main_world(self) -> World | None:
        """The world of the main document, if scripts run in it without asking the browser for it first."""
        return self.by_frame.get((None, self.main)) if self.main is not None else None

    def navigated(self, key: FrameKey, *, main: bool) -> None:
        """The browser reports that a frame shows another document now."""
        self.forget_document(key)
        if main:
            self.main, self.main_is_current = key[1], True

    def forget_document(self, key: FrameKey) -> None:
        """A frame shows another document now."""
        if (world := self.by_frame.pop(key, None)) is not None:
            self.heard.pop(world.token, None)
        if self.main == key[1]:
            self.main_is_current = False
            # Its frames are gone with it.
            self.by_frame.clear()
            self.heard.clear()
            self.owners.clear()

    def keep_only(self, frames: Set[FrameKey]) -> None:
        """Forget all other frames."""
        ids = {frame_id for _, frame_id in frames}
        self.by_frame = {key: world for key, world in self.by_frame.items() if key in frames}
        tokens = {world.token for world in self.by_frame.values()}
        self.heard = {token: nodes for token, nodes in self.heard.items() if token in tokens}
        self.owners = {frame_id: ref for frame_id, ref in self.owners.items() if frame_id in ids}
