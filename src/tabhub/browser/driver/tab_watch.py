"""Watching the tabs in use: dialogs that block the page, child sessions, and CDP events for subscribers.

Owns which CDP events a tab sends, the open dialogs and the sessions of frames in other processes. Watching starts with
the first command to a tab, sent ahead of it without waiting, so it costs no round trip. It ends when the tab is idle,
because the debugger stays attached as long as events are requested. A part that needs events (console, network) calls
`subscribe` once, before any tab is in use.
"""

from __future__ import annotations

from asyncio import Future, wait
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tabhub.errors import DialogOpen
from tabhub.links.browsers import Browsers, TabKey
from tabhub.links.extension import ExtensionLink

EVENTS = (
    "Page.javascriptDialogOpening",
    "Page.javascriptDialogClosed",
    "Target.attachedToTarget",
    "Target.detachedFromTarget",
)
Command = tuple[str, Mapping[str, Any]]
_MOST_CHILDREN = 500
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
    """Events to receive from every tab in use, and the commands that make a target send them."""

    events: tuple[str, ...]
    """Names, or `Domain.` for all of a domain."""
    enable: tuple[Command, ...] = ()
    frames: bool = False
    """Whether frames in other processes and the page's workers are included."""
    disable: tuple[str, ...] = ()
    """Commands sent when watching ends, so that the next `enable` replays what was missed."""


EventListener = Callable[[ExtensionLink, int, str, dict[str, Any], str | None], None]
"""Called with the link, the browser's own tab id, the event, its params and the child session it comes from."""


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
        self._watched: dict[TabKey, _Watched] = {}
        self.dialogs: dict[TabKey, Dialog] = {}
        """Those that block their tabs."""
        self._held: dict[TabKey, set[str]] = {}
        self._child_commands: dict[TabKey, dict[str, tuple[Command, ...]]] = {}
        self._subscriptions: list[tuple[EventSubscription, EventListener]] = []
        browsers.on_event(self._event)
        for state in (self._watched, self.dialogs, self._held, self._child_commands):
            browsers.drop_with_tab(state)

    def subscribe(self, interest: EventSubscription, listener: EventListener) -> None:
        """Call `listener` for these events of every tab in use, and for `detached`, the end of watching."""
        self._subscriptions.append((interest, listener))

    def dialog_handled(self, key: TabKey, dialog: Dialog | None) -> None:
        """Forget a handled dialog; the browser's event may arrive only after the reply to the command."""
        if dialog is not None and self.dialogs.get(key) is dialog:
            del self.dialogs[key]

    def children(self, key: TabKey) -> Mapping[str, ChildSession]:
        """The child sessions of a tab, by session id, in the order they came."""
        watched = self._watched.get(key)
        return watched.children if watched is not None else {}

    def hold(self, key: TabKey, why: str) -> None:
        """Keep watching a tab while it is idle, until `release` with the same reason."""
        self._held.setdefault(key, set()).add(why)

    def release(self, key: TabKey, why: str) -> None:
        reasons = self._held.get(key)
        if reasons is not None:
            reasons.discard(why)
            if not reasons:
                del self._held[key]

    def set_child_commands(self, key: TabKey, why: str, commands: tuple[Command, ...]) -> None:
        """Send these commands to new frames in other processes and new workers before they run; () ends it."""
        before = self._child_commands.get(key, {})
        if before.get(why, ()) == commands:
            return
        after = {name: those for name, those in {**before, why: commands}.items() if those}
        if after:
            self._child_commands[key] = after
        else:
            del self._child_commands[key]
        if key in self._watched:
            self._subscribe(key)

    def ensure_watching(self, key: TabKey, tab_id: int) -> None:
        """Start watching a tab if needed; raises DialogOpen if a dialog blocks it."""
        if (dialog := self.dialogs.get(key)) is not None:
            raise DialogOpen(tab_id, dialog.kind, dialog.message, sent=False)
        watched = self._watched.get(key)
        if watched is None:
            self._begin(key)
        else:
            watched.used = key[0].loop.time()

    async def wait_watching(self, key: TabKey) -> None:
        """Start watching a tab and wait until the browser confirms it; a tab that cannot be watched is not an error.

        A page that navigates before confirming loses the subscription, and the first events of the next page with it.
        """
        watched = self._watched.get(key) or self._begin(key)
        watched.used = key[0].loop.time()
        if watched.begun:
            await wait(watched.begun, timeout=_CONFIRM_TIMEOUT)
            watched.begun.clear()

    def _begin(self, key: TabKey) -> _Watched:
        watched = self._watched[key] = _Watched(key[0].loop.time())
        sent = [
            self._subscribe(key),
            self._send(key, "forwardCDPCommand", {"method": "Page.enable"}),
            *self._enable(key, None),
        ]
        watched.begun = {future for future in sent if future is not None}
        key[0].loop.call_later(self._idle, self._end_if_idle, key)
        return watched

    def _subscribe(self, key: TabKey) -> Future[Any] | None:
        wanted = dict.fromkeys((*EVENTS, *(name for interest, _ in self._subscriptions for name in interest.events)))
        of_children = [
            *self._enabling(frames=True),
            *(each for those in self._child_commands.get(key, {}).values() for each in those),
        ]
        first = [{"method": method, "params": dict(params)} for method, params in of_children]
        return self._send(key, "subscribeCDPEvents", {"events": list(wanted), "children": first})

    @property
    def _idle(self) -> float:
        return self._browsers.limits.debugger_idle / 2

    def _enable(self, key: TabKey, child: str | None) -> list[Future[Any] | None]:
        """Make a target send the subscribed events."""
        there = {} if child is None else {"sessionId": child}
        return [
            self._send(key, "forwardCDPCommand", {"method": method, "params": dict(params), **there}, child)
            for method, params in self._enabling(frames=child is not None)
        ]

    def _enabling(self, *, frames: bool) -> list[Command]:
        """The enable commands of all subscriptions, each once, for a tab or for its frames and workers."""
        commands: dict[str, Mapping[str, Any]] = {}
        for interest, _ in self._subscriptions:
            for method, params in interest.enable if interest.frames or not frames else ():
                commands.setdefault(method, params)
        return list(commands.items())

    def _disable(self, key: TabKey, children: Mapping[str, ChildSession]) -> None:
        for interest, _ in self._subscriptions:
            for method in interest.disable:
                self._send(key, "forwardCDPCommand", {"method": method})
                for child in children if interest.frames else ():
                    self._send(key, "forwardCDPCommand", {"method": method, "sessionId": child}, child)

    def _send(self, key: TabKey, method: str, params: dict[str, Any], child: str | None = None) -> Future[Any] | None:
        def done(future: Future[Any]) -> None:
            # The next command to a tab that cannot be watched fails for the same reason and reports it. A child may
            # be gone, or lack the domain.
            if not future.cancelled() and future.exception() is not None and child is None:
                self._watched.pop(key, None)

        link, chrome_id = key
        if link.closed is not None:
            return None
        sent = link.request(method, {"tabId": chrome_id, **params})
        sent.add_done_callback(done)
        return sent

    def _end_if_idle(self, key: TabKey) -> None:
        link, chrome_id = key
        watched = self._watched.get(key)
        if watched is None or link.closed is not None:
            return
        remaining = watched.used + self._idle - link.loop.time()
        if remaining > 0 or key in self.dialogs or key in self._held or link.busy(chrome_id):
            link.loop.call_later(max(remaining, 1.0), self._end_if_idle, key)
            return
        del self._watched[key]
        self._notify(key, "detached", {"reason": "idle"}, None)
        self._disable(key, watched.children)
        self._send(key, "subscribeCDPEvents", {"events": []})

    def _event(
        self, link: ExtensionLink, chrome_id: int, method: str, params: dict[str, Any], child: str | None
    ) -> None:
        key = (link, chrome_id)
        if method == "Page.javascriptDialogOpening":
            self._dialog_opened(key, params)
        elif method == "Page.javascriptDialogClosed":
            self.dialogs.pop(key, None)
        elif method == "Target.attachedToTarget":
            self._attached(key, params, child)
        elif method == "Target.detachedFromTarget":
            watched = self._watched.get(key)
            if watched is not None:
                watched.children.pop(str(params.get("sessionId")), None)
        elif method == "detached":
            self.dialogs.pop(key, None)
            self._watched.pop(key, None)
        self._notify(key, method, params, child)

    def _notify(self, key: TabKey, method: str, params: dict[str, Any], child: str | None) -> None:
        domain = method.partition(".")[0] + "."
        for interest, listener in self._subscriptions:
            if method in interest.events or domain in interest.events or method == "detached":
                listener(key[0], key[1], method, params, child)

    def _dialog_opened(self, key: TabKey, params: dict[str, Any]) -> None:
        link, chrome_id = key
        dialog = Dialog(
            str(params.get("type"))[:20],
            str(params.get("message", ""))[:500],
            str(params.get("defaultPrompt", ""))[:500],
        )
        tab = self._browsers.book.find(link.browser_id, chrome_id)
        tab_id = tab.tab_id if tab else chrome_id
        self.dialogs[key] = dialog
        link.fail_tab(chrome_id, lambda: DialogOpen(tab_id, dialog.kind, dialog.message, sent=True), spare="closeTab")

    def _attached(self, key: TabKey, params: dict[str, Any], parent: str | None) -> None:
        watched, session_id, info = self._watched.get(key), params.get("sessionId"), params.get("targetInfo")
        if watched is None or type(session_id) is not str or not isinstance(info, dict):
            return
        if session_id in watched.children or len(watched.children) >= _MOST_CHILDREN:
            return
        target, kind, url = (str(info.get(name, ""))[:2000] for name in ("targetId", "type", "url"))
        watched.children[session_id] = ChildSession(session_id, target, kind, url, parent)
        # The extension already configured children that waited for the debugger.
        if kind in _WATCHED_KINDS and params.get("waitingForDebugger") is not True:
            self._enable(key, session_id)
