"""The way between the hub's page tools and the tabs that offer them: an interface, and its form over the browser links.

Owns seed 000's TabHubTransport, and the matching of tabs as browsers number them to tabs as the hub does. It passes
messages on and understands none of them; what a tool is, is known on both sides of it and not here.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from tabhub.core.tabs import Tab
from tabhub.errors import CallTimeout, InvalidParams, TabFailed, TabNotFound
from tabhub.links.browsers import Browsers, Change
from tabhub.links.extension import ExtensionLink, Pending

MessageCallback = Callable[[int, dict[str, Any]], Any]
"""Takes the tab and the message `{method, params}`; a request's answer is what it returns, now or as a future."""
DisconnectCallback = Callable[[int], None]

_EARLY = 200
_EARLY_EACH = 50


class Listener(Protocol):
    """Who sent a request, to be told of it while it runs."""

    def progress(self, params: dict[str, Any]) -> None:
        """How far it is: {progress, total?, message?}."""
        ...

    def asked(self, params: dict[str, Any]) -> Any:
        """The tab needs an answer to go on; given now or as a future."""
        ...


class TabHubTransport(Protocol):
    """How the hub reaches the page side of a tab, whatever lies between."""

    async def send_request(
        self,
        tab_id: int,
        message: Mapping[str, Any],
        timeout: float | None = None,  # noqa: ASYNC109 - it is the interface's
        *,
        listener: Listener | None = None,
        raw: bool = False,
    ) -> Any:
        """Send `{method, params}` to a tab and give the result (as bytes if `raw`); late ones raise CallTimeout.

        Cancelling it tells the tab to stop. `listener` hears what the tab says of this request meanwhile.
        """
        ...

    def on_message(self, callback: MessageCallback) -> None:
        """Hand what tabs say by themselves to `callback`."""
        ...

    def on_disconnect(self, tab_id: int | None, callback: DisconnectCallback) -> None:
        """Call `callback` when a tab (None: any tab) can no longer be reached."""
        ...

    def disconnect(self, tab_id: int) -> None:
        """Have nothing more to do with a tab: what is under way there fails, and listeners are told."""
        ...


class LinkTransport:
    """The transport over the links to browsers."""

    def __init__(self, browsers: Browsers) -> None:
        self._browsers = browsers
        self._on_message: MessageCallback | None = None
        self._on_any: list[DisconnectCallback] = []
        self._on_tab: dict[int, list[DisconnectCallback]] = {}
        self._listeners: dict[tuple[ExtensionLink, int], Listener] = {}
        self._documents: dict[tuple[str, str], int] = {}
        self._early: dict[tuple[str, int], list[tuple[str, dict[str, Any]]]] = {}
        self._settings: dict[str, Any] | None = None
        browsers.on_page(self._said)
        browsers.on_change(self._changed)
        browsers.on_hello(self._greet)

    async def send_request(
        self,
        tab_id: int,
        message: Mapping[str, Any],
        timeout: float | None = None,  # noqa: ASYNC109 - it is the interface's
        *,
        listener: Listener | None = None,
        raw: bool = False,
    ) -> Any:
        """Send one message to a tab and wait for its result."""
        try:
            ref = self._browsers.tab(tab_id)
        except TabNotFound as error:
            error.data = {"sent": False}
            raise
        params = {**message["params"], "tabId": ref.tab.chrome_id}
        if message["method"] == "tool.dispatch":
            params["dispatchId"] = ref.link.upcoming  # what the tab says meanwhile comes back under this
        future = ref.link.request(message["method"], params, raw=raw)
        key = (ref.link, future.number if isinstance(future, Pending) else 0)
        if listener is not None:
            self._listeners[key] = listener
        try:
            async with asyncio.timeout(timeout):
                return await future
        except TimeoutError:
            raise CallTimeout(f"Tab {tab_id} gave no answer to {message['method']} within {timeout:g} s.") from None
        finally:
            self._listeners.pop(key, None)

    def on_message(self, callback: MessageCallback) -> None:
        """Hand what tabs say to `callback`."""
        self._on_message = callback

    def on_disconnect(self, tab_id: int | None, callback: DisconnectCallback) -> None:
        """Tell `callback` when a tab, or any, is gone."""
        (self._on_any if tab_id is None else self._on_tab.setdefault(tab_id, [])).append(callback)

    def disconnect(self, tab_id: int) -> None:
        """Give a tab up."""
        tab = self._browsers.book.get(tab_id)
        if tab is not None:
            link = self._browsers.link(tab.browser_id)
            link.fail_tab(tab.chrome_id, lambda: _given_up(tab_id), only="browser/executeTool")
        self._gone(tab_id)

    def settings(self, settings: dict[str, Any]) -> None:
        """Tell every browser, now and when it connects, what pages may do there."""
        self._settings = settings
        for link in self._browsers.links():
            link.notify("pages.settings", settings)

    # inside

    def _said(self, link: ExtensionLink, method: str, params: dict[str, Any]) -> Any:
        if method == "tool.progress":
            listener = self._listener(link, params.get("dispatchId"))
            if listener is not None:
                listener.progress(params)
            return None
        if method == "browser/elicitConfirmation":
            listener = self._listener(link, params.get("callId"))
            if listener is not None:
                return listener.asked(params)
        chrome_id, document = params.get("tabId"), params.get("documentId")
        if type(chrome_id) is not int or not isinstance(document, str):
            raise InvalidParams(f"{method} needs `tabId`, a whole number, and `documentId`, a text.")
        tab = self._browsers.book.find(link.browser_id, chrome_id)
        known = (link.browser_id, document)
        if method == "browser/disconnected":
            tab_id = self._documents.pop(known, None) if tab is None else tab.tab_id
            self._documents.pop(known, None)
        else:
            tab_id = None if tab is None else tab.tab_id
        if tab_id is not None:
            if method == "browser/registerTools":
                self._documents[known] = tab_id
            return self._pass_on(tab_id, method, params)
        if method == "browser/elicitConfirmation":
            raise InvalidParams(f"There is no tab {chrome_id}.")
        waiting = self._early.setdefault((link.browser_id, chrome_id), [])
        waiting.append((method, params))  # the tab's own report is on its way
        del waiting[:-_EARLY_EACH]
        if len(self._early) > _EARLY:
            del self._early[next(iter(self._early))]
        return None

    def _listener(self, link: ExtensionLink, number: Any) -> Listener | None:
        if isinstance(number, str) and number.isascii() and number.isdigit() and len(number) < 16:
            number = int(number)
        return self._listeners.get((link, number)) if type(number) is int else None

    def _pass_on(self, tab_id: int, method: str, params: dict[str, Any]) -> Any:
        if self._on_message is None:
            return None
        return self._on_message(tab_id, {"method": method, "params": params})

    def _greet(self, link: ExtensionLink) -> None:
        if self._settings is not None:
            link.notify("pages.settings", self._settings)

    def _changed(self, change: Change) -> None:
        for tab in (*change.tabs.closed, *change.tabs.away):
            self._gone(tab.tab_id)
        for tab in change.tabs.opened:
            self._arrived(tab)
        if change.kind != "tabs":
            self._early = {key: said for key, said in self._early.items() if key[0] != change.browser_id}

    def _arrived(self, tab: Tab) -> None:
        for method, params in self._early.pop((tab.browser_id, tab.chrome_id), ()):
            if method == "browser/registerTools":
                self._documents[tab.browser_id, params["documentId"]] = tab.tab_id
            with contextlib.suppress(InvalidParams):  # who refuses a message says so in the log; nobody waits for it
                self._pass_on(tab.tab_id, method, params)

    def _gone(self, tab_id: int) -> None:
        for known in [known for known, there in self._documents.items() if there == tab_id]:
            del self._documents[known]
        for callback in (*self._on_tab.pop(tab_id, ()), *self._on_any):
            callback(tab_id)


def _given_up(tab_id: int) -> TabFailed:
    return TabFailed(f"Tab {tab_id} was given up under the call.", hint="How far the call came is not known.")
