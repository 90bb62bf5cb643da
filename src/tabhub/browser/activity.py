"""Activity of the tabs in use: navigations, new windows, downloads and requests, as acting and waiting tools need it.

Owns what an action caused, from events alone, and keeping background tabs awake. Records for agents to read are kept
in `record/`.
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
from tabhub.links.browsers import Browsers, Change, TabKey
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
"""Requests that never end, or that no wait should include."""
_NAVIGATION_STARTS = ("Page.frameRequestedNavigation", "Page.frameStartedNavigating")
_PAGE_SCHEMES = (
    *("http", "https", "file", "filesystem", "data", "blob", "about", "javascript"),
    *("view-source", "chrome", "chrome-extension", "chrome-error", "devtools"),
)
"""URL schemes that a tab can show."""
_MOST = 1000
_UNREAD = 0.5
_KEPT = 200
Params = dict[str, Any]
T = TypeVar("T")
_LAST_ANSWER = 0.1
"""Seconds to wait for the reply to a command sent before a navigation began."""


@dataclass(frozen=True, slots=True)
class Response:
    """A response to a request of the page."""

    at: float
    url: str
    method: str
    status: int
    mime: str


@dataclass(slots=True)
class _PendingRequest:
    """A request under way."""

    url: str
    method: str
    loader: str
    begun: float
    answered: float | None = None

    def ends(self, now: float) -> float | None:
        """When it ended, if it has. If a page does not read a response, the browser never reports its end."""
        return self.answered + _UNREAD if self.answered is not None and now - self.answered >= _UNREAD else None


def _external_url(url: Any) -> str | None:
    """The URL if another program handles it, such as mailto: and tel:."""
    scheme, colon, _ = str(url).partition(":")
    return str(url)[:300] if colon and scheme.lower() not in _PAGE_SCHEMES else None


class TrackedAction:
    """A running action and what it has caused so far."""

    def __init__(self) -> None:
        self.navigating: set[str] = set()
        """Frames that are navigating."""
        self.url: str | None = None
        """The URL that the tab navigated to."""
        self.loading = False
        self.external_url: str | None = None
        """A URL that another program handles: the page stays, but the debugger is detached."""
        self.opening = 0
        self.opened: list[int] = []
        self.unclaimed_tabs: set[int] = set()
        """Tabs opened in the same browser meanwhile; their opener may be reported later."""
        self.downloading = False
        self.download: str | None = None
        self.chooser: Params | None = None
        self.drag: Params | None = None
        self._news = asyncio.Event()

    def handle_event(self, method: str, params: Params, child: str | None) -> None:
        """Handle one event of the tab, or of a frame in another process."""
        frame_id = str(params.get("frameId"))
        if method in _NAVIGATION_STARTS and (outside := _external_url(params.get("url"))):
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
        self.opened.append(tab_id)
        self._news.set()

    @property
    def unsettled(self) -> bool:
        """Whether something that the action started has not finished."""
        return bool(self.navigating) or self.loading or self.downloading or self.opening > len(self.opened)

    async def unless_navigating(self, work: Coroutine[Any, Any, T]) -> T | None:
        """The result of a page command; None once the page is navigating.

        From then on the browser holds commands back until the next page has arrived, however slow its site is.
        """
        asking = asyncio.ensure_future(work)
        leaving = asyncio.ensure_future(self.wait_until(lambda: bool(self.navigating), None))
        try:
            await asyncio.wait((asking, leaving), return_when=asyncio.FIRST_COMPLETED)
            if not asking.done():
                await asyncio.wait((asking,), timeout=_LAST_ANSWER)  # it may have run in time
            return asking.result() if asking.done() else None
        finally:
            asking.cancel()
            leaving.cancel()

    async def settle(self, limit: float) -> None:
        """Wait a limited time until what the action started has finished."""
        if self.unsettled:
            await self.wait_until(lambda: not self.unsettled, limit)

    async def wait_until(self, reached: Any, limit: float | None) -> bool:
        """Wait for events until `reached`; False on timeout."""
        try:
            async with asyncio.timeout(limit):
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
    actions: list[TrackedAction] = field(default_factory=list)
    acted: float = 0.0
    """When the last action or page load began."""
    pending: dict[tuple[str | None, str], _PendingRequest] = field(default_factory=dict)
    moved: float = 0.0
    """When a request last began or ended."""
    responses: deque[Response] = field(default_factory=lambda: deque(maxlen=_KEPT))
    news: asyncio.Event = field(default_factory=asyncio.Event)
    held: str = ""
    """The mouse button that is down."""


class Activity:
    """The activity of all tabs in use."""

    def __init__(self, browsers: Browsers, watch: TabWatch) -> None:
        self._watch = watch
        self._tabs: dict[TabKey, _Tab] = {}
        browsers.on_change(self._tabs_changed, "opened", "changed")
        browsers.drop_with_tab(self._tabs, self._tab_ended)
        watch.subscribe(EventSubscription(_EVENTS, (ENABLE, ("Page.enable", {})), frames=True), self._on_event)

    def _tab(self, page: Page) -> _Tab:
        key = page.key
        if key not in self._tabs:
            self._tabs[key] = _Tab(moved=page.link.loop.time())
        return self._tabs[key]

    def wake(self, page: Page) -> None:
        """Make a background tab render, run timers and have focus as if it were in front.

        It lasts while the debugger is attached; nothing visible to the person changes.
        """
        tab = self._tab(page)
        if not tab.awake:
            tab.awake = True
            page.cdp_nowait("Emulation.setFocusEmulationEnabled", {"enabled": True})

    @contextmanager
    def track_action(self, page: Page) -> Iterator[TrackedAction]:
        """Attribute what happens in the tab from here on to an action."""
        action, tab = TrackedAction(), self._tab(page)
        tab.actions.append(action)
        tab.acted = page.link.loop.time()
        if self._watch.open_dialog(*page.key) is None:
            self.wake(page)
        if page.tab.active:
            # A file chooser would block the page until the person answers it.
            page.cdp_nowait(CHOOSER, {"enabled": True, "cancel": True})
        try:
            yield action
        finally:
            tab.actions.remove(action)
            if page.tab.active and not tab.actions:
                page.cdp_nowait(CHOOSER, {"enabled": False})
            if tab.gone and not tab.actions:
                self._tabs.pop(page.key, None)

    def opened_external(self, page: Page) -> bool:
        """Whether an action in the tab opened another program."""
        return any(action.external_url for action in self._tab(page).actions)

    def set_pressed_button(self, page: Page, button: str) -> str:
        """Set the mouse button that is down (empty for none) and return the previous one."""
        tab = self._tab(page)
        before, tab.held = tab.held, button
        return before

    def network_quiet(self, page: Page) -> tuple[float, list[str]]:
        """Seconds without a pending request, and the URLs of pending ones."""
        tab, now = self._tab(page), page.link.loop.time()
        ends = [(flight.url, flight.ends(now)) for flight in tab.pending.values()]
        pending = [url for url, end in ends if end is None]
        last = max([tab.moved, *(end for _, end in ends if end is not None)])
        return (0.0 if pending else now - last), pending

    def responses(self, page: Page) -> list[Response]:
        """The responses since the last action in the tab began."""
        tab = self._tab(page)
        return [response for response in tab.responses if response.at >= tab.acted]

    async def wait_network_event(self, page: Page, limit: float) -> None:
        """Wait until a request starts, is answered or ends, at most `limit` seconds."""
        tab = self._tab(page)
        tab.news.clear()
        try:
            async with asyncio.timeout(limit):
                await tab.news.wait()
        except TimeoutError:
            return

    def _on_event(self, link: ExtensionLink, chrome_id: int, method: str, params: Params, child: str | None) -> None:
        tab = self._tabs.get((link, chrome_id))
        if method == "detached":
            if tab is not None and tab.actions:
                tab.awake = False
                tab.pending.clear()
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
        for action in tab.actions:
            action.handle_event(method, params, child)

    def _request(self, tab: _Tab, now: float, method: str, params: Params, child: str | None) -> None:
        key = (child, str(params.get("requestId"))[:200])
        if method != "Network.requestWillBeSent" and key not in tab.pending:
            # Another process may report the rest, once the document or worker lives there.
            key = next((known for known in tab.pending if known[1] == key[1]), key)
        if method == "Network.requestWillBeSent":
            request = params.get("request")
            url = str(request.get("url"))[:2000] if isinstance(request, dict) else ""
            verb = str(request.get("method"))[:20] if isinstance(request, dict) else ""
            if params.get("type") in _OPEN_ENDED or url[:5] == "data:" or len(tab.pending) >= _MOST:
                return
            tab.pending[key] = _PendingRequest(url, verb, str(params.get("loaderId")), now)
        elif method == "Network.responseReceivedExtraInfo":
            # No further events follow for a shared worker.
            if (flight := tab.pending.get(key)) is not None:
                flight.answered = now
        elif method == "Network.responseReceived":
            response = params.get("response")
            if isinstance(response, dict):
                status, mime = response.get("status"), str(response.get("mimeType", ""))[:100]
                flight = tab.pending.get(key)
                verb = flight.method if flight is not None else "GET"
                if flight is not None:
                    flight.answered = now
                code = status if type(status) is int else 0
                tab.responses.append(Response(now, str(response.get("url"))[:2000], verb, code, mime))
        else:
            tab.pending.pop(key, None)
        tab.moved = now
        tab.news.set()

    @staticmethod
    def _gone(tab: _Tab, session: Any, now: float) -> None:
        """A frame in another process or a worker is gone with its requests; no events report their end."""
        left = [key for key in tab.pending if key[0] == session]
        for key in left:
            del tab.pending[key]
        if left:
            tab.moved = now
            tab.news.set()

    @staticmethod
    def _left(tab: _Tab, frame: Params, now: float) -> None:
        """The tab shows another document: requests of the previous one no longer count."""
        if not frame.get("parentId"):
            loader = str(frame.get("loaderId"))
            opening = tab.pending.get((None, loader))
            if not tab.actions:
                tab.acted = max(tab.acted, opening.begun if opening is not None else now)
            tab.pending = {key: flight for key, flight in tab.pending.items() if flight.loader == loader}

    def _tabs_changed(self, change: Change) -> None:
        for tab in (*change.tabs.opened, *change.tabs.changed):
            for (link, chrome_id), known in self._tabs.items():
                for action in known.actions if link.browser_id == tab.browser_id else ():
                    if tab in change.tabs.opened:
                        action.unclaimed_tabs.add(tab.tab_id)
                    if chrome_id == tab.opener_chrome_id and tab.tab_id in action.unclaimed_tabs:
                        action.unclaimed_tabs.discard(tab.tab_id)
                        action.tab_opened(tab.tab_id)

    def _tab_ended(self, key: TabKey) -> None:
        # A running action removes its own tab when it ends.
        self._tabs[key].gone = True
        if not self._tabs[key].actions:
            del self._tabs[key]
