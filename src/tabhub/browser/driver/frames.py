"""The frames of a tab, and the scripts that run in them out of the page's reach.

Every document gets an isolated world with the kit of `js/` in it (elements by ref). A world belongs to one document and
ends with it. A debugger that reattaches gets the same world again, so refs survive while the tab is not watched. What
the scripts do is in their files.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any
from weakref import WeakKeyDictionary

import orjson

from tabhub.browser.driver.page import FollowUp, Page
from tabhub.browser.driver.tab_watch import TabWatch
from tabhub.errors import CommandFailed, ContextDestroyed

_MOST_TABS = 2_000
_MOST_FRAMES = 300
_KINDS = ("iframe", "fencedframe")
_GROUP = "tabhub"
_SILENT_SHARE = 0.1
"""Share of the usual timeout for a frame that did not answer last time."""
_VIEWER = "chrome-extension://mhjfbmdgcfjbbpaeojofohoefgiehjai/"
"""The browser's PDF viewer, whose frames are not part of the page."""
PDF_HINT = (
    "This is a PDF in the browser's own viewer, whose text cannot be read. Use browser_screenshot_tab to see it, "
    "browser_mouse (wheel) to scroll, browser_download_file to save it."
)
_NO_SESSION = ("Session with given id", "No session", "Cannot find session", "not attached")
_NO_FRAME = (*_NO_SESSION, "No frame", "Frame with")
_LETTERS = "eabcdghkmnpqrstuvwxyz"
"""Ref prefixes: the first document of a tab uses the first letter, the next one the second, and so on, so that a ref
of an earlier document is not mistaken for one of the current document."""
_KIT = ("roles", "accessible_name", "states", "walk", "outline", "match", "search", "kit")
_KIT_METHODS = {"waitActionable": "wait_actionable", "fieldValue": "field_value"}
"""Functions called on elements."""
_LOST = "tabhub:lost"


@cache
def source(name: str) -> str:
    return files("tabhub.browser").joinpath("js", f"{name}.js").read_text("utf-8").strip()


def literal(value: Any) -> str:
    """A value as a JavaScript expression.

    JSON.parse instead of an object literal, in which a `__proto__` key would set the prototype.
    """
    return f"JSON.parse({orjson.dumps(orjson.dumps(value).decode()).decode()})"


def call_source(name: str, argument: dict[str, Any], library: str = "") -> str:
    """A function body that calls the function of `js/<name>.js`, with the names of a library file in its scope."""
    shared = source(library) + "\n" if library else ""
    return f"{shared}return (\n{source(name)}\n)({literal(argument)});"


@cache
def _kit() -> str:
    """The body of a function that makes the kit; what acting needs is part of it, so that its source is sent once."""
    methods = "\n".join(f"kit.{method} = (\n{source(name)}\n);" for method, name in _KIT_METHODS.items())
    return "\n".join((*map(source, _KIT), "const kit = makeKit(token, prefix);", methods, "return kit;"))


@cache
def _world_name() -> str:
    """Includes the kit's hash, so that another version gets its own worlds."""
    return f"tabhub {hashlib.sha256(_kit().encode()).hexdigest()[:12]}"


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
        guard = f'kit?.token !== {orjson.dumps(self.token).decode()} ? "{_LOST}"'
        expression = f"((kit) => {guard} : (() => {{\n{body}\n}})())(globalThis.tabhubKit)"
        return {
            "expression": expression,
            "contextId": self.context_id,
            "returnByValue": True,
            "awaitPromise": True,
        }


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

    def forget_document(self, key: tuple[str | None, str]) -> None:
        """A frame shows another document now."""
        self.worlds.pop(key, None)
        if self.main == key[1]:
            # Its frames are gone with it.
            self.worlds.clear()
            self.owners.clear()

    def prune(self, frames: list[Frame]) -> None:
        """Forget all other frames."""
        keys, ids = {(frame.session_id, frame.frame_id) for frame in frames}, {frame.frame_id for frame in frames}
        self.worlds = {key: world for key, world in self.worlds.items() if key in keys}
        self.owners = {frame_id: ref for frame_id, ref in self.owners.items() if frame_id in ids}


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


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame: the document it shows now, not the one it showed when the frame was listed."""

    page: Page
    frame_id: str
    session_id: str | None
    """The child session it lives in; None is the tab's own."""
    url: str
    name: str = ""
    parent: Frame | None = None
    """None for the main frame."""

    async def evaluate(self, name: str, argument: dict[str, Any], library: str = "") -> Any:
        """Call the function of `js/<name>.js` in this frame; it has `kit` and the library in its scope."""
        return await self.run_code(call_source(name, argument, library))

    async def run_code(self, body: str, follow: FollowUp | None = None) -> Any:
        """Run a function body in our world of this frame, with `kit` in scope, and return its value.

        If the document was replaced before the code ran, it runs in the new one. `follow` is sent at once if the value
        has `go: true`.
        """
        try:
            for last in (False, True):
                world = await self.world()
                try:
                    value = await self._run_in_world(world, body, follow)
                except ContextDestroyed:
                    if last:
                        raise
                    value = _LOST
                if value != _LOST:
                    return value
                tab_worlds(self.page).forget_document((self.session_id, self.frame_id))
        except CommandFailed as error:
            if self.parent is not None and any(text in error.message for text in _NO_FRAME):
                raise self._gone_error() from None
            raise
        raise CommandFailed(
            f"Tab {self.page.tab_id} keeps navigating; no document stayed long enough.",
            hint="Wait until it has loaded (browser_wait_for), then repeat the call.",
        )

    async def _run_in_world(self, world: World, body: str, follow: FollowUp | None) -> Any:
        commands: list[dict[str, Any]] = []
        if follow is not None:
            commands = [{"method": method, "params": params} for method, params in follow.events]
            commands.append({"method": "Runtime.evaluate", "params": world.script(follow.probe)})
        answer = await self.page.cdp("Runtime.evaluate", world.script(body), self.session_id, follow=commands)
        if follow is not None and isinstance(answer, dict) and isinstance(followed := answer.get("followed"), dict):
            follow.sent = True
            if "error" in followed:
                follow.error = str(followed["error"])
            else:
                follow.value = script_value(self.page, followed.get("result"))
        return script_value(self.page, answer)

    async def world(self) -> World:
        """The world of the frame's current document, created if needed."""
        page, key, known = self.page, (self.session_id, self.frame_id), tab_worlds(self.page)
        if key in known.worlds:
            return known.worlds[key]
        # Chosen before the first await, so that frames examined together are numbered in order.
        token, prefix = secrets.token_hex(8), known.prefix(main=self.parent is None)
        wanted = {"frameId": self.frame_id, "worldName": _world_name()}
        made = await page.cdp("Page.createIsolatedWorld", wanted, self.session_id)
        context_id = made.get("executionContextId")
        if type(context_id) is not int:
            raise CommandFailed("The browser did not create an isolated world for page code.", hint="Repeat the call.")
        install = (
            f"(globalThis.tabhubKit ??= ((token, prefix) => {{\n{_kit()}\n}})("
            f"{orjson.dumps(token).decode()}, {orjson.dumps(prefix).decode()}), [tabhubKit.token, tabhubKit.prefix])"
        )
        script = {"expression": install, "contextId": context_id, "returnByValue": True}
        value = script_value(page, await page.cdp("Runtime.evaluate", script, self.session_id))
        if not isinstance(value, list) or len(value) != 2:
            raise CommandFailed(f"The page in tab {page.tab_id} could not be read.", hint="Repeat the call.")
        world = World(context_id, str(value[0]), str(value[1]))
        known.adopt(key, world)
        return world

    async def owner_ref(self) -> str:
        """The ref of the frame element in the parent's document."""
        parent = self.parent
        if parent is None:
            raise ValueError("the main frame has no owner element")
        known = tab_worlds(self.page)
        if self.frame_id in known.owners:
            return known.owners[self.frame_id]
        held, world = await asyncio.gather(
            self.page.cdp("DOM.getFrameOwner", {"frameId": self.frame_id}, parent.session_id), parent.world()
        )
        where = {"backendNodeId": held.get("backendNodeId"), "executionContextId": world.context_id}
        node = await self.page.cdp("DOM.resolveNode", {**where, "objectGroup": _GROUP}, parent.session_id)
        call = {
            "objectId": node["object"]["objectId"],
            "functionDeclaration": "function () { return tabhubKit.ref(this); }",
            "returnByValue": True,
        }
        answer = await self.page.cdp("Runtime.callFunctionOn", call, parent.session_id)
        known.owners[self.frame_id] = ref = str(script_value(self.page, answer))
        return ref

    def _gone_error(self) -> CommandFailed:
        return CommandFailed(
            f"The frame {self.url[:200]} of tab {self.page.tab_id} is gone.",
            hint="The page replaced it; take a new browser_snapshot to see what is there now.",
        )

    async def offset(self) -> tuple[float, float]:
        """Position of the frame's viewport in the tab's viewport, in CSS pixels."""
        if self.parent is None:
            return 0.0, 0.0
        outer, ref = await asyncio.gather(self.parent.offset(), self.owner_ref())
        place = await self.parent.evaluate("frame_origin", {"ref": ref})
        if not isinstance(place, dict):
            raise self._gone_error()
        return outer[0] + float(place["x"]), outer[1] + float(place["y"])


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


async def main_frame(page: Page) -> Frame:
    """The tab's main frame; costs a round trip only when its document is new."""
    known = tab_worlds(page)
    if known.main is None or (None, known.main) not in known.worlds:
        tree = await page.cdp("Page.getFrameTree")
        known.main = str(tree["frameTree"]["frame"]["id"])
    return Frame(page, known.main, None, page.tab.url)


async def list_frames(page: Page) -> list[Frame]:
    """All frames in tree order, the main frame first."""
    trees: dict[str | None, dict[str, Any]] = {}
    while True:
        children = page.watch.children(page.key)
        wanted = [None, *(child.session_id for child in children.values() if child.kind in _KINDS)]
        missing = [session for session in wanted if session not in trees][:_MOST_FRAMES]
        if not missing:
            break
        trees.update(zip(missing, await asyncio.gather(*(_tree(page, s) for s in missing)), strict=True))
    found: dict[str, tuple[str | None, dict[str, Any]]] = {}
    inside: dict[str, list[str]] = {}
    for session, tree in trees.items():
        _collect(tree, session, found, inside)
    top = str(trees[None]["frame"]["id"])
    listed: list[Frame] = []
    _list(page, top, None, found, inside, listed)
    known = tab_worlds(page)
    known.main = top
    known.prune(listed)
    return listed


async def _tree(page: Page, session: str | None) -> dict[str, Any]:
    """The frames of one process; empty if it is gone or too busy to answer."""
    known, timeout = tab_worlds(page), page.link.limits.frame_answer
    try:
        # An unresponsive main page fails the call; an unresponsive advert in it must not.
        async with asyncio.timeout(
            None if session is None else timeout * (_SILENT_SHARE if session in known.silent else 1)
        ):
            answer = await page.cdp("Page.getFrameTree", None, session)
    except TimeoutError:
        known.silent.add(str(session))
        return {}
    except CommandFailed as error:
        if session is not None and any(text in error.message for text in _NO_SESSION):
            return {}
        raise
    known.silent.discard(str(session))
    tree = answer.get("frameTree") if isinstance(answer, dict) else None
    return tree if isinstance(tree, dict) else {}


def _collect(
    tree: dict[str, Any],
    session: str | None,
    found: dict[str, tuple[str | None, dict[str, Any]]],
    inside: dict[str, list[str]],
) -> None:
    frame = tree.get("frame")
    if not isinstance(frame, dict) or len(found) >= _MOST_FRAMES:
        return
    frame_id = str(frame.get("id"))
    if frame_id not in found and isinstance(frame.get("parentId"), str):
        inside.setdefault(frame["parentId"], []).append(frame_id)
    found[frame_id] = (session, frame)
    for child in tree.get("childFrames") or []:
        _collect(child, session, found, inside)


def _list(
    page: Page,
    frame_id: str,
    parent: Frame | None,
    found: dict[str, tuple[str | None, dict[str, Any]]],
    inside: dict[str, list[str]],
    listed: list[Frame],
) -> None:
    session, facts = found[frame_id]
    url, name = str(facts.get("url", ""))[:8192], str(facts.get("name", ""))[:200]
    if url.startswith(_VIEWER):
        return
    frame = Frame(page, frame_id, session, url, name, parent)
    listed.append(frame)
    for child in inside.get(frame_id, []):
        if all(known.frame_id != child for known in listed):
            _list(page, child, frame, found, inside, listed)
