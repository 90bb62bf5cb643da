"""The connected browsers: their links by id, their tabs, and the listeners for changes.

Owns attaching and detaching links, the default browser, and the heartbeat. It opens no socket and runs no tools.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import msgspec

from tabhub.core.tabs import Tab, TabChanges, TabTable
from tabhub.errors import CommandFailed, InvalidParams, NotConnected, TabFailed, TabNotFound, TabStopped
from tabhub.limits import DEFAULTS, Limits
from tabhub.links.connected_browser import ConnectedBrowser
from tabhub.links.extension import REPLACED, SILENT, ExtensionLink, Handler
from tabhub.wire import extension_link as wire

log = logging.getLogger("tabhub.browser")

_TABS_NAMED = 8
_DISCONNECTED_KEPT = 20
_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "warn": logging.WARNING}
DETACH_REASONS = {
    "target_closed": "the tab was closed or its page crashed, or it went where it cannot be debugged",
    "canceled_by_user": "the person stopped debugging in the browser",
    "replaced_with_devtools": "the developer tools took the tab over",
}
"""Reasons for detaching the debugger that also end the commands under way, unlike the release of an idle tab."""

_START_BROWSER = (
    "Start the browser that has the Tabhub extension, or let the hub start one (`tabhub stop`, then "
    "`tabhub start --launch`). `tabhub doctor` finds out what is missing."
)

NO_CHANGES = TabChanges()


TabKey = tuple[ExtensionLink, int]
"""A tab by its link and the browser's own id of it."""


class TabRef(msgspec.Struct, eq=False):
    """A tab together with the link that reaches it."""

    link: ExtensionLink
    tab: Tab
    key: TabKey


@dataclass(frozen=True, slots=True)
class Change:
    """A browser connected or disconnected, or tabs changed."""

    kind: Literal["connected", "disconnected", "tabs"]
    browser_id: str
    tabs: TabChanges = NO_CHANGES
    reason: str = ""
    synced: bool = False
    """Whether the browser reported all its tabs, not only changes."""


ChangeListener = Callable[[Change], None]
Aspect = Literal["connected", "disconnected", "synced", "opened", "changed", "closed"]
PluginMessage = wire.TabSyncAll | wire.PluginStateChanged | wire.PluginLog
PluginListener = Callable[[ExtensionLink, PluginMessage], None]
EventListener = Callable[[TabKey, str, dict[str, Any], str | None], None]
"""Called with the tab, the CDP method, its params, and the child session it comes from, if any."""


class Browsers:
    """All connected browsers."""

    def __init__(
        self,
        limits: Limits = DEFAULTS,
        *,
        wall: Callable[[], float] = time.time,
        starting: Callable[[], bool] = lambda: False,
        advice: str = _START_BROWSER,
    ) -> None:
        """`starting` says whether the hub's own browser is starting; `advice` what to do when none is connected."""
        self.limits = limits
        self.book = TabTable(limits)
        self._wall = wall
        self._connected: dict[str, ConnectedBrowser] = {}
        self._recent: dict[str, None] = {}
        self._disconnected: deque[dict[str, Any]] = deque(maxlen=_DISCONNECTED_KEPT)
        self._on_change: list[tuple[ChangeListener, tuple[Aspect, ...]]] = []
        self._tab_state: list[tuple[Mapping[TabKey, Any], Callable[[TabKey], object]]] = []
        self._lasting_tab_state: list[dict[tuple[str, int], Any]] = []
        self._on_event: list[EventListener] = []
        self._starting = starting
        self._advice = advice
        self._on_plugins: PluginListener | None = None
        self._on_hello: list[Callable[[ExtensionLink], None]] = []
        self._handlers: dict[str, Handler] = {
            "extension.hello": self._hello,
            "tab.syncAll": self._sync,
            "tab.stateChanged": self._state_changed,
            "debugger.changed": self._debugger_changed,
            "cdp.event": self._cdp_event,
            "cdp.detached": self._cdp_detached,
            "log": self._log,
            "plugin.log": self._plugin_message,
        }
        self._local_handlers: dict[str, Handler] = {}

    def on_change(self, listener: ChangeListener, *aspects: Aspect) -> None:
        """Call a listener for changes that have one of the aspects; for all changes if none is named."""
        self._on_change.append((listener, aspects))

    def drop_with_tab(self, state: dict[TabKey, Any], ended: Callable[[TabKey], object] | None = None) -> None:
        """Remove a tab's entry when the tab is closed or its link ends; `ended` is called instead of removing it."""
        self._tab_state.append((state, state.__delitem__ if ended is None else ended))

    def drop_when_closed(self, state: dict[tuple[str, int], Any]) -> None:
        """Remove the entry of a tab, by browser and its id there, when the tab is closed, not when its link ends."""
        self._lasting_tab_state.append(state)

    def on_event(self, listener: EventListener) -> None:
        """Listen for CDP events; the end of debugging is reported as `detached` with its reason."""
        self._on_event.append(listener)

    def on_hello(self, listener: Callable[[ExtensionLink], None]) -> None:
        """Call a listener once an extension has introduced itself, so that it can be sent notifications."""
        self._on_hello.append(listener)

    def on_plugins(self, listener: PluginListener) -> None:
        self._on_plugins = listener

    def add_handlers(self, handlers: Mapping[str, Handler], *, local_only: bool = False) -> None:
        """Handle further methods of extensions; `local_only`: of those on this machine, which show the panel."""
        (self._local_handlers if local_only else self._handlers).update(handlers)

    def attach(self, link: ExtensionLink) -> None:
        """Add a link; an older one of the same browser is closed, and its calls fail."""
        link.handlers = {**self._handlers, **(self._local_handlers if link.local else {})}
        old = self._connected.get(link.browser_id)
        self._connected[link.browser_id] = ConnectedBrowser(link, self._wall())
        self._focus(link.browser_id)
        if old is not None:
            old.link.close(REPLACED, "replaced by a newer connection of the same browser")
        self._publish(Change("connected", link.browser_id))

    def detach(self, link: ExtensionLink, reason: str = "the browser closed the connection") -> None:
        """Remove a link that ended: its calls fail, and its tabs cannot be reached unless a newer link has them."""
        link.connection_lost(reason)
        browser = self._connected.get(link.browser_id)
        if browser is None or browser.link is not link:
            return
        del self._connected[link.browser_id]
        self._recent.pop(link.browser_id, None)
        reason = link.closed or reason
        facts = {"browserId": link.browser_id, "lostAt": self._wall(), "reason": reason}
        self._disconnected.append({**facts, **browser.hello})
        self._publish(Change("disconnected", link.browser_id, self.book.disconnect(link.browser_id), reason))

    def links(self) -> list[ExtensionLink]:
        return [browser.link for browser in self._connected.values()]

    def notify_local(self, method: str, params: dict[str, Any]) -> None:
        """Notify the extensions on this machine, which show the person's panel."""
        for browser in self._connected.values():
            if browser.link.local:
                browser.link.notify(method, params)

    def link(self, browser_id: str) -> ExtensionLink:
        browser = self._connected.get(browser_id)
        if browser is None:
            raise self._not_connected(f"Browser {browser_id[:100]} is not connected.")
        return browser.link

    def default_link(self) -> ExtensionLink:
        """The browser that was focused or connected last."""
        if not self._recent:
            raise self._not_connected("Browser extension not connected: no browser is connected to the hub.")
        return self._connected[next(reversed(self._recent))].link

    def is_managed(self, browser_id: str) -> bool:
        """Whether the hub started the browser itself, which its extension's installation records."""
        browser = self._connected.get(browser_id)
        return browser is not None and browser.hello.get("managed") is True

    def require_introduced(self) -> None:
        """Raise NotConnected while a browser that has just connected has not said whose it is."""
        if not all(browser.introduced or browser.synced for browser in self._connected.values()):
            raise NotConnected("A browser has just connected and reports its tabs.", hint="Call again in a moment.")

    def is_debugged(self, link: ExtensionLink, chrome_id: int) -> bool:
        browser = self._connected.get(link.browser_id)
        return browser is not None and browser.link is link and chrome_id in browser.attached

    def tab(self, tab_id: int) -> TabRef:
        """A tab that agents may use, and the link to it; the error for one that does not exist lists the open tabs."""
        tab = self.book.get(tab_id)
        if tab is None:
            raise self.missing(tab_id)
        if tab.stopped:
            raise TabStopped(tab_id)
        link = self._connected[tab.browser_id].link
        return TabRef(link, tab, (link, tab.chrome_id))

    def missing(self, tab_id: int) -> TabNotFound | NotConnected:
        """The error for a tab that does not exist or cannot be reached."""
        if not self._connected:
            return self._not_connected(
                f"Browser extension not connected: no browser is connected, so tab {tab_id} cannot be reached."
            )
        if self.book.find_disconnected(tab_id) is not None:
            if not all(browser.synced for browser in self._connected.values()):
                return NotConnected(
                    f"Tab {tab_id} cannot be reached yet: a browser has just connected and is reporting its tabs.",
                    hint="Call again in a moment.",
                )
            return self._not_connected(f"Tab {tab_id} cannot be reached: its browser is not connected now.")
        named = [f"{tab.tab_id} ({tab.title[:40] or tab.url[:60]})" for tab in list(self.book)[:_TABS_NAMED]]
        more = len(self.book) - len(named)
        listed = "; ".join(named) + (f"; and {more} more" if more > 0 else "")
        return TabNotFound(
            f"There is no tab {tab_id}.",
            hint=f"Open tabs: {listed}." if named else "No tab is open; browser_open_tab opens one.",
        )

    def update_tab(self, link: ExtensionLink, reply: Any, since: Tab | None = None) -> Tab:
        """Apply a tab's description in a command's reply, and return the tab as it is known now.

        Reports are applied as they arrive, a reply only when its caller runs again: if the browser has reported the
        tab in between, that is newer. `since` is the tab as it was known when the command was sent, None for a new one.
        """
        try:
            info = wire.tab_info(reply)
        except InvalidParams as error:
            raise CommandFailed(f"The browser's description of a tab is invalid: {error.message}.") from None
        known = self.book.find(link.browser_id, info.tab_id)
        if known is not None and known is not since:
            return known
        changes = self.book.apply(link.browser_id, wire.TabStateChanged(info.tab_id, "updated", info))
        tab = self.book.find(link.browser_id, info.tab_id)
        if tab is None:
            raise CommandFailed(f"The browser's tab {info.tab_id} was refused: {'; '.join(changes.problems)}.")
        self._apply(link, changes)
        return tab

    def update_location(self, link: ExtensionLink, since: Tab, *, url: str, title: str, status: str) -> None:
        """Apply where a navigation ended, unless the browser has reported the tab since then (see `update_tab`)."""
        if self.book.get(since.tab_id) is since:
            self._apply(link, self.book.apply_navigation(link.browser_id, since.chrome_id, url, title, status))

    def remove_tab(self, link: ExtensionLink, chrome_id: int) -> None:
        """Apply that the browser does not have this tab."""
        self._apply(link, self.book.apply(link.browser_id, wire.TabStateChanged(chrome_id, "removed")))

    def status(self) -> list[dict[str, Any]]:
        """Each browser with its socket, extension, tabs and debugger; recently disconnected ones come last."""
        connected = [browser.describe(self.book) for browser in self._connected.values()]
        recent = {
            facts["browserId"]: facts for facts in self._disconnected if facts["browserId"] not in self._connected
        }
        return connected + [{"connected": False, **facts} for facts in recent.values()]

    async def watch(self, link: ExtensionLink) -> None:
        """Ping a link until it ends; close and detach it when nothing is received in time after a ping."""
        limits, loop = self.limits, link.loop
        unanswered: float | None = None
        next_ping = loop.time() + limits.ping_interval
        while link.closed is None:
            due = next_ping if unanswered is None else min(next_ping, unanswered + limits.ping_timeout)
            await asyncio.sleep(max(0.0, due - loop.time()))
            now = loop.time()
            if unanswered is not None and link.last_seen > unanswered:
                unanswered = None
            if unanswered is not None and now >= unanswered + limits.ping_timeout:
                link.close(SILENT, f"no message received for {now - link.last_seen:.0f} s")
                self.detach(link)
            elif now >= next_ping:
                link.notify("ping", {})
                unanswered, next_ping = unanswered if unanswered is not None else now, now + limits.ping_interval

    # messages of extensions: only of links that are attached, because any other is closed and receives none

    def _hello(self, link: ExtensionLink, hello: wire.ExtensionHello) -> None:
        self._connected[link.browser_id].apply_hello(hello)
        if hello.browser_id not in (None, link.browser_id):
            log.warning(
                "browser %s calls itself %.100r; the id of its connection counts", link.browser_id, hello.browser_id
            )
        for listener in self._on_hello:
            listener(link)

    def _sync(self, link: ExtensionLink, sync: wire.TabSyncAll) -> None:
        self._connected[link.browser_id].synced = True
        if sync.debugger is not None:
            self._debugger_changed(link, sync.debugger)
        self._apply(link, self.book.sync(link.browser_id, sync.tabs), synced=True)
        self._plugin_message(link, sync)

    def _state_changed(self, link: ExtensionLink, report: wire.TabStateChanged | wire.PluginStateChanged) -> None:
        if isinstance(report, wire.PluginStateChanged):
            self._plugin_message(link, report)
        else:
            self._apply(link, self.book.apply(link.browser_id, report))

    def _debugger_changed(self, link: ExtensionLink, state: wire.DebuggerState) -> None:
        browser = self._connected[link.browser_id]
        now = frozenset(state.attached[: self.limits.tabs_per_browser])
        released, browser.attached = browser.attached - now, now
        for chrome_id in released:
            self._event((link, chrome_id), "detached", {"reason": "released"})

    def _cdp_event(self, link: ExtensionLink, event: wire.CdpEvent) -> None:
        if event.session_id is None:
            if event.method == "Inspector.targetCrashed":
                self._fail_commands(link, event.tab_id, "its page crashed")
            elif event.method == "Page.frameNavigated":
                self._navigated(link, event.tab_id, event.params.get("frame"))
        self._event((link, event.tab_id), event.method, event.params, event.session_id)

    def _navigated(self, link: ExtensionLink, chrome_id: int, frame: Any) -> None:
        """Apply where a tab went at once: its own report comes later, and a call may act in between."""
        tab = self.book.find(link.browser_id, chrome_id)
        if tab is None or not isinstance(frame, dict) or frame.get("parentId"):
            return
        # The browser shows an error page under the URL that could not be reached.
        url = str(frame.get("unreachableUrl") or f"{frame.get('url', '')}{frame.get('urlFragment') or ''}")
        if url != tab.url:
            self._apply(link, self.book.apply_navigation(link.browser_id, chrome_id, url, "", "loading"))

    def _cdp_detached(self, link: ExtensionLink, detached: wire.CdpDetached) -> None:
        self._connected[link.browser_id].attached -= {detached.tab_id}
        if detached.reason == "canceled_by_user":
            self._stop(link, detached.tab_id)
        elif detached.reason in DETACH_REASONS:
            self._fail_commands(link, detached.tab_id, DETACH_REASONS[detached.reason])
        self._event((link, detached.tab_id), "detached", {"reason": detached.reason})

    def _plugin_message(self, link: ExtensionLink, message: PluginMessage) -> None:
        if self._on_plugins is not None:
            self._on_plugins(link, message)

    def _log(self, link: ExtensionLink, entry: wire.LogEntry) -> None:
        level = _LEVELS.get(entry.level, logging.ERROR)
        log.log(level, "browser %s: %.100r: %.2000r", link.browser_id, entry.source, entry.message)

    def _apply(self, link: ExtensionLink, changes: TabChanges, *, synced: bool = False) -> None:
        for problem in changes.problems[:5]:
            log.warning("browser %s: %s", link.browser_id, problem)
        for tab in changes.closed:
            link.fail_tab(tab.chrome_id, partial(_failed, tab.tab_id, "it was closed"), spare="closeTab")
        if any(tab.active and tab.window_focused for tab in (*changes.changed, *changes.opened)):
            self._focus(link.browser_id)
        self._publish(Change("tabs", link.browser_id, changes, synced=synced))

    def _stop(self, link: ExtensionLink, chrome_id: int) -> None:
        """The person pressed the browser's Cancel button: no agent uses the tab until they return it."""
        changes = self.book.apply_stop(link.browser_id, chrome_id)
        for tab in changes.changed:
            log.info("the person stopped the agents in tab %d", tab.tab_id)
            link.fail_tab(chrome_id, partial(TabStopped, tab.tab_id, sent=True))
        self._apply(link, changes)

    async def resume_tab(self, tab_id: int) -> Tab:
        """Return a tab that the person stopped the agents in."""
        tab = self.book.get(tab_id)
        if tab is None:
            raise self.missing(tab_id)
        if not tab.stopped:
            raise TabNotFound(f"Agents are not stopped in tab {tab_id}.", hint="`tabhub status` shows where they are.")
        link = self._connected[tab.browser_id].link
        return self.update_tab(link, await link.request("resumeTab", {"tabId": tab.chrome_id}), tab)

    def _fail_commands(self, link: ExtensionLink, chrome_id: int, why: str) -> None:
        """Fail the CDP commands that are pending on a tab."""
        tab = self.book.find(link.browser_id, chrome_id)
        error = partial(_failed, tab.tab_id if tab else chrome_id, why)
        link.fail_tab(chrome_id, error, only="forwardCDPCommand")

    def _focus(self, browser_id: str) -> None:
        self._recent.pop(browser_id, None)
        self._recent[browser_id] = None

    def _event(self, key: TabKey, method: str, params: dict[str, Any], child: str | None = None) -> None:
        for listener in self._on_event:
            listener(key, method, params, child)

    def _publish(self, change: Change) -> None:
        """Call the listeners, unless nothing changed, and drop what is kept for tabs that are gone."""
        tabs = change.tabs
        aspects: dict[str, object] = {
            "connected": change.kind == "connected",
            "disconnected": change.kind == "disconnected",
            "synced": change.synced,
            "opened": tabs.opened,
            "changed": tabs.changed,
            "closed": tabs.closed or tabs.disconnected,
        }
        present = {aspect for aspect, part in aspects.items() if part}
        for listener, wanted in self._on_change if present else ():
            if not wanted or not present.isdisjoint(wanted):
                listener(change)
        if not tabs.closed and change.kind == "tabs":
            return
        closed = {(tab.browser_id, tab.chrome_id) for tab in tabs.closed}
        for state, ended in self._tab_state:
            for key in list(state):
                if key[0].closed is not None or (key[0].browser_id, key[1]) in closed:
                    ended(key)
        for lasting in self._lasting_tab_state:
            for tab in closed:
                lasting.pop(tab, None)

    def _not_connected(self, message: str) -> NotConnected:
        hint = self._advice
        if self._connected:
            hint = f"Connected: {', '.join(list(self._connected)[:10])}."
        elif self._starting():
            hint = "The hub's own browser is starting, or its extension is connecting. Call again in a few seconds."
        return NotConnected(message, hint=hint)


def _failed(tab_id: int, why: str) -> TabFailed:
    return TabFailed(
        f"Tab {tab_id} failed during the call: {why}.",
        hint="How far the command got is unknown; browser_list_tabs shows what is open.",
    )
