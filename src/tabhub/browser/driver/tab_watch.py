"""Watching the tabs in use: dialogs that block the page, child sessions, and CDP events for subscribers.

Owns what the driver knows of a tab between calls, and which CDP events a tab sends. Watching starts with the first
command to a tab, sent ahead of it without waiting, so it costs no round trip. It ends when the tab is idle, because the
debugger stays attached as long as events are requested. A part that needs events (console, network) calls `subscribe`
once, before any tab is in use.
"""

from __future__ import annotations

from asyncio import Future, wait
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tabhub.browser.driver.worlds import TabWorlds
from tabhub.browser.secrets.field_reads import AHEAD, learn_ahead
from tabhub.core.origins import origin_of
from tabhub.errors import DialogOpen
from tabhub.links.browsers import Browsers, EventListener, TabKey
from tabhub.trust.value_mask import FieldMask
from tabhub.trust.visibility import View

EVENTS = (
    "Page.javascriptDialogOpening",
    "Page.javascriptDialogClosed",
    "Target.attachedToTarget",
    "Target.detachedFromTarget",
    "Page.frameNavigated",
    "Page.frameDetached",
)
TOP = ""
"""The key of the tab's own document in `TabState.frame_urls`."""
Command = tuple[str, Mapping[str, Any]]
_MAX_CHILDREN = 500
_MAX_FRAMES = 1_000
_MAX_URL = 8192
_BLOCKED = "blocked"
_MAX_WORLDS = 2_000
_WATCHED_KINDS = ("iframe", "worker")
"""Kinds of children that are watched; a shared worker does not belong to the tab."""
_CONFIRM_TIMEOUT = 3.0
"""Seconds to wait for the browser to confirm that a tab is watched."""


@dataclass(frozen=True, slots=True)
class Dialog:
    """An open alert, confirm, prompt or beforeunload."""

    kind: str
    message: str
    default: str = ""
    """The default text of a prompt."""
    url: str = ""
    """The URL of the page or frame that opened it."""
    frame_id: str = ""
    """Its frame, where the browser names it."""


@dataclass(frozen=True, slots=True)
class EventSubscription:
    """Events to receive from every tab in use, and the commands that make a target send them."""

    events: tuple[str, ...]
    """Names, or `Domain.` for all of a domain."""
    enable: tuple[Command, ...] = ()
    frames: bool = False
    """Whether frames in other processes and the page's workers are included."""
    disable: tuple[str, ...] = ()
    """Commands sent when watching ends, so that the next `enable` replays what was missed."""


@dataclass(slots=True, eq=False)
class TabState:
    """What the driver knows of one tab between calls."""

    key: TabKey
    tab_id: int
    worlds: TabWorlds
    watched: bool = False
    used: float = 0.0
    """When it was last used, in loop time."""
    starting: set[Future[Any]] = field(default_factory=set)
    """All done when the browser sends events."""
    dialog: Dialog | None = None
    """The dialog that blocks the page."""
    children: dict[str, str] = field(default_factory=dict)
    """The kinds (iframe, worker, ...) of frames in other processes and workers, by the id of their CDP session."""
    remote_frames: dict[str, dict[str, str]] = field(default_factory=dict)
    """Frames in other processes as the browser announced them (id, url, parentId), by the id of their CDP session."""
    frame_urls: dict[str, str] = field(default_factory=dict)
    """The URLs of the frames that navigated while the tab was watched, by id, and that of its own document."""
    view: View | None = None
    """What the agent that uses the tab may show, if it is kept off some sites."""
    requests_blocked: Mapping[str, Any] | None = None
    """The parameters of Network.setBlockedURLs that keep the requests of the page off those sites."""
    holds: set[str] = field(default_factory=set)
    """Reasons to keep watching the tab while it is idle."""
    fields: FieldMask = field(default_factory=FieldMask)
    """What its secret fields hold, to be masked in results."""
    child_commands: dict[str, tuple[Command, ...]] = field(default_factory=dict)
    """Commands for new frames in other processes and new workers, sent before they run; by reason."""

    def stop_watching(self) -> None:
        self.watched = False
        self.children = {}
        self.remote_frames = {}
        self.frame_urls = {}
        self.starting = set()


class TabWatch:
    """All tabs in use."""

    def __init__(self, browsers: Browsers) -> None:
        self._browsers = browsers
        self.tabs: dict[TabKey, TabState] = {}
        self._worlds: OrderedDict[int, TabWorlds] = OrderedDict()
        """By the hub's tab id: they outlast the link."""
        self._subscriptions: list[tuple[EventSubscription, EventListener]] = []
        browsers.on_event(self._handle_event)
        browsers.drop_with_tab(self.tabs)

    def tab(self, key: TabKey) -> TabState:
        """What is known of a tab; starts empty."""
        state = self.tabs.get(key)
        if state is None:
            tab = self._browsers.book.find(key[0].browser_id, key[1])
            tab_id = tab.tab_id if tab else key[1]
            worlds = self._worlds.setdefault(tab_id, TabWorlds())
            self._worlds.move_to_end(tab_id)
            if len(self._worlds) > _MAX_WORLDS:
                self._worlds.popitem(last=False)
            state = self.tabs[key] = TabState(key, tab_id, worlds)
        return state

    def subscribe(self, interest: EventSubscription, listener: EventListener) -> None:
        """Call `listener` for these events of every tab in use, and for `detached`, the end of watching."""
        self._subscriptions.append((interest, listener))

    def hold(self, key: TabKey, why: str) -> None:
        """Keep watching a tab while it is idle, until `release` with the same reason."""
        self.tab(key).holds.add(why)

    def release(self, key: TabKey, why: str) -> None:
        if (state := self.tabs.get(key)) is not None:
            state.holds.discard(why)

    def children(self, key: TabKey) -> Mapping[str, str]:
        """The kinds of a tab's child sessions, by id."""
        state = self.tabs.get(key)
        return state.children if state is not None else {}

    def set_child_commands(self, key: TabKey, why: str, commands: tuple[Command, ...]) -> None:
        """Send these commands to new frames in other processes and new workers before they run; () ends it."""
        state = self.tab(key) if commands else self.tabs.get(key)
        if state is not None and state.child_commands.get(why, ()) != commands:
            state.child_commands[why] = commands
            if state.watched:
                self._subscribe(state)

    def block_requests(self, state: TabState, view: View | None) -> None:
        """Keep the requests of a tab's page, frames and workers off the sites that a view hides, or no longer."""
        state.view = view
        blocked = view.requests if view is not None else None
        if state.requests_blocked == blocked:
            return
        state.requests_blocked = blocked
        self.set_child_commands(state.key, _BLOCKED, _blocking(blocked) if blocked is not None else ())
        if state.watched:
            for child in (None, *(each for each, kind in state.children.items() if kind in _WATCHED_KINDS)):
                self._block(state, child)

    async def wait_watching(self, key: TabKey) -> None:
        """Start watching a tab and wait until the browser confirms it; a tab that cannot be watched is not an error.

        A page that navigates before confirming loses the subscription, and the first events of the next page with it.
        """
        state = self.tab(key)
        if not state.watched:
            self.start(state)
        state.used = key[0].loop.time()
        if state.starting:
            await wait(state.starting, timeout=_CONFIRM_TIMEOUT)
            state.starting.clear()

    def start(self, state: TabState) -> None:
        """Start watching a tab."""
        loop = state.key[0].loop
        state.watched, state.used = True, loop.time()
        sent = [
            self._subscribe(state),
            self._send(state, "forwardCDPCommand", {"method": "Page.enable"}),
            *self._enable(state, None),
            *(self._block(state, None) if state.requests_blocked is not None else ()),
        ]
        state.starting = {future for future in sent if future is not None}
        loop.call_later(self._idle, self._end_if_idle, state)

    def _subscribe(self, state: TabState) -> Future[Any] | None:
        wanted = dict.fromkeys((*EVENTS, *(name for interest, _ in self._subscriptions for name in interest.events)))
        of_children = [*self._enabling(frames=True), *(each for some in state.child_commands.values() for each in some)]
        first = [{"method": method, "params": dict(params)} for method, params in of_children]
        return self._send(state, "subscribeCDPEvents", {"events": list(wanted), "children": first})

    @property
    def _idle(self) -> float:
        return self._browsers.limits.debugger_idle / 2

    def _enable(self, state: TabState, child: str | None) -> list[Future[Any] | None]:
        """Make a target send the subscribed events."""
        return [
            self._send(state, "forwardCDPCommand", {"method": method, "params": dict(params)}, child)
            for method, params in self._enabling(frames=child is not None)
        ]

    def _block(self, state: TabState, child: str | None) -> list[Future[Any] | None]:
        return [
            self._send(state, "forwardCDPCommand", {"method": method, "params": dict(params)}, child)
            for method, params in _blocking(state.requests_blocked)
        ]

    def _enabling(self, *, frames: bool) -> list[Command]:
        """The enable commands of all subscriptions, each once, for a tab or for its frames and workers."""
        commands: dict[str, Mapping[str, Any]] = {}
        for interest, _ in self._subscriptions:
            for method, params in interest.enable if interest.frames or not frames else ():
                commands.setdefault(method, params)
        return list(commands.items())

    def _send(
        self, state: TabState, method: str, params: dict[str, Any], child: str | None = None
    ) -> Future[Any] | None:
        def done(future: Future[Any]) -> None:
            # The next command to a tab that cannot be watched fails for the same reason and reports it. A child may
            # be gone, or lack the domain.
            if not future.cancelled() and future.exception() is not None and child is None:
                state.stop_watching()

        link, chrome_id = state.key
        if link.closed is not None:
            return None
        there = {} if child is None else {"sessionId": child}
        sent = link.request(method, {"tabId": chrome_id, **params, **there})
        sent.add_done_callback(done)
        return sent

    def _end_if_idle(self, state: TabState) -> None:
        link, chrome_id = state.key
        if not state.watched or self.tabs.get(state.key) is not state:
            return
        remaining = state.used + self._idle - link.loop.time()
        if remaining > 0 or state.dialog is not None or state.holds or link.busy(chrome_id):
            link.loop.call_later(max(remaining, 1.0), self._end_if_idle, state)
            return
        children = list(state.children)
        state.stop_watching()
        self._notify(state.key, "detached", {"reason": "idle"}, None)
        for interest, _ in self._subscriptions:
            for method in interest.disable:
                for child in (None, *children) if interest.frames else (None,):
                    self._send(state, "forwardCDPCommand", {"method": method}, child)
        self._send(state, "subscribeCDPEvents", {"events": []})

    def _handle_event(self, key: TabKey, method: str, params: dict[str, Any], child: str | None) -> None:
        state = self.tabs.get(key)
        if method == "Page.javascriptDialogOpening":
            self._dialog_opened(self.tab(key), params)
        elif state is None:
            pass
        elif method == "Page.javascriptDialogClosed":
            state.dialog = None
        elif method == "Target.attachedToTarget":
            self._child_attached(state, params)
        elif method == "Target.detachedFromTarget":
            state.children.pop(str(params.get("sessionId")), None)
            state.remote_frames.pop(str(params.get("sessionId")), None)
        elif method == "Page.frameNavigated":
            _frame_navigated(state, params, child)
        elif method == AHEAD:
            learn_ahead(params, state.fields)
        elif method == "Page.frameDetached":
            state.frame_urls.pop(str(params.get("frameId")), None)
        elif method == "detached":
            state.dialog = None
            state.stop_watching()
        self._notify(key, method, params, child)

    def _notify(self, key: TabKey, method: str, params: dict[str, Any], child: str | None) -> None:
        domain = method.partition(".")[0] + "."
        for interest, listener in self._subscriptions:
            if method in interest.events or domain in interest.events or method == "detached":
                listener(key, method, params, child)

    def _dialog_opened(self, state: TabState, params: dict[str, Any]) -> None:
        kind, message, default = (str(params.get(name, ""))[:500] for name in ("type", "message", "defaultPrompt"))
        frame_id, url = str(params.get("frameId", "")), str(params.get("url", ""))[:_MAX_URL]
        if origin_of(url) is None:
            url = state.frame_urls.get(frame_id, url)
        state.dialog = dialog = Dialog(kind[:20], message, default, url, frame_id)
        link, chrome_id = state.key
        link.fail_tab(
            chrome_id, lambda: DialogOpen(state.tab_id, dialog.kind, dialog.message, sent=True), spare="closeTab"
        )

    def _child_attached(self, state: TabState, params: dict[str, Any]) -> None:
        session_id, info = params.get("sessionId"), params.get("targetInfo")
        if not state.watched or type(session_id) is not str or not isinstance(info, dict):
            return
        if session_id in state.children or len(state.children) >= _MAX_CHILDREN:
            return
        kind = str(info.get("type"))[:100]
        state.children[session_id] = kind
        names = {"id": "targetId", "url": "url", "parentId": "parentFrameId"}
        state.remote_frames[session_id] = {name: str(info.get(given, ""))[:_MAX_URL] for name, given in names.items()}
        # The extension already configured children that waited for the debugger.
        if kind in _WATCHED_KINDS and params.get("waitingForDebugger") is not True:
            self._enable(state, session_id)
            if state.requests_blocked is not None:
                self._block(state, session_id)


def _frame_navigated(state: TabState, params: dict[str, Any], child: str | None) -> None:
    frame = params.get("frame")
    if not isinstance(frame, dict):
        return
    is_top = child is None and not frame.get("parentId")
    if isinstance(frame_id := frame.get("id"), str):
        state.worlds.navigated((child, frame_id), main=is_top)
    if is_top:
        state.frame_urls.clear()  # its frames are gone with its document
    url = str(frame.get("url", ""))
    if url.startswith("about:"):  # the document has the origin of the one that made it
        url = str(frame.get("securityOrigin", ""))
    key = TOP if is_top else str(frame.get("id"))
    if key in state.frame_urls and origin_of(url) is None:
        return  # what a page makes for its own frame is still its own
    if len(state.frame_urls) < _MAX_FRAMES:
        state.frame_urls[key] = url[:_MAX_URL]


def _blocking(blocked: Mapping[str, Any] | None) -> tuple[Command, ...]:
    return (("Network.setBlockedURLs", blocked or {"urls": [], "urlPatterns": []}),)
