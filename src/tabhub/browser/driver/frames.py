"""The frames of a tab, and running scripts in them out of the page's reach.

Owns finding the frames, their place in the tab, and which world a script runs in. What scripts do is in their files.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tabhub.browser.driver.cdp_values import parse_object
from tabhub.browser.driver.page import Page
from tabhub.browser.driver.worlds import LOST, World, begin_expression, call_source, install_expression, world_name
from tabhub.core.origins import origin_of
from tabhub.errors import CommandFailed, ContextDestroyed

_MAX_FRAMES = 300
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


@dataclass(slots=True)
class FollowUp:
    """Commands to send as soon as a script returns `go: true`, without another round trip to the hub."""

    events: Sequence[tuple[str, dict[str, Any]]]
    """CDP commands, sent in order."""
    probe: str | None
    """Function body of a last script, in the same world, that reports the result; without it, the last command does."""
    sent: bool = False
    """Whether they were sent; an older extension does not support it."""
    value: Any = None
    """The value of the last script, or the result of the last command."""
    error: str | None = None
    """The browser's error for a command that failed."""

    def commands(self, world: World) -> list[dict[str, Any]]:
        probe = [("Runtime.evaluate", world.script(self.probe))] if self.probe is not None else []
        return [{"method": method, "params": params} for method, params in (*self.events, *probe)]

    def read(self, page: Page, answer: Any) -> None:
        """Read what became of the commands from the answer to the script they followed."""
        followed = answer.get("followed") if isinstance(answer, dict) else None
        if isinstance(followed, dict):
            self.sent = True
            if "error" in followed:
                self.error = str(followed["error"])
            elif self.probe is None:
                self.value = followed.get("result")
            else:
                self.value = script_value(page, followed.get("result"))


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
    site: str = ""
    """The origin of its document; of what it showed before, or else its parent's, if it has none of its own."""

    async def evaluate(self, name: str, argument: dict[str, Any], library: str = "") -> Any:
        """Call the function of script `<name>.js` in this frame; it has `kit` and the library in its scope."""
        return await self.run_code(call_source(name, argument, library))

    async def run_code(self, body: str, follow: FollowUp | None = None) -> Any:
        """Run a function body in our world of this frame, with `kit` in scope, and return its value.

        If the document was replaced before the code ran, it runs in the new one. `follow` is sent at once if the value
        has `go: true`.
        """
        page, session = self.page, self.session_id
        try:
            for last in (False, True):
                world = await self.world()
                if follow is not None:
                    page.require_site()
                commands = follow.commands(world) if follow is not None else ()
                try:
                    answer = await page.cdp("Runtime.evaluate", world.script(body), session, follow=commands)
                except ContextDestroyed:
                    if last:
                        raise
                else:
                    if follow is not None:
                        follow.read(page, answer)
                    if page.view.active:
                        self._require_visible()
                    if (value := script_value(page, answer)) != LOST:
                        return value
                page.state.worlds.forget_document((session, self.frame_id))
        except CommandFailed as error:
            if self.parent is not None and any(text in error.message for text in _NO_FRAME):
                raise self._gone_error() from None
            raise
        raise CommandFailed(
            f"Tab {page.tab_id} keeps navigating; no document stayed long enough.",
            hint="Wait until it has loaded (browser_wait_for), then repeat the call.",
        )

    async def require_permitted(self) -> None:
        """Raise PermissionDenied unless the call may act in this frame; the person may be asked.

        A frame is judged by its site and by those of the frames and the page around it.
        """
        if self.parent is None:
            return self.page.require_top()
        sites: list[str] = []
        frame = self
        while frame.parent is not None:
            sites.append(frame.site)
            frame = frame.parent
        return await self.page.require_frame(self.frame_id, sites)

    async def world(self) -> World:
        """The world of the frame's current document, created if needed."""
        page, key, worlds = self.page, (self.session_id, self.frame_id), self.page.state.worlds
        if key in worlds.by_frame:
            return worlds.by_frame[key]
        # Chosen before the first await, so that frames examined together are numbered in order.
        token, prefix = secrets.token_hex(8), worlds.prefix(main=self.parent is None)
        wanted = {"frameId": self.frame_id, "worldName": world_name()}
        made = await page.cdp("Page.createIsolatedWorld", wanted, self.session_id)
        context_id = made.get("executionContextId")
        if type(context_id) is not int:
            raise CommandFailed("The browser did not create an isolated world for page code.", hint="Repeat the call.")
        scripts = (install_expression(), begin_expression(token, prefix))
        there = {"contextId": context_id, "returnByValue": True}
        # The browser runs them in order, so the second need not wait for the first.
        sent = (page.cdp("Runtime.evaluate", {"expression": one, **there}, self.session_id) for one in scripts)
        _, value = (script_value(page, answer) for answer in await asyncio.gather(*sent))
        if not isinstance(value, list) or len(value) != 2:
            raise CommandFailed(f"The page in tab {page.tab_id} could not be read.", hint="Repeat the call.")
        world = World(context_id, str(value[0]), str(value[1]))
        worlds.adopt(key, world)
        return world

    async def owner_ref(self) -> str:
        """The ref of the frame element in the parent's document."""
        parent, owners = self.parent, self.page.state.worlds.owners
        if parent is None:
            raise ValueError("the main frame has no owner element")
        if self.frame_id in owners:
            return owners[self.frame_id]
        owner, world = await asyncio.gather(
            self.page.cdp("DOM.getFrameOwner", {"frameId": self.frame_id}, parent.session_id), parent.world()
        )
        where = {"backendNodeId": owner.get("backendNodeId"), "executionContextId": world.context_id}
        node = await self.page.cdp("DOM.resolveNode", {**where, "objectGroup": _GROUP}, parent.session_id)
        call = {
            "objectId": node["object"]["objectId"],
            "functionDeclaration": "function () { return tabhubKit.ref(this); }",
            "returnByValue": True,
        }
        answer = await self.page.cdp("Runtime.callFunctionOn", call, parent.session_id)
        owners[self.frame_id] = ref = str(script_value(self.page, answer))
        return ref

    def _require_visible(self) -> None:
        """Raise if the frame went to a site that the agent is kept off, after it was listed."""
        page = self.page
        if self.parent is not None and page.view.hides(page.state.frame_urls.get(self.frame_id)):
            page.view.omit_frame(self.frame_id)
            raise self._gone_error()

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


async def frame_offset(frame: Frame) -> dict[str, Any]:
    """The option of a script that tells boxes in the tab's viewport."""
    x, y = await frame.offset()
    return {"offset": {"x": x, "y": y}}


def script_value(page: Page, answer: Any) -> Any:
    """The value of an evaluated script; CommandFailed if it threw."""
    details = answer.get("exceptionDetails") if isinstance(answer, dict) else {}
    if details is None:
        return answer.get("result", {}).get("value")
    details = details if isinstance(details, dict) else {}
    message = (details.get("exception") or {}).get("description") or details.get("text") or "no value came back"
    raise CommandFailed(
        f"The page in tab {page.tab_id} could not be read: {str(message)[:300]}",
        hint="The page may have changed what scripts rely on; browser_screenshot_tab still works.",
    )


async def main_frame(page: Page) -> Frame:
    """The tab's main frame; costs a round trip only when its document is new."""
    worlds = page.state.worlds
    main = worlds.main if worlds.main_world is not None or worlds.main_is_current else None
    if main is None:
        tree = await page.cdp("Page.getFrameTree")
        found = parse_object(parse_object(parse_object(tree).get("frameTree")).get("frame")).get("id")
        if not isinstance(found, str):
            raise CommandFailed("invalid response: the browser did not describe the tab's frames.")
        worlds.main = main = found
    return Frame(page, main, None, page.tab.url, site=page.tab.site)


async def child_frame(parent: Frame, ref: str) -> Frame | None:
    """The frame that an element of the parent's document holds; None if it is gone, or the agent is kept off it."""
    for frame in await list_frames(parent.page):
        if frame.parent is not None and frame.parent.frame_id == parent.frame_id and await frame.owner_ref() == ref:
            return frame
    return None


async def list_frames(page: Page) -> list[Frame]:
    """All frames in tree order, the main frame first, without those that the agent is kept off."""
    return (await list_all_frames(page))[0]


async def list_all_frames(page: Page) -> tuple[list[Frame], list[Frame]]:
    """All frames in tree order, the main frame first; and the outermost of those that the agent is kept off."""
    page.ensure_watching()
    if page.state.starting:  # frames in other processes are known once the browser has confirmed
        await page.watch.wait_watching(page.key)
    trees: dict[str | None, dict[str, Any]] = {}
    while True:
        wanted = [None, *(session for session, kind in page.state.children.items() if kind in _KINDS)]
        missing = [session for session in wanted if session not in trees][:_MAX_FRAMES]
        if not missing:
            break
        trees.update(zip(missing, await asyncio.gather(*(_frame_tree(page, s) for s in missing)), strict=True))
    found: dict[str, tuple[str | None, dict[str, Any]]] = {}
    inside: dict[str, list[str]] = {}
    for session, tree in trees.items():
        for facts in _frames_of(tree):
            frame_id, parent = str(facts.get("id")), facts.get("parentId")
            if frame_id not in found and isinstance(parent, str):
                inside.setdefault(parent, []).append(frame_id)
            if len(found) < _MAX_FRAMES:
                found[frame_id] = (session, facts)
    listed: dict[str, Frame] = {}
    hidden: list[Frame] = []

    def add(frame_id: str, parent: Frame | None) -> None:
        session, facts = found[frame_id]
        url, name = str(facts.get("url", ""))[:8192], str(facts.get("name", ""))[:200]
        if url.startswith(_VIEWER):
            return
        frame = Frame(page, frame_id, session, url, name, parent, _site(page, facts, parent))
        if parent is not None and page.view.hides(frame.site):
            hidden.append(frame)
            page.view.omit_frame(frame_id)
            return
        listed[frame_id] = frame
        for child in inside.get(frame_id, []):
            if child in found and child not in listed:
                add(child, frame)

    worlds = page.state.worlds
    worlds.main = str(trees[None]["frame"]["id"])
    add(worlds.main, None)
    silent = [page.state.remote_frames.get(str(session), {}) for session, tree in trees.items() if not tree]
    for facts in silent if page.view.active else ():
        if (frame_here := _silent_frame(page, facts, found, listed)) is not None:
            hidden.append(frame_here)
            page.view.omit_frame(frame_here.frame_id)
    worlds.keep_only({(frame.session_id, frame.frame_id) for frame in listed.values()})
    for frame in (*listed.values(), *hidden):  # those that were there before the tab was watched
        if frame.parent is not None:
            page.state.frame_urls.setdefault(frame.frame_id, frame.site)
    return list(listed.values()), hidden


def _silent_frame(
    page: Page, facts: dict[str, str], found: Mapping[str, Any], listed: Mapping[str, Frame]
) -> Frame | None:
    """A frame that did not answer, if the agent is kept off it: its place is to be covered all the same."""
    frame_id, around = facts.get("id", ""), facts.get("parentId", "")
    parent = listed.get(around) or listed[str(page.state.worlds.main)]
    if not frame_id or (around in found and around not in listed):  # inside a frame that is hidden
        return None
    url = page.state.frame_urls.get(frame_id) or facts["url"]
    site = _site(page, {**facts, "url": url}, parent)
    return Frame(page, frame_id, None, url, "", parent, site) if page.view.hides(site) else None


def _site(page: Page, facts: Mapping[str, Any], parent: Frame | None) -> str:
    if parent is None:
        return page.tab.site
    before = page.state.frame_urls.get(str(facts.get("id")), "")
    urls = (str(facts.get("url", "")), str(facts.get("securityOrigin", "")), before)
    return next(filter(None, map(origin_of, urls)), parent.site)


async def _frame_tree(page: Page, session: str | None) -> dict[str, Any]:
    """The frames of one process; empty if it is gone or too busy to answer."""
    silent, timeout = page.state.worlds.silent, page.link.limits.frame_answer
    share = _SILENT_SHARE if session in silent else 1
    try:
        # An unresponsive main page fails the call; an unresponsive advert in it must not.
        async with asyncio.timeout(None if session is None else timeout * share):
            answer = await page.cdp("Page.getFrameTree", None, session)
    except TimeoutError:
        silent.add(str(session))
        return {}
    except CommandFailed as error:
        if session is not None and any(text in error.message for text in _NO_SESSION):
            return {}
        raise
    silent.discard(str(session))
    tree = answer.get("frameTree") if isinstance(answer, dict) else None
    return tree if isinstance(tree, dict) else {}


def _frames_of(tree: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The frames of a tree as CDP describes them, each before those inside it."""
    if isinstance(frame := tree.get("frame"), dict):
        yield frame
        for child in tree.get("childFrames") or []:
            yield from _frames_of(child)
