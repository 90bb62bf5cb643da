"""The frames of a tab, from all renderer processes, as one tree.

Owns the list of frames, running page code in one of them, and the position of a frame in the tab's viewport.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from tabhub.browser.driver import isolated_worlds as worlds
from tabhub.browser.driver import page_code
from tabhub.browser.driver.page import FollowUp, Page
from tabhub.errors import CommandFailed

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

    @property
    def is_main(self) -> bool:
        return self.parent is None

    async def evaluate(self, name: str, argument: dict[str, Any], library: str = "") -> Any:
        """Call the function of `js/<name>.js` in our world of this frame; it has `kit` and the library in its scope."""
        shared = page_code.source(library) + "\n" if library else ""
        return await self.run_code(f"{shared}return (\n{page_code.source(name)}\n)({page_code.literal(argument)});")

    async def run_code(self, body: str, follow: FollowUp | None = None) -> Any:
        """Run a function body in our world of this frame, with `kit` in scope, and return its value."""
        try:
            return await worlds.run_in_world(
                self.page, self.session_id, self.frame_id, body, main=self.is_main, follow=follow
            )
        except CommandFailed as error:
            if not self.is_main and any(text in error.message for text in (*_NO_SESSION, "No frame", "Frame with")):
                raise CommandFailed(
                    f"The frame {self.url[:200]} of tab {self.page.tab_id} is gone.",
                    hint="The page replaced it; take a new browser_snapshot to see what is there now.",
                ) from None
            raise

    async def world(self) -> worlds.World:
        return await worlds.world_of(self.page, self.session_id, self.frame_id, main=self.is_main)

    async def owner_ref(self) -> str:
        """The ref of the frame element in the parent's document."""
        parent = self.parent
        if parent is None:
            raise ValueError("the main frame has no owner element")
        known = worlds.tab_worlds(self.page)
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
        ref = str(
            worlds.script_value(self.page, await self.page.cdp("Runtime.callFunctionOn", call, parent.session_id))
        )
        known.owners[self.frame_id] = ref
        return ref

    async def offset(self) -> tuple[float, float]:
        """Position of the frame's viewport in the tab's viewport, in CSS pixels."""
        if self.parent is None:
            return 0.0, 0.0
        outer, ref = await asyncio.gather(self.parent.offset(), self.owner_ref())
        place = await self.parent.evaluate("frame_origin", {"ref": ref})
        if not isinstance(place, dict):
            raise CommandFailed(
                f"The frame {self.url[:200]} of tab {self.page.tab_id} is gone.",
                hint="The page replaced it; take a new browser_snapshot to see what is there now.",
            )
        return outer[0] + float(place["x"]), outer[1] + float(place["y"])


async def main_frame(page: Page) -> Frame:
    """The tab's main frame; costs a round trip only when its document is new."""
    known = worlds.tab_worlds(page)
    if known.main is None or (None, known.main) not in known.worlds:
        tree = await page.cdp("Page.getFrameTree")
        known.main = str(tree["frameTree"]["frame"]["id"])
    return Frame(page, known.main, None, page.tab.url)


async def list_frames(page: Page) -> list[Frame]:
    """All frames in tree order, the main frame first."""
    trees: dict[str | None, dict[str, Any]] = {}
    while True:
        children = page.watch.children(*page.key)
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
    worlds.tab_worlds(page).main = top
    listed: list[Frame] = []
    _list(page, top, None, found, inside, listed)
    worlds.prune_worlds(page, {(frame.session_id, frame.frame_id) for frame in listed})
    return listed


async def _tree(page: Page, session: str | None) -> dict[str, Any]:
    """The frames of one process; empty if it is gone or too busy to answer."""
    known, timeout = worlds.tab_worlds(page), page.link.limits.frame_answer
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
