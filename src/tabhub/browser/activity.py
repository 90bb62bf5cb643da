"""What goes on in the tabs in use: navigations, windows, downloads and requests, as far as acting and waiting need it.

Owns the picture of what an action set off, told by events alone, and what keeps a tab in the background awake. It acts
on nothing; recording for agents to read is done elsewhere.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tabhub.browser.driver.page import Page
from tabhub.browser.driver.tab_watch import EventSubscription, TabWatch
from tabhub.browser.record.traffic import ENABLE
from tabhub.links.browsers import Browsers, Change
from tabhub.links.extension import ExtensionLink

_EVENTS = (
    "Page.frameRequestedNavigation",
    "Page.frameStartedNavigating",
    "Page.frameNavigated",
    "Page.frameStoppedLoading",
    "Page.frameDetached",
    "Page.domContentEventFired",
    "Page.loadEventFired",
    "Page.windowOpen",
    "Page.downloadWillBegin",
    "Page.fileChooserOpened",
    "Input.dragIntercepted",
    "Network.requestWillBeSent",
    "Network.responseReceived",
    "Network.responseReceivedExtraInfo",
    "Network.loadingFinished",
    "Network.loadingFailed",
    "Target.detachedFromTarget",
)
CHOOSER = "Page.setInterceptFileChooserDialog"
_OPEN_ENDED = ("EventSource", "WebSocket", "Ping", "Preflight", "Media")
"""Requests that never end, or that nobody waits for."""
_LEADS = ("Page.frameRequestedNavigation", "Page.frameStartedNavigating")
_OF_PAGES = (
    *("http", "https", "file", "filesystem", "data", "blob", "about", "javascript"),
    *("view-source", "chrome", "chrome-extension", "chrome-error", "devtools"),
)
"""Addresses that a tab can show, by their beginning."""
_MOST = 1000
_UNREAD = 0.5
_KEPT = 200
_Key = tuple[ExtensionLink, int]
Params = dict[str, Any]
T = TypeVar("T")
_LAST_ANSWER = 0.1
"""Seconds for what a page was asked before it was on its way to another."""


@dataclass(frozen=True, slots=True)
class Response:
    """An answer to a request of the page."""

    at: float
    url: str
    method: str
    status: int
    mime: str


@dataclass(slots=True)
class _Flight:
    """A request under way."""

    url: str
    method: str
    loader: str
    begun: float
    answered: float | None = None

    def ends(self, now: float) -> float | None:
        """When it ended, if it has: a page that does not read the answer it got keeps the browser from saying so."""
        return self.answered + _UNREAD if self.answered is not None and now - self.answered >= _UNREAD else None


def _for_others(url: Any) -> str | None:
    """An address that no page is behind, such as mailto: and tel:."""
    scheme, colon, _ = str(url).partition(":")
    return str(url)[:300] if colon and scheme.lower() not in _OF_PAGES else None


class TrackedAction:
    """One action under way, and what it has set off so far."""

    def __init__(self) -> None:
        self.navigating: set[str] = set()
        """Frames that are on their way to another document."""
        self.url: str | None = None
        """Where the tab has gone to."""
        self.loading = False
        self.external_url: str | None = None
        """An address that the browser hands to another program: the page stays, but the debugger is let go of."""
        self.opening = 0
        self.opened: list[int] = []
        self.unclaimed_tabs: set[int] = set()
        """Tabs that came up in the same browser meanwhile; whose they are may be told later."""
        self.downloading = False
        self.download: str | None = None
        self.chooser: Params | None = None
        self.drag: Params | None = None
        self._news = asyncio.Event()

    def handle_event(self, method: str, params: Params, child: str | None) -> None:
        """Take one event of the tab, or of a frame in another process."""
        frame_id = str(params.get("frameId"))
        if method in _LEADS and (outside := _for_others(params.get("url"))):
            self.external_url = outside
        elif method == "Page.frameRequestedNavigation":
            if params.get("disposition") in ("currentTab", None):
                self.navigating.add(frame_id)
            elif params.get("disposition") == "download":
                self.downloading = True
            else:
                self.opening += 1
        elif method == "Page.frameStartedNavigating":
            if "ifferentDocument" in str(params.get("navigationType")) or "reload" in str(params.get("navigationType")):
                self.navigating.add(frame_id)
        elif method == "Page.frameNavigated" and isinstance(frame := params.get("frame"), dict):
            self.navigating.discard(str(frame.get("id")))
            if not frame.get("parentId") and child is None:
                self.url = f"{frame.get('url', '')}{frame.get('urlFragment', '')}"[:8192]
                self.loading = True
        elif method in ("Page.frameStoppedLoading", "Page.frameDetached"):
            self.navigating.discard(frame_id)
        elif method in ("Page.domContentEventFired", "Page.loadEventFired"):
            self.loading = self.loading and child is not None
        elif method == "Page.windowOpen":
            self.opening += 1
        elif method == "Page.downloadWillBegin":
            self.downloading = False
            self.download = str(params.get("suggestedFilename") or params.get("url"))[:300]
        elif method == "Page.fileChooserOpened":
            self.chooser = params
        elif method == "Input.dragIntercepted":
            data = params.get("data")
            self.drag = data if isinstance(data, dict) else None
        else:
            return
        self._news.set()

    def tab_opened(self, tab_id: int) -> None:
        """Another tab came out of this one."""
        self.opened.append(tab_id)
        self._news.set()

    @property
    def unsettled(self) -> bool:
        """Whether something that began is not yet there."""
        return bool(self.navigating) or self.loading or self.downloading or self.opening > len(self.opened)

    async def unless_navigating(self, work: Coroutine[Any, Any, T]) -> T | None:
        """What a page answers; None once it is on its way to another page.

        From then on the browser holds commands back until the other page is there, which may take as long as its site.
        """
        asking = asyncio.ensure_future(work)
        leaving = asyncio.ensure_future(self.wait_until(lambda: bool(self.navigating), None))
        try:
            await asyncio.wait((asking, leaving), return_when=asyncio.FIRST_COMPLETED)
            if not asking.done():
                await asyncio.wait((asking,), timeout=_LAST_ANSWER)  # it may have been sent in time
            return asking.result() if asking.done() else None
        finally:
            asking.cancel()
            leaving.cancel()

    async def settle(self, patience: float) -> None:
        """Wait until what began is there, but not for long."""
        if self.unsettled:
            await self.wait_until(lambda: not self.unsettled, patience)

    async def wait_until(self, reached: Any, patience: float | None) -> bool:
        """Wait for events until something is reached; False if it is not in time."""
        try:
            async with asyncio.timeout(patience):
                while not reached():
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            return False
        return True


@dataclass(slots=True)
class _Tab:
    awake: bool = False
    gone: bool = False
    doing: list[TrackedAction] = field(default_factory=list)
    acted: float = 0.0
    """When the last action began, or the page was asked for."""
    flying: dict[tuple[str | None, str], _Flight] = field(default_factory=dict)
    moved: float = 0.0
    """When a request last began or ended."""
    responses: deque[Response] = field(default_factory=lambda: deque(maxlen=_KEPT))
    news: asyncio.Event = field(default_factory=asyncio.Event)
    held: str = ""
    """The mouse button that is down."""


class Activity:
    """What goes on in all tabs in use."""

    def __init__(self, browsers: Browsers, watch: TabWatch) -> None:
        self._watch = watch
        self._tabs: dict[_Key, _Tab] = {}
        browsers.on_change(self._changed)
        watch.subscribe(EventSubscription(_EVENTS, (ENABLE, ("Page.enable", {})), frames=True), self._heard)

    def _tab(self, page: Page) -> _Tab:
        key = (page.link, page.tab.chrome_id)
        if key not in self._tabs:
            self._tabs[key] = _Tab(moved=page.link.loop.time())
        return self._tabs[key]

    def wake(self, page: Page) -> None:
        """Let a tab in the background behave as if it were in front: it draws, has timers, focus and frames.

        The browser keeps it so while the debugger is attached; nothing that a person sees changes.
        """
        tab = self._tab(page)
        if not tab.awake:
            tab.awake = True
            page.cdp_nowait("Emulation.setFocusEmulationEnabled", {"enabled": True})

    @contextmanager
    def track_action(self, page: Page) -> Iterator[TrackedAction]:
        """Note what happens in the tab from here on, as what an action set off."""
        doing, tab = TrackedAction(), self._tab(page)
        tab.doing.append(doing)
        tab.acted = page.link.loop.time()
        if self._watch.open_dialog(page.link, page.tab.chrome_id) is None:
            self.wake(page)
        if page.tab.active:
            # A chooser would cover the window, and the page would hear nothing more until the person has answered it.
            page.cdp_nowait(CHOOSER, {"enabled": True, "cancel": True})
        try:
            yield doing
        finally:
            tab.doing.remove(doing)
            if page.tab.active and not tab.doing:
                page.cdp_nowait(CHOOSER, {"enabled": False})
            if tab.gone and not tab.doing:
                self._tabs.pop((page.link, page.tab.chrome_id), None)

    def opened_external(self, page: Page) -> bool:
        """Whether an action in the tab led to another program."""
        return any(doing.external_url for doing in self._tab(page).doing)

    def set_pressed_button(self, page: Page, button: str) -> str:
        """Note which mouse button is down from now on (none: empty), and give the one before."""
        tab = self._tab(page)
        before, tab.held = tab.held, button
        return before

    def network_quiet(self, page: Page) -> tuple[float, list[str]]:
        """For how long no request was under way, and which ones are."""
        tab, now = self._tab(page), page.link.loop.time()
        ends = [(flight.url, flight.ends(now)) for flight in tab.flying.values()]
        flying = [url for url, end in ends if end is None]
        last = max([tab.moved, *(end for _, end in ends if end is not None)])
        return (0.0 if flying else now - last), flying

    def responses(self, page: Page) -> list[Response]:
        """The answers that came since the last action in the tab began."""
        tab = self._tab(page)
        return [response for response in tab.responses if response.at >= tab.acted]

    async def wait_network_event(self, page: Page, patience: float) -> None:
        """Wait until a request begins, is answered or ends, but not for long."""
        tab = self._tab(page)
        tab.news.clear()
        try:
            async with asyncio.timeout(patience):
                await tab.news.wait()
        except TimeoutError:
            return

    def _heard(self, link: ExtensionLink, chrome_id: int, method: str, params: Params, child: str | None) -> None:
        tab = self._tabs.get((link, chrome_id))
        if method == "detached":
            if tab is not None and tab.doing:
                tab.awake = False
                tab.flying.clear()
            else:
                self._tabs.pop((link, chrome_id), None)
            return
        if tab is None:
            tab = self._tabs[link, chrome_id] = _Tab(moved=link.loop.time())
        if method.startswith("Network."):
            self._request(tab, link.loop.time(), method, params, child)
            return
        if method == "Target.detachedFromTarget":
            self._gone(tab, params.get("sessionId"), link.loop.time())
            return
        if method == "Page.frameNavigated" and child is None and isinstance(frame := params.get("frame"), dict):
            self._left(tab, frame, link.loop.time())
        for doing in tab.doing:
            doing.handle_event(method, params, child)

    def _request(self, tab: _Tab, now: float, method: str, params: Params, child: str | None) -> None:
        key = (child, str(params.get("requestId"))[:200])
        if method != "Network.requestWillBeSent" and key not in tab.flying:
            # The process that a document or a worker came to goes on telling of it.
            key = next((known for known in tab.flying if known[1] == key[1]), key)
        if method == "Network.requestWillBeSent":
            request = params.get("request")
            url = str(request.get("url"))[:2000] if isinstance(request, dict) else ""
            verb = str(request.get("method"))[:20] if isinstance(request, dict) else ""
            if params.get("type") in _OPEN_ENDED or url[:5] == "data:" or len(tab.flying) >= _MOST:
                return
            tab.flying[key] = _Flight(url, verb, str(params.get("loaderId")), now)
        elif method == "Network.responseReceivedExtraInfo":
            # Of a worker that is shared nothing more is told here.
            if (flight := tab.flying.get(key)) is not None:
                flight.answered = now
        elif method == "Network.responseReceived":
            response = params.get("response")
            if isinstance(response, dict):
                status, mime = response.get("status"), str(response.get("mimeType", ""))[:100]
                flight = tab.flying.get(key)
                verb = flight.method if flight is not None else "GET"
                if flight is not None:
                    flight.answered = now
                code = status if type(status) is int else 0
                tab.responses.append(Response(now, str(response.get("url"))[:2000], verb, code, mime))
        else:
            tab.flying.pop(key, None)
        tab.moved = now
        tab.news.set()

    @staticmethod
    def _gone(tab: _Tab, session: Any, now: float) -> None:
        """A frame in another process, or a worker, went with all it had asked for, and no word comes of that."""
        left = [key for key in tab.flying if key[0] == session]
        for key in left:
            del tab.flying[key]
        if left:
            tab.moved = now
            tab.news.set()

    @staticmethod
    def _left(tab: _Tab, frame: Params, now: float) -> None:
        """The tab shows another document: what the one before had asked for is of no interest."""
        if not frame.get("parentId"):
            loader = str(frame.get("loaderId"))
            opening = tab.flying.get((None, loader))
            if not tab.doing:
                tab.acted = max(tab.acted, opening.begun if opening is not None else now)
            tab.flying = {key: flight for key, flight in tab.flying.items() if flight.loader == loader}

    def _changed(self, change: Change) -> None:
        for tab in (*change.tabs.opened, *change.tabs.changed):
            for (link, chrome_id), known in self._tabs.items():
                for doing in known.doing if link.browser_id == tab.browser_id else ():
                    if tab in change.tabs.opened:
                        doing.unclaimed_tabs.add(tab.tab_id)
                    if chrome_id == tab.opener_chrome_id and tab.tab_id in doing.unclaimed_tabs:
                        doing.unclaimed_tabs.discard(tab.tab_id)
                        doing.tab_opened(tab.tab_id)
        gone = {(tab.browser_id, tab.chrome_id) for tab in change.tabs.closed}
        for key in [key for key in self._tabs if key[0].closed is not None or (key[0].browser_id, key[1]) in gone]:
            # A tab with an action under way is let go by that action.
            self._tabs[key].gone = True
            if not self._tabs[key].doing:
                del self._tabs[key]
