"""The connected browsers: their links by id, the picture of their tabs, and who is told of changes.

Owns attaching and detaching of links, which browser is meant when none is named, and the heartbeat. It does not listen
on anything and runs no tools.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from tabhub.core.tabs import Tab, TabChanges, TabTable
from tabhub.errors import CommandFailed, MethodNotFound, NotConnected, TabFailed, TabNotFound
from tabhub.limits import DEFAULTS, Limits
from tabhub.links.connected_browser import Seat
from tabhub.links.extension import REPLACED, ExtensionLink, Handler
from tabhub.links.heartbeat import heartbeat

log = logging.getLogger("tabhub.browser")

_TABS_NAMED = 8
_GONE_KEPT = 20
_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "warn": logging.WARNING}
_TAKEN_AWAY = {
    "target_closed": "the tab was closed or its page crashed, or it went where it cannot be debugged",
    "canceled_by_user": "the person stopped debugging in the browser",
    "replaced_with_devtools": "the developer tools took the tab over",
}
"""Ends of debugging that also end the commands under way; letting go of an idle tab is none."""

_START_ONE = (
    "Start the browser that has the Tabhub extension, or let the hub start one (`tabhub stop`, then "
    "`tabhub start --launch`); `tabhub doctor` says what is missing."
)
"""What to do when there is no browser."""

PAGE_METHODS = (
    "browser/registerTools",
    "browser/updateTools",
    "browser/disconnected",
    "browser/elicitConfirmation",
    "tool.progress",
)
"""What a browser says of the tools of its pages; whoever looks after these is told by `on_page`."""

NO_CHANGES = TabChanges()


@dataclass(slots=True)
class TabRef:
    """A tab together with the link that reaches it."""

    link: ExtensionLink
    tab: Tab


@dataclass(frozen=True, slots=True)
class Change:
    """What listeners are told: a browser came or went, or tabs changed."""

    kind: Literal["connected", "disconnected", "tabs"]
    browser_id: str
    tabs: TabChanges = NO_CHANGES
    reason: str = ""
    synced: bool = False
    """Whether the browser told all its tabs, and not only what changed."""


ChangeListener = Callable[[Change], None]
PageListener = Callable[[ExtensionLink, str, dict[str, Any]], Any]
"""Takes the link, a method of PAGE_METHODS and its params; gives what the method is answered with."""
EventListener = Callable[[ExtensionLink, int, str, dict[str, Any], str | None], None]
"""Takes the link, the browser's own tab id, the CDP method, its params, and the child session it comes from, if any."""


class Browsers:
    """All connected browsers."""

    def __init__(self, limits: Limits = DEFAULTS, *, wall: Callable[[], float] = time.time) -> None:
        self.limits = limits
        self.book = TabTable(limits)
        self._wall = wall
        self._seats: dict[str, Seat] = {}
        self._recent: dict[str, None] = {}
        self._gone: deque[dict[str, Any]] = deque(maxlen=_GONE_KEPT)
        self._on_change: list[ChangeListener] = []
        self._on_event: list[EventListener] = []
        self._on_page: PageListener | None = None
        self.starting: Callable[[], bool] = lambda: False
        """Whether a browser of the hub's own is on its way."""
        self.advice = _START_ONE
        self._on_plugins: PageListener | None = None
        self._on_hello: list[Callable[[ExtensionLink], None]] = []
        self._panel: Mapping[str, Handler] = {}

    def on_change(self, listener: ChangeListener) -> None:
        """Tell a listener of every change from now on."""
        self._on_change.append(listener)

    def on_event(self, listener: EventListener) -> None:
        """Tell a listener of every CDP event; the end of debugging comes as `detached` with its reason."""
        self._on_event.append(listener)

    def on_hello(self, listener: Callable[[ExtensionLink], None]) -> None:
        """Tell a listener of every extension that has said what it is, and so can be told things."""
        self._on_hello.append(listener)

    def on_page(self, listener: PageListener) -> None:
        """Hand everything that concerns the tools of pages to a listener."""
        self._on_page = listener

    def on_plugins(self, listener: PageListener) -> None:
        """Hand everything that browsers tell of site plugins to a listener."""
        self._on_plugins = listener

    def on_panel(self, methods: Mapping[str, Handler]) -> None:
        """What the person's own panel may ask; only extensions on this machine are given it."""
        self._panel = methods

    # links

    def attach(self, link: ExtensionLink) -> None:
        """Take a new link; one of the same browser is closed, and its calls fail."""
        link.handlers = {
            "extension.hello": self._hello,
            "tab.syncAll": self._sync,
            "tab.stateChanged": self._state_changed,
            "debugger.changed": self._debugger_changed,
            "cdp.event": self._cdp_event,
            "cdp.detached": self._cdp_detached,
            "log": self._log,
            "plugin.log": partial(self._plugin_message, "plugin.log"),
            **{method: partial(self._page_message, method) for method in PAGE_METHODS},
            **(self._panel if link.local else {}),
        }
        old = self._seats.get(link.browser_id)
        self._seats[link.browser_id] = Seat(link, self._wall())
        self._focus(link.browser_id)
        if old is not None:
            old.link.close(REPLACED, "replaced by a newer connection of the same browser")
        self._tell(Change("connected", link.browser_id))

    def detach(self, link: ExtensionLink, reason: str = "the browser closed the connection") -> None:
        """A link ended: its calls fail, and its tabs are out of reach unless a newer link has them."""
        link.lost(reason)
        seat = self._seats.get(link.browser_id)
        if seat is None or seat.link is not link:
            return
        del self._seats[link.browser_id]
        self._recent.pop(link.browser_id, None)
        reason = link.closed or reason
        self._gone.append({"browserId": link.browser_id, "lostAt": self._wall(), "reason": reason, **seat.hello})
        self._tell(Change("disconnected", link.browser_id, self.book.gone(link.browser_id), reason))

    def links(self) -> list[ExtensionLink]:
        """The connected links."""
        return [seat.link for seat in self._seats.values()]

    def link(self, browser_id: str) -> ExtensionLink:
        """The link of a named browser."""
        seat = self._seats.get(browser_id)
        if seat is None:
            raise self._not_connected(f"Browser {browser_id[:100]} is not connected.")
        return seat.link

    def default_link(self) -> ExtensionLink:
        """The browser that was focused, or connected, last."""
        if not self._recent:
            raise self._not_connected("Browser extension not connected: no browser is connected to the hub.")
        return self._seats[next(reversed(self._recent))].link

    def is_managed(self, browser_id: str) -> bool:
        """Whether a browser is one the hub started itself, as its extension was installed to say."""
        seat = self._seats.get(browser_id)
        return seat is not None and seat.hello.get("managed") is True

    def debugged(self, link: ExtensionLink, chrome_id: int) -> bool:
        """Whether the debugger is attached to a tab, as far as the browser told."""
        seat = self._seats.get(link.browser_id)
        return seat is not None and seat.link is link and chrome_id in seat.attached

    # tabs

    def tab(self, tab_id: int) -> TabRef:
        """The tab of a hub id and the link to it; otherwise an error that says what there is."""
        tab = self.book.get(tab_id)
        if tab is None:
            raise self.missing(tab_id)
        return TabRef(self._seats[tab.browser_id].link, tab)

    def missing(self, tab_id: int) -> TabNotFound | NotConnected:
        """The error for a tab that is not there."""
        if not self._seats:
            return self._not_connected(
                f"Browser extension not connected: no browser is connected, so tab {tab_id} cannot be reached."
            )
        if self.book.is_away(tab_id):
            if not all(seat.synced for seat in self._seats.values()):
                return NotConnected(
                    f"Tab {tab_id} cannot be reached yet: a browser has just connected and is telling its tabs.",
                    hint="Call again in a moment.",
                )
            return self._not_connected(f"Tab {tab_id} cannot be reached: its browser is not connected now.")
        named = [f"{tab.tab_id} ({tab.title[:40] or tab.url[:60]})" for tab in list(self.book)[:_TABS_NAMED]]
        more = len(self.book) - len(named)
        there = "; ".join(named) + (f"; and {more} more" if more > 0 else "")
        return TabNotFound(
            f"There is no tab {tab_id}.",
            hint=f"Open tabs: {there}." if named else "No tab is open; browser_open_tab opens one.",
        )

    def described(self, link: ExtensionLink, raw: Any, since: Tab | None = None) -> Tab:
        """Take a tab's description from a reply of the browser, and give the tab as it is known now.

        Reports are taken as they come, a reply only when its caller runs again: where the browser has reported the
        tab meanwhile, that is newer. `since` is the tab as it was known when the browser was asked, None for a new one.
        """
        chrome_id = raw.get("tabId") if isinstance(raw, dict) else None
        known = self.book.find(link.browser_id, chrome_id) if type(chrome_id) is int else None
        if known is not None and known is not since:
            return known
        changes = self.book.changed(link.browser_id, {"tabId": chrome_id, "change": "updated", "tab": raw})
        tab = self.book.find(link.browser_id, chrome_id) if type(chrome_id) is int else None
        if tab is None:
            raise CommandFailed(f"The browser described a tab that cannot be used: {'; '.join(changes.problems)}.")
        self._changed(link, changes)
        return tab

    def moved(self, link: ExtensionLink, since: Tab, *, url: str, title: str, status: str) -> None:
        """Take where a navigation led, unless the browser has reported the tab since then (see `described`)."""
        if self.book.get(since.tab_id) is since:
            self._changed(link, self.book.moved(link.browser_id, since.chrome_id, url, title, status))

    def forget(self, link: ExtensionLink, chrome_id: int) -> None:
        """The browser says it has no such tab."""
        self._changed(link, self.book.changed(link.browser_id, {"tabId": chrome_id, "change": "removed"}))

    # facts

    def status(self) -> list[dict[str, Any]]:
        """Each browser's legs told apart: socket, extension, tabs, debugger; those gone recently come last."""
        there = [seat.facts(self.book) for seat in self._seats.values()]
        gone = {facts["browserId"]: facts for facts in self._gone if facts["browserId"] not in self._seats}
        return there + [{"connected": False, **facts} for facts in gone.values()]

    async def watch(self, link: ExtensionLink) -> None:
        """Ping a link until it ends; close it when it stays silent too long after a ping."""
        await heartbeat(link, self.limits, self.detach)

    # what an extension tells

    def _hello(self, link: ExtensionLink, params: dict[str, Any]) -> None:
        seat = self._seat_of(link)
        if seat is None:
            return
        seat.greeted(params)
        if params.get("browserId") not in (None, link.browser_id):
            log.warning(
                "browser %s calls itself %.100r; the id of its connection counts", link.browser_id, params["browserId"]
            )
        for listener in self._on_hello:
            listener(link)

    def _sync(self, link: ExtensionLink, params: dict[str, Any]) -> None:
        seat = self._seat_of(link)
        if seat is None:
            return
        tabs = params.get("tabs")
        if not isinstance(tabs, list):
            log.warning("browser %s sent tab.syncAll without a list of tabs", link.browser_id)
            return
        seat.synced = True
        if isinstance(debugger := params.get("debugger"), dict):
            self._debugger_changed(link, debugger)
        self._changed(link, self.book.sync(link.browser_id, tabs), synced=True)
        self._plugin_message("tab.syncAll", link, params)

    def _state_changed(self, link: ExtensionLink, params: dict[str, Any]) -> None:
        if "plugin" in params:
            self._plugin_message("tab.stateChanged", link, params)
        elif self._seat_of(link) is not None:
            self._changed(link, self.book.changed(link.browser_id, params))

    def _debugger_changed(self, link: ExtensionLink, params: dict[str, Any]) -> None:
        seat = self._seat_of(link)
        attached = params.get("attached")
        if seat is not None and isinstance(attached, list):
            now = frozenset(tab for tab in attached[: self.limits.tabs_per_browser] if type(tab) is int)
            released, seat.attached = seat.attached - now, now
            for chrome_id in released:
                self._event(link, chrome_id, "detached", {"reason": "released"})

    def _cdp_event(self, link: ExtensionLink, params: dict[str, Any]) -> None:
        chrome_id, method, details = params.get("tabId"), params.get("method"), params.get("params", {})
        session_id = params.get("sessionId")
        if type(chrome_id) is not int or type(method) is not str or type(details) is not dict:
            log.warning("browser %s sent a CDP event without tab or method", link.browser_id)
            return
        child = session_id if type(session_id) is str else None
        if method == "Inspector.targetCrashed" and child is None:
            self._fail_tab(link, chrome_id, "its page crashed", only="forwardCDPCommand")
        self._event(link, chrome_id, method, details, child)

    def _cdp_detached(self, link: ExtensionLink, params: dict[str, Any]) -> None:
        chrome_id, reason = params.get("tabId"), params.get("reason")
        seat = self._seat_of(link)
        if seat is None or type(chrome_id) is not int:
            return
        seat.attached -= {chrome_id}
        if isinstance(reason, str) and reason in _TAKEN_AWAY:
            self._fail_tab(link, chrome_id, _TAKEN_AWAY[reason], only="forwardCDPCommand")
        self._event(link, chrome_id, "detached", {"reason": reason})

    def _page_message(self, method: str, link: ExtensionLink, params: dict[str, Any]) -> Any:
        if self._on_page is not None and self._seat_of(link) is not None:
            return self._on_page(link, method, params)
        raise MethodNotFound(f"Method not found: {method}")

    def _plugin_message(self, method: str, link: ExtensionLink, params: dict[str, Any]) -> None:
        if self._on_plugins is not None and self._seat_of(link) is not None:
            self._on_plugins(link, method, params)

    def _log(self, link: ExtensionLink, params: dict[str, Any]) -> None:
        level = _LEVELS.get(str(params.get("level")), logging.ERROR)
        log.log(level, "browser %s: %.100r: %.2000r", link.browser_id, params.get("source"), params.get("message"))

    # inside

    def _seat_of(self, link: ExtensionLink) -> Seat | None:
        seat = self._seats.get(link.browser_id)
        return seat if seat is not None and seat.link is link else None

    def _changed(self, link: ExtensionLink, changes: TabChanges, *, synced: bool = False) -> None:
        for problem in changes.problems[:5]:
            log.warning("browser %s: %s", link.browser_id, problem)
        for tab in changes.closed:
            self._fail_tab(link, tab.chrome_id, "it was closed", spare="closeTab")
        if any(tab.active and tab.window_focused for tab in (*changes.changed, *changes.opened)):
            self._focus(link.browser_id)
        if changes or synced:
            self._tell(Change("tabs", link.browser_id, changes, synced=synced))

    def _fail_tab(self, link: ExtensionLink, chrome_id: int, why: str, **which: str) -> None:
        tab = self.book.find(link.browser_id, chrome_id)

        def error() -> TabFailed:
            return TabFailed(
                f"Tab {tab.tab_id if tab else chrome_id} failed under the call: {why}.",
                hint="How far the command came is not known; browser_list_tabs shows what is open.",
            )

        link.fail_tab(chrome_id, error, **which)

    def _focus(self, browser_id: str) -> None:
        self._recent.pop(browser_id, None)
        self._recent[browser_id] = None

    def _event(
        self, link: ExtensionLink, chrome_id: int, method: str, params: dict[str, Any], child: str | None = None
    ) -> None:
        for listener in self._on_event:
            listener(link, chrome_id, method, params, child)

    def _tell(self, change: Change) -> None:
        for listener in self._on_change:
            listener(change)

    def _not_connected(self, message: str) -> NotConnected:
        if self._seats:
            return NotConnected(message, hint=f"Connected: {', '.join(list(self._seats)[:10])}.")
        if self.starting():
            own = "The hub's own browser is starting, or its extension is connecting. Call again in a few seconds."
            return NotConnected(message, hint=own)
        return NotConnected(message, hint=self.advice)
