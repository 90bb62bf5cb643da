"""What tools changed in a tab for longer than one call: emulation, forced states; and how it is taken back.

Owns which changes are in force in which tab, for which session, and that they reach frames that come later. The browser
keeps them only while the debugger is attached, so the tab is held; what is lost all the same is told by the next call
that asks. It does not know what the changes mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tabhub.browser.driver.cdp_send import send_cdp_nowait
from tabhub.browser.driver.page import Page
from tabhub.browser.driver.tab_watch import EventSubscription, TabWatch
from tabhub.errors import CommandFailed
from tabhub.links.browsers import Browsers, Change
from tabhub.links.extension import ExtensionLink

Command = tuple[str, dict[str, Any]]
_Key = tuple[ExtensionLink, int]
_REASONS = {
    "canceled_by_user": "the person stopped debugging in the browser",
    "replaced_with_devtools": "the developer tools took the tab over",
    "target_closed": "the page crashed",
}


@dataclass(frozen=True, slots=True)
class Override:
    """One change of a tab."""

    session: Any
    description: str
    """What it is, for people and agents."""
    undo: tuple[Command, ...]
    frame_commands: tuple[Command, ...] = ()
    """What makes it so in a frame in another process, too."""
    child: str | None = None
    """The child session it was made in, where it is one frame's alone."""
    frame: str | None = None
    """The frame whose document it belongs to: it goes when that goes."""
    applied: tuple[Command, ...] = ()
    """What made it so, as `make` noted it."""


class TabOverrides:
    """The changes of all tabs."""

    def __init__(self, browsers: Browsers, watch: TabWatch, why: str = "changed") -> None:
        self._watch = watch
        self._why = why
        self._tabs: dict[_Key, dict[str, Override]] = {}
        self._lost: dict[tuple[str, int], str] = {}
        """By browser and tab, for a link that breaks takes the changes along and comes back as another one."""
        self._left: dict[tuple[str, int], list[Command]] = {}
        """What is to be taken back then: a browser that only lost its link may still have the changes."""
        browsers.on_change(self._gone)
        watch.subscribe(EventSubscription(("Target.attachedToTarget", "Page.frameNavigated")), self._heard)

    async def apply(self, page: Page, name: str, change: Override, commands: Sequence[Command]) -> None:
        """Carry out a change and keep it in force; one of the same name is replaced."""
        self._tidy(page)
        for method, params in commands:
            await page.cdp(method, params, change.child)
        key = (page.link, page.tab.chrome_id)
        for child in self._watch.children(*key).values():
            if child.kind == "iframe":
                self._send(key, child.session_id, change.frame_commands)
        self._tabs.setdefault(key, {})[name] = replace(change, applied=tuple(commands))
        self._watch.hold(*key, self._why)
        self._hand_on(key)

    def is_active(self, page: Page, name: str) -> bool:
        """Whether a change is in force."""
        return name in self._tabs.get((page.link, page.tab.chrome_id), {})

    def applied_commands(self, page: Page, name: str) -> tuple[Command, ...]:
        """What made a change so; nothing where it is not in force."""
        change = self._tabs.get((page.link, page.tab.chrome_id), {}).get(name)
        return change.applied if change else ()

    def descriptions(self, page: Page) -> list[str]:
        """What is in force in a tab."""
        return [change.description for change in self._tabs.get((page.link, page.tab.chrome_id), {}).values()]

    def pop_lost_note(self, page: Page) -> str:
        """What was in force and no longer is, told once; empty if nothing was lost."""
        self._tidy(page)
        return self._lost.pop((page.link.browser_id, page.tab.chrome_id), "")

    async def remove(self, page: Page, name: str) -> bool:
        """Take one change back; False if it is not there."""
        key = (page.link, page.tab.chrome_id)
        change = self._tabs.get(key, {}).get(name)
        if change is None:
            return False
        try:
            for method, params in change.undo:
                await page.cdp(method, params, change.child)
        except CommandFailed as error:
            # An element that the page has taken away has nothing to be taken back.
            if change.frame is None or "node" not in error.message:
                raise
        self._undo_in_frames(key, change)
        self._tabs.get(key, {}).pop(name, None)
        self._rest(key)
        return True

    def revoke(self, link: ExtensionLink, chrome_id: int, name: str, why: str) -> None:
        """Take one change back without waiting; whoever asks next is told why."""
        key, tab = (link, chrome_id), (link.browser_id, chrome_id)
        change = self._tabs.get(key, {}).pop(name, None)
        if change is not None:
            self._send(key, change.child, change.undo)
            self._undo_in_frames(key, change)
            self._lost[tab] = f"No longer in force, because {why}: {change.description}."
            self._rest(key)

    async def clear(self, page: Page) -> list[str]:
        """Take everything back, and tell what it was."""
        words = self.descriptions(page)
        for name in list(self._tabs.get((page.link, page.tab.chrome_id), ())):
            await self.remove(page, name)
        return words

    def end_session(self, session: Any) -> None:
        """A session is over: take back what it changed, without waiting."""
        for key, changes in list(self._tabs.items()):
            for name, change in list(changes.items()):
                if change.session is session:
                    del changes[name]
                    self._send(key, change.child, change.undo)
                    self._undo_in_frames(key, change)
            self._rest(key)

    def _undo_in_frames(self, key: _Key, change: Override) -> None:
        if change.frame_commands:
            for child in self._watch.children(*key).values():
                self._send(key, child.session_id, change.undo)

    def _hand_on(self, key: _Key) -> None:
        """Let what comes into the tab later be told of the changes before it runs."""
        told = tuple(command for change in self._tabs.get(key, {}).values() for command in change.frame_commands)
        self._watch.set_child_commands(*key, self._why, told)

    def _rest(self, key: _Key) -> None:
        self._hand_on(key)
        if key in self._tabs and not self._tabs[key]:
            self._watch.release(*key, self._why)
            del self._tabs[key]

    def _heard(
        self, link: ExtensionLink, chrome_id: int, method: str, params: dict[str, Any], _child: str | None
    ) -> None:
        key = (link, chrome_id)
        changes = self._tabs.get(key)
        if changes is None:
            return
        if method == "detached":
            self._lose(key, _REASONS.get(str(params.get("reason")), "the debugger was detached"))
        elif method == "Page.frameNavigated":
            frame = (params.get("frame") or {}).get("id")
            for name in [name for name, change in changes.items() if change.frame is not None]:
                if changes[name].frame == frame:
                    del changes[name]
            self._rest(key)
        elif isinstance(info := params.get("targetInfo"), dict) and info.get("type") == "iframe":
            for change in changes.values():
                self._send(key, str(params.get("sessionId")), change.frame_commands)

    def _lose(self, key: _Key, why: str) -> None:
        """The changes of a tab are out of our hands."""
        changes, tab = self._tabs.pop(key), (key[0].browser_id, key[1])
        self._lost[tab] = f"No longer in force, because {why}: {', '.join(c.description for c in changes.values())}."
        if key[0].closed is not None:
            self._left[tab] = [command for change in changes.values() if not change.child for command in change.undo]
        self._watch.release(*key, self._why)
        self._hand_on(key)

    def _tidy(self, page: Page) -> None:
        """Take back what a broken link left behind."""
        left = self._left.pop((page.link.browser_id, page.tab.chrome_id), ())
        self._send((page.link, page.tab.chrome_id), None, left)

    def _send(self, key: _Key, child: str | None, commands: Sequence[Command]) -> None:
        for method, params in commands:
            send_cdp_nowait(*key, method, params, child)

    def _gone(self, change: Change) -> None:
        closed = {(tab.browser_id, tab.chrome_id) for tab in change.tabs.closed}
        for key in list(self._tabs):
            if (key[0].browser_id, key[1]) in closed:
                del self._tabs[key]
            elif key[0].closed is not None:
                self._lose(key, "the connection to the browser was lost")
        for tab in closed:
            self._lost.pop(tab, None)
            self._left.pop(tab, None)
