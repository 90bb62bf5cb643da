"""What the hub watches in a tab it debugs: dialogs that block the page.

Owns which CDP events a tab in use sends, and the picture of open dialogs. Watching starts with the first command to a
tab, sent ahead of it without waiting, so it costs no round trip; it ends when the tab is not used, because a browser
that is asked for events never lets go of the tab.
"""

from __future__ import annotations

from asyncio import Future
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tabhub.errors import CommandFailed, Outcome
from tabhub.links.browsers import Browsers, Change
from tabhub.links.extension import ExtensionLink

EVENTS = ("Page.javascriptDialogOpening", "Page.javascriptDialogClosed")
_Key = tuple[ExtensionLink, int]


@dataclass(frozen=True, slots=True)
class Dialog:
    """An open alert, confirm, prompt or beforeunload."""

    kind: str
    message: str


class DialogOpen(CommandFailed):
    """A dialog blocks the page; what the command started, if it was sent, waits behind it."""

    outcome: Outcome | None = "unknown"

    def __init__(self, tab_id: int, dialog: Dialog, *, sent: bool) -> None:
        super().__init__(
            f"Tab {tab_id} is blocked by a dialog ({dialog.kind}: {dialog.message!r}).",
            hint="The page waits until it is answered: answer it in the browser window, or close the tab.",
            data={"dialog": {"type": dialog.kind, "message": dialog.message}},
        )
        self.outcome = "unknown" if sent else "not_sent"


class Watch:
    """Dialogs of all tabs in use."""

    def __init__(self, browsers: Browsers) -> None:
        self._browsers = browsers
        self._watched: dict[_Key, float] = {}
        self._dialogs: dict[_Key, Dialog] = {}
        browsers.on_event(self._event)
        browsers.on_change(self._change)

    def dialog(self, link: ExtensionLink, chrome_id: int) -> Dialog | None:
        """The dialog that is open in a tab."""
        return self._dialogs.get((link, chrome_id))

    def ready(self, link: ExtensionLink, chrome_id: int, tab_id: int) -> None:
        """Watch a tab from now on; a dialog that is open already is an error at once."""
        key = (link, chrome_id)
        if self._dialogs and key in self._dialogs:
            raise DialogOpen(tab_id, self._dialogs[key], sent=False)
        known = key in self._watched
        self._watched[key] = link.loop.time()
        if known:
            return
        self._send(key, "subscribeCDPEvents", {"events": list(EVENTS)})
        self._send(key, "forwardCDPCommand", {"method": "Page.enable"})
        self._look_again(key, self._idle)

    @property
    def _idle(self) -> float:
        return self._browsers.limits.debugger_idle / 2

    def _send(self, key: _Key, method: str, params: dict[str, Any]) -> None:
        def done(future: Future[Any]) -> None:
            # A tab that cannot be watched fails the command that follows for the same reason, and says so there.
            if not future.cancelled() and future.exception() is not None:
                self._watched.pop(key, None)

        link, chrome_id = key
        link.request(method, {"tabId": chrome_id, **params}).add_done_callback(done)

    def _look_again(self, key: _Key, after: float) -> None:
        key[0].loop.call_later(after, self._end_if_idle, key)

    def _end_if_idle(self, key: _Key) -> None:
        link, chrome_id = key
        used = self._watched.get(key)
        if used is None or link.closed is not None:
            return
        left = used + self._idle - link.loop.time()
        if left > 0 or key in self._dialogs or link.busy(chrome_id):
            self._look_again(key, max(left, 1.0))
            return
        del self._watched[key]
        self._send(key, "subscribeCDPEvents", {"events": []})

    def _event(self, link: ExtensionLink, chrome_id: int, method: str, params: dict[str, Any]) -> None:
        key = (link, chrome_id)
        if method == "Page.javascriptDialogOpening":
            dialog = Dialog(str(params.get("type"))[:20], str(params.get("message", ""))[:500])
            tab = self._browsers.book.find(link.browser_id, chrome_id)
            tab_id = tab.tab_id if tab else chrome_id
            self._dialogs[key] = dialog
            link.fail_tab(chrome_id, lambda: DialogOpen(tab_id, dialog, sent=True), spare="closeTab")
        elif method == "Page.javascriptDialogClosed":
            self._dialogs.pop(key, None)
        elif method == "detached":
            self._dialogs.pop(key, None)
            self._watched.pop(key, None)

    def _change(self, change: Change) -> None:
        if change.kind != "tabs":
            self._forget(lambda key: key[0].closed is not None)
        for tab in change.tabs.closed:
            here = (tab.browser_id, tab.chrome_id)
            self._forget(lambda key, here=here: (key[0].browser_id, key[1]) == here)  # type: ignore[misc]

    def _forget(self, which: Callable[[_Key], bool]) -> None:
        for key in [key for key in (*self._watched, *self._dialogs) if which(key)]:
            self._watched.pop(key, None)
            self._dialogs.pop(key, None)
