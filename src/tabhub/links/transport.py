"""How page tools reach tabs and open sites: the interfaces, and their implementations over the links.

Owns seed 000's TabHubTransport, and the mapping from tab ids of browsers to tab ids of the hub. It forwards messages
and does not know what a tool is.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol

from tabhub.core.tabs import Tab
from tabhub.errors import CallTimeout, InvalidParams, TabFailed, TabNotFound
from tabhub.links.browsers import Browsers, Change
from tabhub.links.early_messages import EarlyMessages
from tabhub.links.extension import ExtensionLink
from tabhub.wire.page_tools import (
    ElicitConfirmation,
    PageDisconnected,
    PageMessage,
    PluginRequest,
    RegisterTools,
    ToolProgress,
)

MessageCallback = Callable[[int, PageMessage], Any]
"""Takes the tab and a message of a page in it; what it returns, now or as a future, is the reply to a request."""
DisconnectCallback = Callable[[int], None]

_METHODS = (
    "browser/registerTools",
    "browser/updateTools",
    "browser/disconnected",
    "browser/elicitConfirmation",
    "tool.progress",
    "plugin.request",
)


class Listener(Protocol):
    """The sender of a request, which receives what the tab reports while it runs."""

    def progress(self, progress: ToolProgress) -> None: ...

    def asked(self, question: ElicitConfirmation) -> Any:
        """Answer a question of the page, now or as a future; the call waits for it."""
        ...

    def requested(self, request: PluginRequest) -> Any:
        """Make an HTTP request for the plugin whose tool runs; its answer, now or as a future."""
        ...


class TabHubTransport(Protocol):
    """How the hub reaches the pages of a tab."""

    async def send_request(
        self,
        tab_id: int,
        message: Mapping[str, Any],
        timeout: float | None = None,  # noqa: ASYNC109 - it is the interface's
        *,
        listener: Listener | None = None,
        raw: bool = False,
    ) -> Any:
        """Send `{method, params}` to a tab and return the result (as bytes if `raw`); raises CallTimeout if late.

        Cancelling it cancels the request in the tab. `listener` receives the progress and questions of this request.
        """
        ...

    def on_message(self, callback: MessageCallback) -> None:
        """Hand every message that pages send by themselves to `callback`."""
        ...

    def on_disconnect(self, tab_id: int, callback: DisconnectCallback) -> None:
        """Call `callback` once when a tab can no longer be reached."""
        ...

    def disconnect(self, tab_id: int) -> None:
        """Stop using a tab: its calls fail, and the disconnect callbacks run."""
        ...


class Sites(Protocol):
    """How the hub opens a site in a tab."""

    async def open(self, url: str) -> int:
        """Open a background tab and return its id; the page may still be loading."""
        ...

    async def revisit(self, tab_id: int, url: str) -> None:
        """Load a URL again in a tab that was opened here."""
        ...


class LinkTransport:
    """The transport over the links to browsers, and sites in their tabs."""

    def __init__(self, browsers: Browsers) -> None:
        self._browsers = browsers
        self._on_message: MessageCallback | None = None
        self._on_tab: dict[int, list[DisconnectCallback]] = {}
        self._listeners: dict[tuple[ExtensionLink, int], Listener] = {}
        self._documents: dict[tuple[str, str], int] = {}
        self._early: dict[str, EarlyMessages] = {}
        """By browser."""
        self._settings: dict[str, Any] | None = None
        browsers.add_handlers(dict.fromkeys(_METHODS, self._receive))
        browsers.on_change(self._browser_changed, "connected", "disconnected", "opened", "closed")
        browsers.on_hello(self._send_settings)

    async def send_request(
        self,
        tab_id: int,
        message: Mapping[str, Any],
        timeout: float | None = None,  # noqa: ASYNC109 - it is the interface's
        *,
        listener: Listener | None = None,
        raw: bool = False,
    ) -> Any:
        try:
            ref = self._browsers.tab(tab_id)
        except TabNotFound as error:
            error.data = {"sent": False}
            raise
        params = {**message["params"], "tabId": ref.tab.chrome_id}
        if message["method"] == "tool.dispatch":
            params["dispatchId"] = ref.link.next_request_id  # progress names the call by this id
        future = ref.link.request(message["method"], params, raw=raw)
        key = (ref.link, future.number)
        if listener is not None:
            self._listeners[key] = listener
        try:
            async with asyncio.timeout(timeout):
                return await future
        except TimeoutError:
            raise CallTimeout(f"Tab {tab_id} did not answer {message['method']} within {timeout:g} s.") from None
        finally:
            self._listeners.pop(key, None)

    def on_message(self, callback: MessageCallback) -> None:
        self._on_message = callback

    def on_disconnect(self, tab_id: int, callback: DisconnectCallback) -> None:
        self._on_tab.setdefault(tab_id, []).append(callback)

    def disconnect(self, tab_id: int) -> None:
        tab = self._browsers.book.get(tab_id)
        if tab is not None:
            link = self._browsers.link(tab.browser_id)
            message = f"Tab {tab_id} was disconnected during the call."
            error = partial(TabFailed, message, hint="How far the call got is unknown.")
            link.fail_tab(tab.chrome_id, error, only="browser/executeTool")
        self._tab_disconnected(tab_id)

    def settings(self, settings: dict[str, Any]) -> None:
        """Send every browser, now and when it connects, what pages may do there."""
        self._settings = settings
        for link in self._browsers.links():
            link.notify("pages.settings", settings)

    async def open(self, url: str) -> int:
        """Open a tab in the browser used last."""
        link = self._browsers.default_link()
        reply = await link.request("createTab", {"url": url, "active": False})
        return self._browsers.update_tab(link, reply).tab_id

    async def revisit(self, tab_id: int, url: str) -> None:
        ref = self._browsers.tab(tab_id)
        await ref.link.request("browser_navigate", {"tabId": ref.tab.chrome_id, "url": url, "waitUntil": "none"})

    def _receive(self, link: ExtensionLink, message: PageMessage | ToolProgress | PluginRequest) -> Any:
        if isinstance(message, PluginRequest):
            listener = self._listener(link, message.dispatch_id)
            if listener is None:
                raise InvalidParams("No tool of a plugin runs there.")
            return listener.requested(message)
        if isinstance(message, ToolProgress):
            listener = self._listener(link, message.dispatch_id)
            if listener is not None:
                listener.progress(message)
            return None
        if isinstance(message, ElicitConfirmation):
            listener = self._listener(link, message.call_id)
            if listener is not None:
                return listener.asked(message)
        tab = self._browsers.book.find(link.browser_id, message.tab_id)
        tab_id = None if tab is None else tab.tab_id
        document = (link.browser_id, message.document_id)
        if isinstance(message, PageDisconnected):
            registered_in = self._documents.pop(document, None)
            tab_id = registered_in if tab_id is None else tab_id
        if tab_id is not None:
            if isinstance(message, RegisterTools):
                self._documents[document] = tab_id
            return self._forward(tab_id, message)
        if isinstance(message, ElicitConfirmation):
            raise InvalidParams(f"There is no tab {message.tab_id}.")
        early = self._early.setdefault(link.browser_id, EarlyMessages(link.limits.page_early_bytes))
        early.add(message)  # the report of the tab itself has not arrived yet
        return None

    def _listener(self, link: ExtensionLink, number: str | int | None) -> Listener | None:
        if isinstance(number, str) and number.isascii() and number.isdigit() and len(number) < 16:
            number = int(number)
        return self._listeners.get((link, number)) if isinstance(number, int) else None

    def _forward(self, tab_id: int, message: PageMessage) -> Any:
        return None if self._on_message is None else self._on_message(tab_id, message)

    def _send_settings(self, link: ExtensionLink) -> None:
        if self._settings is not None:
            link.notify("pages.settings", self._settings)

    def _browser_changed(self, change: Change) -> None:
        for tab in (*change.tabs.closed, *change.tabs.disconnected):
            self._tab_disconnected(tab.tab_id)
        for tab in change.tabs.opened:
            self._tab_opened(tab)
        if change.kind != "tabs":
            self._early.pop(change.browser_id, None)

    def _tab_opened(self, tab: Tab) -> None:
        early = self._early.get(tab.browser_id)
        for message in early.pop(tab.chrome_id) if early is not None else ():
            if isinstance(message, RegisterTools):
                self._documents[tab.browser_id, message.document_id] = tab.tab_id
            with contextlib.suppress(InvalidParams):  # the callback logs what it refuses, and no sender waits
                self._forward(tab.tab_id, message)

    def _tab_disconnected(self, tab_id: int) -> None:
        for document in [document for document, known in self._documents.items() if known == tab_id]:
            del self._documents[document]
        for callback in self._on_tab.pop(tab_id, ()):
            callback(tab_id)
