"""An isolated world in every document of a tab, in which our page code runs out of the page's reach.

Owns creating these worlds, the kit stored in them (elements by ref) and the ref prefix of each document. It does not
know what the code does. A world belongs to one document and ends with it. A debugger that reattaches gets the same
world again, so refs survive while the tab is not watched.
"""

from __future__ import annotations

import hashlib
import secrets
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

import orjson

from tabhub.browser.driver import page_code
from tabhub.browser.driver.page import FollowUp, Page
from tabhub.browser.driver.tab_watch import TabWatch
from tabhub.errors import CommandFailed, ContextDestroyed

_MOST_TABS = 2_000
_LETTERS = "eabcdghkmnpqrstuvwxyz"
"""Ref prefixes: the first document of a tab uses the first letter, the next one the second, and so on, so that a ref
of an earlier document is not mistaken for one of the current document."""
_LOST = "tabhub:lost"


@dataclass(frozen=True, slots=True)
class World:
    """The isolated world of one document."""

    context_id: int
    token: str
    """Distinguishes this world from a later one with the same context id."""
    prefix: str
    """Ref prefix of the document: `e`, or `f2e` in a frame."""


@dataclass(slots=True)
class TabWorlds:
    """The worlds of one tab."""

    worlds: dict[tuple[str | None, str], World] = field(default_factory=dict)
    """By session and frame."""
    main: str | None = None
    """The id of the main frame."""
    documents: int = 0
    numbered: int = 0
    owners: dict[str, str] = field(default_factory=dict)
    """The ref of the frame element, by frame id."""
    silent: set[str] = field(default_factory=set)
    """Sessions of frames that did not answer last time."""
    last_snapshots: OrderedDict[Any, Any] = field(default_factory=OrderedDict)
    """The last snapshot of each session, to report changes against."""

    def prefix(self, *, main: bool) -> str:
        """A ref prefix for a new document."""
        if main:
            self.documents += 1
            return _LETTERS[(self.documents - 1) % len(_LETTERS)]
        self.numbered += 1
        return f"f{self.numbered}e"

    def adopt(self, key: tuple[str | None, str], world: World) -> None:
        """Register a world, which may have been created by an earlier hub process."""
        self.worlds[key] = world
        frame = world.prefix[1:-1]
        if frame.isdigit():
            self.numbered = max(self.numbered, int(frame))
        elif world.prefix in _LETTERS and not self.documents:
            self.documents = _LETTERS.index(world.prefix) + 1


_TABS: WeakKeyDictionary[TabWatch, OrderedDict[int, TabWorlds]] = WeakKeyDictionary()


def tab_worlds(page: Page) -> TabWorlds:
    tabs = _TABS.setdefault(page.watch, OrderedDict())
    known = tabs.get(page.tab_id)
    if known is None:
        known = tabs[page.tab_id] = TabWorlds()
        if len(tabs) > _MOST_TABS:
            tabs.popitem(last=False)
    else:
        tabs.move_to_end(page.tab_id)
    return known


@cache
def _kit() -> str:
    return "\n".join(
        page_code.source(name)
        for name in ("roles", "accessible_name", "states", "walk", "outline", "match", "search", "kit")
    )


@cache
def _name() -> str:
    """World name; includes the kit's hash, so that another version gets its own worlds."""
    return f"tabhub {hashlib.sha256(_kit().encode()).hexdigest()[:12]}"


async def world_of(page: Page, session_id: str | None, frame_id: str, *, main: bool) -> World:
    """The world of the frame's current document, created if needed."""
    known = tab_worlds(page)
    key = (session_id, frame_id)
    if key in known.worlds:
        return known.worlds[key]
    # Chosen before the first await, so that frames examined together are numbered in order.
    token, prefix = secrets.token_hex(8), known.prefix(main=main)
    made = await page.cdp("Page.createIsolatedWorld", {"frameId": frame_id, "worldName": _name()}, session_id)
    context_id = made.get("executionContextId")
    if type(context_id) is not int:
        raise CommandFailed("The browser did not create an isolated world for page code.", hint="Repeat the call.")
    install = (
        f"(globalThis.tabhubKit ??= (() => {{\n{_kit()}\nreturn makeKit({orjson.dumps(token).decode()},"
        f" {orjson.dumps(prefix).decode()});\n}})(), [tabhubKit.token, tabhubKit.prefix])"
    )
    value = await _evaluate(page, session_id, context_id, install)
    if not isinstance(value, list) or len(value) != 2:
        raise CommandFailed(f"The page in tab {page.tab_id} could not be read.", hint="Repeat the call.")
    world = World(context_id, str(value[0]), str(value[1]))
    known.adopt(key, world)
    return world


async def run_in_world(
    page: Page, session_id: str | None, frame_id: str, body: str, *, main: bool, follow: FollowUp | None = None
) -> Any:
    """Run a function body in a frame's world, with `kit` in scope, and return its value.

    If the document was replaced before the code ran, it runs in the new one. `follow` is sent at once if the value has
    `go: true`.
    """
    for last in (False, True):
        world = await world_of(page, session_id, frame_id, main=main)
        try:
            if follow is None:
                value = await _evaluate(page, session_id, world.context_id, _expression(world, body))
            else:
                value = await _run_with_follow_up(page, session_id, world, body, follow)
        except ContextDestroyed:
            if last:
                raise
            value = _LOST
        if value != _LOST:
            return value
        forget_document(page, session_id, frame_id)
    raise CommandFailed(
        f"Tab {page.tab_id} keeps navigating; no document stayed long enough.",
        hint="Wait until it has loaded (browser_wait_for), then repeat the call.",
    )


def forget_document(page: Page, session_id: str | None, frame_id: str) -> None:
    """A frame shows another document now."""
    known = tab_worlds(page)
    known.worlds.pop((session_id, frame_id), None)
    if known.main == frame_id:
        # Its frames are gone with it.
        known.worlds.clear()
        known.owners.clear()


def prune_worlds(page: Page, there: set[tuple[str | None, str]]) -> None:
    """Forget the worlds of all frames but these, given by session and frame."""
    known = tab_worlds(page)
    ids = {frame_id for _, frame_id in there}
    for gone in [key for key in known.worlds if key not in there]:
        del known.worlds[gone]
    for frame_id in [frame_id for frame_id in known.owners if frame_id not in ids]:
        del known.owners[frame_id]


def _expression(world: World, body: str) -> str:
    token = orjson.dumps(world.token).decode()
    return f'((kit) => kit?.token !== {token} ? "{_LOST}" : (() => {{\n{body}\n}})())(globalThis.tabhubKit)'


async def _evaluate(page: Page, session_id: str | None, context_id: int, expression: str) -> Any:
    return script_value(page, await page.cdp("Runtime.evaluate", _script(context_id, expression), session_id))


def _script(context_id: int, expression: str) -> dict[str, Any]:
    return {"expression": expression, "contextId": context_id, "returnByValue": True, "awaitPromise": True}


async def _run_with_follow_up(page: Page, session_id: str | None, world: World, body: str, follow: FollowUp) -> Any:
    """Run a function body, and the follow-up if it returns `go: true`."""
    last = ("Runtime.evaluate", _script(world.context_id, _expression(world, follow.probe)))
    commands = [{"method": method, "params": params} for method, params in (*follow.events, last)]
    script = _script(world.context_id, _expression(world, body))
    answer = await page.cdp("Runtime.evaluate", script, session_id, follow=commands)
    followed = answer.get("followed") if isinstance(answer, dict) else None
    if isinstance(followed, dict):
        follow.sent = True
        if "error" in followed:
            follow.error = str(followed["error"])
        else:
            follow.value = script_value(page, followed.get("result"))
    return script_value(page, answer)


def script_value(page: Page, answer: Any) -> Any:
    """The value of an evaluated script; CommandFailed if it threw."""
    details = answer.get("exceptionDetails") if isinstance(answer, dict) else {}
    if details is None:
        return answer.get("result", {}).get("value")
    details = details if isinstance(details, dict) else {}
    said = (details.get("exception") or {}).get("description") or details.get("text") or "no value came back"
    raise CommandFailed(
        f"The page in tab {page.tab_id} could not be read: {str(said)[:300]}",
        hint="The page may have changed what scripts rely on; browser_screenshot_tab still works.",
    )
