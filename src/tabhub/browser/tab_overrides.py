"""Overrides that outlast one call: emulation, throttling, forced states, and how they are undone.

Owns which overrides are active in which tab, for which session, and applying them to frames that appear later. The
browser keeps them only while the debugger is attached, so the tab stays watched; if they are lost all the same, the
next call reports it. It does not know what the overrides mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tabhub.browser.driver.page import Page, send_cdp_nowait
from tabhub.browser.driver.tab_watch import EventSubscription, TabWatch
from tabhub.errors import CommandFailed
from tabhub.links.browsers import DETACH_REASONS, Browsers, TabKey

Command = tuple[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Override:
    """One override of a tab."""

    session: Any
    description: str
    """For people and agents."""
    undo: tuple[Command, ...]
    frame_commands: tuple[Command, ...] = ()
    """Commands that apply it in a frame in another process."""
    child: str | None = None
    """The child session, if it belongs to one frame only."""
    frame: str | None = None
    """The frame whose document it belongs to: it ends with that document."""
    applied: tuple[Command, ...] = ()
    """The commands that applied it, set by `apply`."""


class TabOverrides:
    """The overrides of all tabs."""

    def __init__(self, browsers: Browsers, watch: TabWatch, why: str = "changed") -> None:
        self._watch = watch
        self._why = why
        self._tabs: dict[TabKey, dict[str, Override]] = {}
        self._lost: dict[tuple[str, int], str] = {}
        """Notes on lost overrides, by browser and tab, because a link that reconnects is another object."""
        self._leftovers: dict[tuple[str, int], list[Command]] = {}
        """Undo commands for a browser that only lost its link: it may still have the overrides."""
        browsers.drop_with_tab(self._tabs, self._tab_ended)
        for state in (self._lost, self._leftovers):
            browsers.drop_when_closed(state)
        watch.subscribe(EventSubscription(("Target.attachedToTarget", "Page.frameNavigated")), self._on_event)

    async def apply(self, page: Page, name: str, change: Override, commands: Sequence[Command]) -> None:
        """Apply an override and keep it active; one with the same name is replaced."""
        self._undo_leftovers(page)
        for method, params in commands:
            await page.cdp(method, params, change.child)
        key = page.key
        for child, kind in self._watch.children(key).items():
            if kind == "iframe":
                self._send(key, child, change.frame_commands)
        self._tabs.setdefault(key, {})[name] = replace(change, applied=tuple(commands))
        self._watch.hold(key, self._why)
        self._update_child_commands(key)

    def active(self, page: Page) -> Mapping[str, Override]:
        return self._tabs.get(page.key, {})

    def pop_lost_note(self, page: Page) -> str:
        """A note on overrides that were lost, returned once; empty if none were."""
        self._undo_leftovers(page)
        return self._lost.pop((page.link.browser_id, page.tab.chrome_id), "")

    async def remove(self, page: Page, name: str) -> bool:
        """Undo one override; False if it is not active."""
        key = page.key
        change = self._tabs.get(key, {}).get(name)
        if change is None:
            return False
        try:
            for method, params in change.undo:
                await page.cdp(method, params, change.child)
        except CommandFailed as error:
            # There is nothing to undo on an element that the page removed.
            if change.frame is None or "node" not in error.message:
                raise
        self._undo_in_frames(key, change)
        self._tabs.get(key, {}).pop(name, None)
        self._update_watching(key)
        return True

    def revoke(self, key: TabKey, name: str, why: str) -> None:
        """Undo one override without waiting; the next call gets the reason."""
        change = self._tabs.get(key, {}).pop(name, None)
        if change is not None:
            self._send(key, change.child, change.undo)
            self._undo_in_frames(key, change)
            self._lost[key[0].browser_id, key[1]] = f"No longer active, because {why}: {change.description}."
            self._update_watching(key)

    async def clear(self, page: Page) -> list[str]:
        """Undo everything; returns the descriptions."""
        active = dict(self.active(page))
        for name in active:
            await self.remove(page, name)
        return [change.description for change in active.values()]

    def end_session(self, session: Any) -> None:
        for key, changes in list(self._tabs.items()):
            for name, change in list(changes.items()):
                if change.session is session:
                    del changes[name]
                    self._send(key, change.child, change.undo)
                    self._undo_in_frames(key, change)
            self._update_watching(key)

    def _undo_in_frames(self, key: TabKey, change: Override) -> None:
        if change.frame_commands:
            for child in self._watch.children(key):
                self._send(key, child, change.undo)

    def _update_child_commands(self, key: TabKey) -> None:
        commands = tuple(command for change in self._tabs.get(key, {}).values() for command in change.frame_commands)
        self._watch.set_child_commands(key, self._why, commands)

    def _update_watching(self, key: TabKey) -> None:
        """Configure new frames for the remaining overrides; without any, stop holding the tab."""
        self._update_child_commands(key)
        if key in self._tabs and not self._tabs[key]:
            self._watch.release(key, self._why)
            del self._tabs[key]

    def _on_event(self, key: TabKey, method: str, params: dict[str, Any], _child: str | None) -> None:
        changes = self._tabs.get(key)
        if changes is None:
            return
        if method == "detached":
            self._lose(key, DETACH_REASONS.get(str(params.get("reason")), "the debugger was detached"))
        elif method == "Page.frameNavigated":
            frame = (params.get("frame") or {}).get("id")
            for name in [name for name, change in changes.items() if change.frame is not None]:
                if changes[name].frame == frame:
                    del changes[name]
            self._update_watching(key)
        elif isinstance(info := params.get("targetInfo"), dict) and info.get("type") == "iframe":
            for change in changes.values():
                self._send(key, str(params.get("sessionId")), change.frame_commands)

    def _lose(self, key: TabKey, why: str) -> None:
        changes, tab = self._tabs.pop(key), (key[0].browser_id, key[1])
        self._lost[tab] = f"No longer active, because {why}: {', '.join(c.description for c in changes.values())}."
        if key[0].closed is not None:
            self._leftovers[tab] = [
                command for change in changes.values() if not change.child for command in change.undo
            ]
        self._watch.release(key, self._why)
        self._update_child_commands(key)

    def _undo_leftovers(self, page: Page) -> None:
        self._send(page.key, None, self._leftovers.pop((page.link.browser_id, page.tab.chrome_id), ()))

    def _send(self, key: TabKey, child: str | None, commands: Sequence[Command]) -> None:
        for method, params in commands:
            send_cdp_nowait(key, method, params, child)

    def _tab_ended(self, key: TabKey) -> None:
        if key[0].closed is None:
            del self._tabs[key]
        else:
            self._lose(key, "the connection to the browser was lost")
