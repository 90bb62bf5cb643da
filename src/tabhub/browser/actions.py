"""Actions in a tab and what they cause: navigations, new tabs, dialogs, downloads.

Owns tracking a running action by events alone, the fields that every acting tool returns, which ways of losing the page
count as a result rather than a failure. Records for agents to read are kept in
`record/`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar
from urllib.parse import urlsplit

from tabhub.browser import page_problems
from tabhub.browser.awake_tabs import AwakeTabs
from tabhub.browser.driver.cdp_values import parse_object
from tabhub.browser.driver.frames import Frame
from tabhub.browser.driver.page import Page, ignore_failure
from tabhub.browser.driver.tab_watch import EventSubscription, TabWatch
from tabhub.browser.files.downloads import Downloads
from tabhub.browser.files.hidden_downloads import DELETED, NOT_DELETED, HiddenDownloads
from tabhub.browser.page_problems import PageProblems
from tabhub.browser.pending_requests import PendingRequests
from tabhub.browser.reactions import Reaction
from tabhub.browser.record.traffic import ENABLE
from tabhub.errors import CommandFailed, DialogOpen, PageNavigated, TabFailed
from tabhub.links.browsers import Browsers, Change, TabKey

OUTPUT: dict[str, Any] = {"did": "string"}
"""Only the field that is always present is declared, to keep the tool list short; the others explain themselves
(navigated, opened, dialog, downloads, closed, problems, note)."""
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
    "Page.downloadProgress",
    "Page.fileChooserOpened",
    "Input.dragIntercepted",
    "Network.requestWillBeSent",
    "Network.responseReceived",
    "Network.responseReceivedExtraInfo",
    "Network.loadingFinished",
    "Network.loadingFailed",
    "Target.detachedFromTarget",
    *page_problems.EVENTS,
)
_REQUEST_ENDS = ("Network.responseReceived", "Network.loadingFailed")
CHOOSER = "Page.setInterceptFileChooserDialog"
_NAVIGATION_STARTS = ("Page.frameRequestedNavigation", "Page.frameStartedNavigating")
_PAGE_SCHEMES = (
    *("http", "https", "file", "filesystem", "data", "blob", "about", "javascript"),
    *("view-source", "chrome", "chrome-extension", "chrome-error", "devtools"),
)
"""URL schemes that a tab can show."""
_ON_BLOCKED_SITE = (
    "The tab is now on a site that the person keeps agents off: nothing of it can be read or used. Leave it with "
    "browser_go_back or browser_navigate_tab."
)
_STILL_LOADING = "The new page is still loading."
_LAST_REPLY = 0.1
"""Seconds to wait for the reply to a command sent before a navigation began."""
_DOWNLOAD_GRACE = 0.5
"""Seconds that the beginning of a download may be reported after its navigation ended."""
_PROBE_GRACE = 0.002
"""Seconds that a probe's reply may arrive after the work it was sent with."""
Params = dict[str, Any]
T = TypeVar("T")


def _external_url(url: Any) -> str | None:
    """The URL if another program handles it, such as mailto: and tel:."""
    scheme, colon, _ = str(url).partition(":")
    return str(url)[:300] if colon and scheme.lower() not in _PAGE_SCHEMES else None


@dataclass(slots=True, eq=False)
class TrackedAction:
    """A running action and what it has caused so far."""

    page: Page
    concurrent: list[TrackedAction]
    """All actions that run in the tab."""
    report_closed: Callable[[], int | None] = lambda: None
    """Called if the tab has closed; returns the tab that the session continues in."""
    problems: PageProblems = field(default_factory=PageProblems)
    """What went wrong in the tab since the last answer."""
    navigating: set[str] = field(default_factory=set)
    """Frames that are navigating."""
    url: str | None = None
    """The URL that the tab navigated to."""
    loading: bool = False
    external_url: str | None = None
    """A URL that another program handles: the page stays, but the debugger is detached."""
    opening: int = 0
    opened: list[int] = field(default_factory=list)
    unclaimed_tabs: set[int] = field(default_factory=set)
    """Tabs opened in the same browser during the action; their opener may be reported later."""
    unfinished: bool = False
    """Whether a navigation ended without a page, as where it leads to a file."""
    downloading: bool = False
    """Whether a download is expected to begin."""
    downloads: dict[str, bool] = field(default_factory=dict)
    """Whether each download that began has ended, by its id."""
    discarded: asyncio.Task[bool | None] | None = None
    """Deletes a download of a site that the agent is kept off."""
    chooser: Params | None = None
    drag: Params | None = None
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def handle_event(self, method: str, params: Params, child: str | None) -> None:
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
            self.unfinished = self.unfinished or frame_id in self.navigating
            self.navigating.discard(frame_id)
        elif method in ("Page.domContentEventFired", "Page.loadEventFired"):
            self.loading = self.loading and child is not None
        elif method == "Page.windowOpen":
            self.opening += 1
        elif method == "Page.downloadWillBegin":
            self.downloading = False
            self.downloads[str(params.get("guid"))] = False
        elif method == "Page.downloadProgress" and params.get("guid") in self.downloads:
            self.downloads[str(params.get("guid"))] = params.get("state") != "inProgress"
        elif method == "Page.fileChooserOpened":
            self.chooser = params
        elif method == "Input.dragIntercepted":
            self.drag = parse_object(params.get("data"))
        elif method not in _REQUEST_ENDS:
            return
        self._changed.set()

    def tab_opened(self, tab_id: int) -> None:
        self.opened.append(tab_id)
        self._changed.set()

    @property
    def unsettled(self) -> bool:
        """Whether something that the action started has not finished."""
        downloads = self.downloading or not all(self.downloads.values())
        return bool(self.navigating) or self.loading or downloads or self.opening > len(self.opened)

    @property
    def page_left(self) -> bool:
        """Whether the page navigated, is about to, or is blocked by a dialog."""
        return self.unsettled or self.url is not None or self.page.dialog is not None

    async def tolerate_navigation(self, work: Awaitable[T], frame: Frame | None = None) -> T | None:
        """Await part of the action; None if the page reacted with a dialog, by navigating or by closing its tab.

        Work in a `frame` may also end with that frame.
        """
        try:
            return await work
        except DialogOpen as error:
            if error.outcome == "not_sent":
                raise
        except PageNavigated:
            return None
        except TabFailed:
            opened_external = any(action.external_url for action in self.concurrent)
            if self.page.browsers.book.get(self.page.tab_id) is not None and not opened_external:
                raise
        except CommandFailed:
            if frame is None or frame.parent is None:
                raise
        return None

    async def unless_navigating(self, work: Coroutine[Any, Any, T]) -> T | None:
        """The result of a page command after the action; None once the page is navigating or a dialog has opened.

        While it navigates, the browser holds commands back until the next page has arrived, however slow its site is.
        """
        replying = asyncio.ensure_future(work)
        leaving = asyncio.ensure_future(self.wait_until(lambda: bool(self.navigating), None))
        try:
            await asyncio.wait((replying, leaving), return_when=asyncio.FIRST_COMPLETED)
            if not replying.done():
                await asyncio.wait((replying,), timeout=_LAST_REPLY)  # it may have run in time
            return replying.result() if replying.done() else None
        except DialogOpen:  # also one that opened just before the command was to be sent
            return None
        finally:
            replying.cancel()
            leaving.cancel()

    async def round_trip(self, expression: str = "0") -> Any:
        """Evaluate an expression; the page first reports what the action caused. None if it leaves or has a dialog."""
        if self.page.dialog is not None or self.unsettled:
            return None
        query = {"expression": expression, "returnByValue": True}
        return await self.unless_navigating(self.tolerate_navigation(self.page.cdp("Runtime.evaluate", query)))

    async def unsent_form_note(self, frame: Frame) -> str | None:
        """Wait until the page handled the action, so that navigation is known; a note if it did not submit a form."""
        if self.page_left:
            return None
        work = self.tolerate_navigation(frame.evaluate("form_submitted", {}), frame)
        problem = await self.unless_navigating(work)
        return f"The form was not submitted. The browser reports: {problem}" if isinstance(problem, str) else None

    async def wait_until(self, reached: Any, limit: float | None) -> bool:
        """Wait for events until `reached`; False on timeout."""
        try:
            async with asyncio.timeout(limit):
                while not reached():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return False
        return True

    def _visible_opened(self) -> list[int]:
        """The tabs that were opened; those on sites that the agent is kept off are counted."""
        book = self.page.browsers.book

        def is_hidden(tab_id: int) -> bool:
            tab = book.get(tab_id)
            return tab is not None and self.page.view.hides(tab.site)

        return self.page.view.keep(self.opened, is_hidden, lambda tab_id: ("tab", tab_id))

    async def result(
        self, did: str, *, note: str | None = None, before: Any = None, now: Any = None, **more: Any
    ) -> dict[str, Any]:
        """What the tool reports, once what the action started has finished or a limited time has passed.

        `before` and `now` are the page's URLs around it, where they are known.
        """
        page = self.page
        if page.dialog is None and self.unsettled:
            await self.wait_until(lambda: not self.unsettled, page.browsers.limits.action_settle)
        if page.dialog is None and self.problems.awaited:
            await self.wait_until(lambda: not self.problems.awaited, page.browsers.limits.action_responses)
        facts: dict[str, Any] = {"tabId": page.tab_id, "did": did}
        facts |= {name: value for name, value in more.items() if value is not None}
        notes = [note] if note else []
        if page.view.active and (page.is_hidden or page.view.hides(self.url)):
            notes.append(_ON_BLOCKED_SITE)
            now = before
        elif self.url is not None:
            facts["navigated"] = self.url
            if self.loading:
                notes.append(_STILL_LOADING)
        elif self.navigating:
            notes.append("The tab is navigating to another page.")
        elif isinstance(before, str) and isinstance(now, str) and before != now:
            facts["navigated"] = now
        if problems := self.problems.pop(page.view):
            facts["problems"] = problems
        if elsewhere := page.elsewhere_note():
            notes.append(elsewhere)
        if self.external_url is not None:
            notes.append(
                f"It leads to {self.external_url}, which the browser opens in another program; the page stays."
            )
        if self.chooser is not None:
            notes.append("The page asked for a file; no file chooser was opened. Use browser_upload_file.")
        if self.opened and (opened := self._visible_opened()):
            facts["opened"] = opened
        if self.unfinished and page.view.active:  # what it leads to must be judged
            await self.wait_until(lambda: bool(self.downloads), _DOWNLOAD_GRACE)
        deleted = await self.discarded if self.discarded is not None else None
        if deleted is not None:
            notes.append(DELETED if deleted else NOT_DELETED)
        is_closed = page.browsers.book.get(page.tab_id) is None
        if (dialog := page.dialog) and not is_closed:
            facts["dialog"] = {"type": dialog.kind, "message": dialog.message}
            if dialog.kind == "prompt":
                facts["dialog"]["default"] = dialog.default
            notes.append("The page waits for an answer to the dialog: use browser_handle_dialog.")
        if is_closed:
            facts["closed"] = True
            notes = [note for note in notes if note != _STILL_LOADING]
            notes.append(f"Tab {page.tab_id} has closed.")
            if (returned := self.report_closed()) is not None:
                facts["continuesIn"] = returned
                notes.append(f"You are in tab {returned} again, which opened it.")
        return {**facts, "note": " ".join(notes)} if notes else facts


async def run_and_probe(work: Awaitable[Any], probe: Coroutine[Any, Any, T]) -> T | None:
    """Await part of an action and return the reply to a probe sent together with it, which saves a round trip.

    None if there is no reply: a page that stops the propagation of events does not reply by itself, and if the probe
    failed, the action itself or asking again reports why.
    """
    probing = asyncio.ensure_future(probe)
    try:
        await work
        await asyncio.wait((probing,), timeout=_PROBE_GRACE)
        return probing.result() if probing.done() and probing.exception() is None else None
    finally:
        if not probing.done():
            probing.add_done_callback(ignore_failure)


@dataclass(slots=True)
class _Tab:
    requests: PendingRequests
    problems: PageProblems = field(default_factory=PageProblems)
    ended: bool = False
    reaction: Reaction | None = None
    """The page's reaction to the last action."""
    actions: list[TrackedAction] = field(default_factory=list)
    pressed_button: str = ""


class Activity:
    """The activity of all tabs in use."""

    def __init__(
        self,
        browsers: Browsers,
        watch: TabWatch,
        awake: AwakeTabs,
        downloads: Downloads,
        hidden: HiddenDownloads,
        report_closed: Callable[[Any, int], int | None],
    ) -> None:
        """`report_closed`: called when an answer reports that a session's tab has closed; returns its tab now."""
        self._tabs: dict[TabKey, _Tab] = {}
        self._browsers = browsers
        self._watch = watch
        self._awake = awake
        self._downloads = downloads
        self._hidden = hidden
        self._report_closed = report_closed
        browsers.on_change(self._tabs_changed, "opened", "changed")
        browsers.drop_with_tab(self._tabs, self._tab_ended)
        watch.subscribe(EventSubscription(_EVENTS, (ENABLE, ("Page.enable", {})), frames=True), self._on_event)

    def _tab(self, key: TabKey) -> _Tab:
        tab = self._tabs.get(key)
        if tab is None:
            tab = self._tabs[key] = _Tab(PendingRequests(key[0].loop.time()))
        return tab

    @contextmanager
    def track_action(self, page: Page) -> Iterator[TrackedAction]:
        """Attribute what happens in the tab from here on to an action."""
        tab = self._tab(page.key)
        report_closed = partial(self._report_closed, page.session, page.tab_id)
        action = TrackedAction(page, tab.actions, report_closed, tab.problems)
        tab.actions.append(action)
        tab.requests.acted = page.link.loop.time()
        with self._awake.awake(page):
            if page.tab.active:
                # A file chooser would block the page until the person answers it.
                page.cdp_nowait(CHOOSER, {"enabled": True, "cancel": True})
            try:
                yield action
            finally:
                tab.actions.remove(action)
                state = page.watch.tabs.get(page.key)
                if state is not None and state.dialog is None and not action.navigating:
                    tab.reaction = Reaction(state, page.browsers.limits.page_settle)
                if page.tab.active and not tab.actions:
                    page.cdp_nowait(CHOOSER, {"enabled": False})
                if tab.ended and not tab.actions:
                    self._tabs.pop(page.key, None)

    def is_reacting(self, key: TabKey) -> bool:
        """Whether the page may still react to the last action in the tab."""
        tab = self._tabs.get(key)
        return tab is not None and tab.reaction is not None

    async def settled(self, key: TabKey) -> None:
        """Wait until the page has reacted to the last action in the tab, for a limited time."""
        tab = self._tabs.get(key)
        if tab is not None and (reaction := tab.reaction) is not None and not tab.actions:
            await reaction.settled(tab.requests)
            if tab.reaction is reaction:
                tab.reaction = None

    def set_pressed_button(self, page: Page, button: str) -> str:
        """Set the mouse button that is down (empty for none) and return the previous one."""
        tab = self._tab(page.key)
        before, tab.pressed_button = tab.pressed_button, button
        return before

    def requests(self, page: Page) -> PendingRequests:
        return self._tab(page.key).requests

    def is_requesting(self, key: TabKey) -> bool:
        """Whether the page waits for a response, as far as is known."""
        tab = self._tabs.get(key)
        return tab is not None and tab.requests.quiet(key[0].loop.time())[0] == 0.0

    def _on_event(self, key: TabKey, method: str, params: Params, child: str | None) -> None:
        tab = self._tab(key)
        if method == "detached":
            tab.requests.pending.clear()
            tab.problems.forget_requests()
            if not tab.actions:
                del self._tabs[key]
            return
        tab.requests.handle_event(key[0].loop.time(), method, params, child, acting=bool(tab.actions))
        self._note_problems(key, method, params, child)
        for action in tab.actions:
            action.handle_event(method, params, child)
        if method == "Page.downloadWillBegin":
            self._download_began(key, tab.actions, params)

    def _download_began(self, key: TabKey, actions: list[TrackedAction], params: Params) -> None:
        discarded = self._hidden.begun(key, params, acting=bool(actions))
        if discarded is not None:
            self._downloads.judge(str(params.get("guid")), discarded)
            for action in actions:
                action.discarded = discarded

    def _note_problems(self, key: TabKey, method: str, params: Params, child: str | None) -> None:
        tab, state = self._tabs[key], self._watch.tabs.get(key)
        if method in page_problems.EVENTS and (state is None or not all(one.done() for one in state.starting)):
            return  # when watching begins, the browser repeats what the page has logged before
        known = self._browsers.book.find(key[0].browser_id, key[1])
        host = urlsplit(known.url).hostname if known is not None else None
        tab.problems.handle_event(method, params, child, host or "", acting=bool(tab.actions))

    def _tabs_changed(self, change: Change) -> None:
        for tab in (*change.tabs.opened, *change.tabs.changed):
            for (link, chrome_id), state in self._tabs.items():
                for action in state.actions if link.browser_id == tab.browser_id else ():
                    if tab in change.tabs.opened:
                        action.unclaimed_tabs.add(tab.tab_id)
                    if chrome_id == tab.opener_chrome_id and tab.tab_id in action.unclaimed_tabs:
                        action.unclaimed_tabs.discard(tab.tab_id)
                        action.tab_opened(tab.tab_id)

    def _tab_ended(self, key: TabKey) -> None:
        # A running action removes its own tab when it ends.
        tab = self._tabs[key]
        tab.ended = True
        if not tab.actions:
            del self._tabs[key]
