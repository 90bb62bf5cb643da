"""What the hub watches in a tab it debugs: dialogs that block the page, child sessions, and what the tools follow.

Owns which CDP events a tab in use sends, the picture of open dialogs and of the sessions of frames in other processes.
Watching starts with the first command to a tab, sent ahead of it without waiting, so it costs no round trip; it ends
when the tab is not used, because a browser that is asked for events never lets go of the tab. Whoever needs events of
its own (console, network) says so once, by `follow`, before any tab is in use.
"""

from __future__ import annotations

from asyncio import Future, wait
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tabhub.errors import DialogOpen
from tabhub.links.browsers import Browsers, Change
from tabhub.links.extension import ExtensionLink

EVENTS = (
    "Page.javascriptDialogOpening",
    "Page.javascriptDialogClosed",
    "Target.attachedToTarget",
    "Target.detachedFromTarget",
)
_Key = tuple[ExtensionLink, int]
Command = tuple[str, Mapping[str, Any]]
_MOST_CHILDREN = 500
_ASKED = ("iframe", "worker")
"""Children that are asked for events; a worker that is shared is not the tab's."""
_BEGIN = 3.0
"""Seconds a tab may take to be watched before nobody waits for it any more."""


@dataclass(frozen=True, slots=True)
class Dialog:
    """An open alert, confirm, prompt or beforeunload."""

    kind: str
    message: str
    default: str = ""
    """What a prompt has in its field."""


@dataclass(frozen=True, slots=True)
class ChildSession:
    """A frame in another process, or a worker, with a session of its own."""

    session_id: str
    target_id: str
    kind: str
    """iframe, worker, service_worker and the like."""
    url: str
    parent: str | None
    """The session it belongs to; None is the tab itself."""


@dataclass(frozen=True, slots=True)
class EventSubscription:
    """Events somebody follows in every tab in use, and the commands that make a target send them."""

    events: tuple[str, ...]
    """Names, or `Domain.` for all of a domain."""
    enable: tuple[Command, ...] = ()
    frames: bool = False
    """Whether frames in other processes, and the page's workers, are asked as well."""
    disable: tuple[str, ...] = ()
    """Commands sent when the watching ends, so that the next `enable` tells what was missed."""


EventListener = Callable[[ExtensionLink, int, str, dict[str, Any], str | None], None]
"""Takes the link, the browser's own tab id, the event, its params and the child session it comes from."""


@dataclass(slots=True)
class _Watched:
    """A tab in use."""

    used: float
    begun: set[Future[Any]] = field(default_factory=set)
    """All done when the browser sends events."""
    children: dict[str, ChildSession] = field(default_factory=dict)


class TabWatch:
    """All tabs in use."""

    def __init__(self, browsers: Browsers) -> None:
        self._browsers = browsers
        self._watched: dict[_Key, _Watched] = {}
        self._dialogs: dict[_Key, Dialog] = {}
        self._held: dict[_Key, set[str]] = {}
        self._first: dict[_Key, dict[str, tuple[Command, ...]]] = {}
        self._followed: list[tuple[EventSubscription, EventListener]] = []
        browsers.on_event(self._event)
        browsers.on_change(self._change)

    def subscribe(self, interest: EventSubscription, heard: EventListener) -> None:
        """From now on, tell `heard` of these events of every tab in use (and of `detached`, the end of watching)."""
        self._followed.append((interest, heard))

    def open_dialog(self, link: ExtensionLink, chrome_id: int) -> Dialog | None:
        """The dialog that is open in a tab."""
        return self._dialogs.get((link, chrome_id))

    def dialog_handled(self, link: ExtensionLink, chrome_id: int, dialog: Dialog | None) -> None:
        """A dialog was answered; the browser says so too, but maybe after the answer's own reply."""
        if dialog is not None and self._dialogs.get((link, chrome_id)) is dialog:
            del self._dialogs[link, chrome_id]

    def children(self, link: ExtensionLink, chrome_id: int) -> Mapping[str, ChildSession]:
        """The child sessions of a tab, by session id, in the order they came."""
        watched = self._watched.get((link, chrome_id))
        return watched.children if watched is not None else {}

    def hold(self, link: ExtensionLink, chrome_id: int, why: str) -> None:
        """Keep watching a tab though nobody uses it, until `let_go` with the same word."""
        self._held.setdefault((link, chrome_id), set()).add(why)

    def release(self, link: ExtensionLink, chrome_id: int, why: str) -> None:
        """End what `hold` began."""
        reasons = self._held.get((link, chrome_id))
        if reasons is not None:
            reasons.discard(why)
            if not reasons:
                del self._held[link, chrome_id]

    def set_child_commands(self, link: ExtensionLink, chrome_id: int, why: str, commands: tuple[Command, ...]) -> None:
        """Tell new frames in other processes, and new workers, this before they run; nothing ends it."""
        key = (link, chrome_id)
        told = self._first.get(key, {})
        if told.get(why, ()) == commands:
            return
        told = {name: those for name, those in {**told, why: commands}.items() if those}
        if told:
            self._first[key] = told
        else:
            del self._first[key]
        if key in self._watched:
            self._subscribe(key)

    def ensure_watching(self, link: ExtensionLink, chrome_id: int, tab_id: int) -> None:
        """Watch a tab from now on; a dialog that is open already is an error at once."""
        key = (link, chrome_id)
        if self._dialogs and key in self._dialogs:
            dialog = self._dialogs[key]
            raise DialogOpen(tab_id, dialog.kind, dialog.message, sent=False)
        watched = self._watched.get(key)
        if watched is not None:
            watched.used = link.loop.time()
            return
        self._begin(key)

    async def wait_watching(self, link: ExtensionLink, chrome_id: int) -> None:
        """Watch a tab from now on, and wait until the browser sends events; one that cannot be watched is no error.

        A page that is left before it has said that it does takes with it what it was told: the first things of the
        next one would be missed.
        """
        watched = self._watched.get((link, chrome_id)) or self._begin((link, chrome_id))
        watched.used = link.loop.time()
        if watched.begun:
            await wait(watched.begun, timeout=_BEGIN)
            watched.begun.clear()

    def _begin(self, key: _Key) -> _Watched:
        watched = self._watched[key] = _Watched(key[0].loop.time())
        sent = [
            self._subscribe(key),
            self._send(key, "forwardCDPCommand", {"method": "Page.enable"}),
            *self._enable(key, None),
        ]
        watched.begun = {future for future in sent if future is not None}
        self._look_again(key, self._idle)
        return watched

    def _subscribe(self, key: _Key) -> Future[Any] | None:
        wanted = dict.fromkeys((*EVENTS, *(name for interest, _ in self._followed for name in interest.events)))
        told = [*self._asked(frames=True), *(each for those in self._first.get(key, {}).values() for each in those)]
        first = [{"method": method, "params": dict(params)} for method, params in told]
        return self._send(key, "subscribeCDPEvents", {"events": list(wanted), "children": first})

    @property
    def _idle(self) -> float:
        return self._browsers.limits.debugger_idle / 2

    def _enable(self, key: _Key, child: str | None) -> list[Future[Any] | None]:
        """Make a target send what is followed."""
        there = {} if child is None else {"sessionId": child}
        return [
            self._send(key, "forwardCDPCommand", {"method": method, "params": dict(params), **there}, child)
            for method, params in self._asked(frames=child is not None)
        ]

    def _asked(self, *, frames: bool) -> list[Command]:
        """What makes a tab, or the frames and workers in it, send what is followed; each command once."""
        asked: dict[str, Mapping[str, Any]] = {}
        for interest, _ in self._followed:
            for method, params in interest.enable if interest.frames or not frames else ():
                asked.setdefault(method, params)
        return list(asked.items())

    def _disable(self, key: _Key, children: Mapping[str, ChildSession]) -> None:
        for interest, _ in self._followed:
            for method in interest.disable:
                self._send(key, "forwardCDPCommand", {"method": method})
                for child in children if interest.frames else ():
                    self._send(key, "forwardCDPCommand", {"method": method, "sessionId": child}, child)

    def _send(self, key: _Key, method: str, params: dict[str, Any], child: str | None = None) -> Future[Any] | None:
        def done(future: Future[Any]) -> None:
            # A tab that cannot be watched fails the command that follows for the same reason, and says so there; a
            # child may be gone again, or know no such domain.
            if not future.cancelled() and future.exception() is not None and child is None:
                self._watched.pop(key, None)

        link, chrome_id = key
        if link.closed is not None:
            return None
        sent = link.request(method, {"tabId": chrome_id, **params})
        sent.add_done_callback(done)
        return sent

    def _look_again(self, key: _Key, after: float) -> None:
        key[0].loop.call_later(after, self._end_if_idle, key)

    def _end_if_idle(self, key: _Key) -> None:
        link, chrome_id = key
        watched = self._watched.get(key)
        if watched is None or link.closed is not None:
            return
        left = watched.used + self._idle - link.loop.time()
        if left > 0 or key in self._dialogs or key in self._held or link.busy(chrome_id):
            self._look_again(key, max(left, 1.0))
            return
        del self._watched[key]
        self._tell(key, "detached", {"reason": "idle"}, None)
        self._disable(key, watched.children)
        self._send(key, "subscribeCDPEvents", {"events": []})

    def _event(
        self, link: ExtensionLink, chrome_id: int, method: str, params: dict[str, Any], child: str | None
    ) -> None:
        key = (link, chrome_id)
        if method == "Page.javascriptDialogOpening":
            self._dialog_opened(key, params)
        elif method == "Page.javascriptDialogClosed":
            self._dialogs.pop(key, None)
        elif method == "Target.attachedToTarget":
            self._attached(key, params, child)
        elif method == "Target.detachedFromTarget":
            watched = self._watched.get(key)
            if watched is not None:
                watched.children.pop(str(params.get("sessionId")), None)
        elif method == "detached":
            self._dialogs.pop(key, None)
            self._watched.pop(key, None)
        self._tell(key, method, params, child)

    def _tell(self, key: _Key, method: str, params: dict[str, Any], child: str | None) -> None:
        domain = method.partition(".")[0] + "."
        for interest, heard in self._followed:
            if method in interest.events or domain in interest.events or method == "detached":
                heard(key[0], key[1], method, params, child)

    def _dialog_opened(self, key: _Key, params: dict[str, Any]) -> None:
        link, chrome_id = key
        dialog = Dialog(
            str(params.get("type"))[:20],
            str(params.get("message", ""))[:500],
            str(params.get("defaultPrompt", ""))[:500],
        )
        tab = self._browsers.book.find(link.browser_id, chrome_id)
        tab_id = tab.tab_id if tab else chrome_id
        self._dialogs[key] = dialog
        link.fail_tab(chrome_id, lambda: DialogOpen(tab_id, dialog.kind, dialog.message, sent=True), spare="closeTab")

    def _attached(self, key: _Key, params: dict[str, Any], parent: str | None) -> None:
        watched, session_id, info = self._watched.get(key), params.get("sessionId"), params.get("targetInfo")
        if watched is None or type(session_id) is not str or not isinstance(info, dict):
            return
        if session_id in watched.children or len(watched.children) >= _MOST_CHILDREN:
            return
        target, kind, url = (str(info.get(name, ""))[:2000] for name in ("targetId", "type", "url"))
        watched.children[session_id] = ChildSession(session_id, target, kind, url, parent)
        # One that waited was told by the extension, which has what it is to be told.
        if kind in _ASKED and params.get("waitingForDebugger") is not True:
            self._enable(key, session_id)

    def _change(self, change: Change) -> None:
        if change.kind != "tabs":
            self._forget(lambda key: key[0].closed is not None)
        for tab in change.tabs.closed:
            here = (tab.browser_id, tab.chrome_id)
            self._forget(lambda key, here=here: (key[0].browser_id, key[1]) == here)  # type: ignore[misc]

    def _forget(self, which: Callable[[_Key], bool]) -> None:
        for key in [key for key in (*self._watched, *self._dialogs, *self._held, *self._first) if which(key)]:
            self._watched.pop(key, None)
            self._dialogs.pop(key, None)
            self._held.pop(key, None)
            self._first.pop(key, None)
