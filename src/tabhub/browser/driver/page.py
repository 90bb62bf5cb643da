"""The interface that built-in tools use to work on one tab: link commands and CDP.

Owns sending a tool's command over the link and translating its failure. A tool never sees the browser's own tab ids.
"""

from __future__ import annotations

from asyncio import Future
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tabhub.browser.driver.tab_watch import Dialog, TabWatch
from tabhub.core.tabs import Tab
from tabhub.errors import CommandFailed, ContextDestroyed, InvalidArguments, PageNavigated, TabFailed, TabNotFound
from tabhub.links.browsers import Browsers, TabRef
from tabhub.links.extension import ExtensionLink
from tabhub.wire import urls

_SCHEMES = ("http", "https", "data", "file")
_LEFT = ("Inspected target navigated or closed", "Execution context was destroyed")
_NO_CONTEXT = "Cannot find context"
_KEPT = (
    "Cannot access a chrome:// URL",
    "Cannot access a chrome-extension:// URL",
    "extensions gallery cannot be scripted",
    "Cannot attach to this target",
)
"""Errors of browsers for pages that no extension may access."""
_CRASHED_UNDER, _CRASHED = "The tab crashed under the command", "The tab crashed"
_UNLOADED = "unloaded to save memory"
_TAKEN = "Another debugger is already attached"


@dataclass(slots=True)
class FollowUp:
    """Commands to send as soon as a script returns `go: true`, without another round trip to the hub."""

    events: Sequence[tuple[str, dict[str, Any]]]
    """CDP commands, sent in order."""
    probe: str
    """Function body of a last script, in the same world, that reports the result."""
    sent: bool = False
    """Whether they were sent; an older extension does not support it."""
    value: Any = None
    """The value of the last script."""
    error: str | None = None
    """The browser's error for a command that failed."""


class Page:
    """One tab, for the duration of one call."""

    def __init__(self, browsers: Browsers, watch: TabWatch, ref: TabRef, on_send: Callable[[], None] | None) -> None:
        self.link = ref.link
        self.tab = ref.tab
        self.tab_id = ref.tab.tab_id
        """The hub's id of the tab."""
        self.key = (ref.link, ref.tab.chrome_id)
        self.watch = watch
        self.browsers = browsers
        self._on_send = on_send
        """Called before the first command."""

    @property
    def dialog(self) -> Dialog | None:
        """The dialog that blocks the page."""
        return self.watch.dialogs.get(self.key)

    @property
    def has_remote_frames(self) -> bool:
        """Whether the tab has frames in other processes, as far as is known."""
        return any(child.kind == "iframe" for child in self.watch.children(self.key).values())

    async def command(
        self, name: str, params: dict[str, Any] | None = None, *, raw: bool = False, encoded: bytes | None = None
    ) -> Any:
        """Send one link command to this tab and return its result."""
        if self._on_send is not None:
            self._on_send()
            self._on_send = None
        try:
            wanted = {"tabId": self.tab.chrome_id, **params} if params else {"tabId": self.tab.chrome_id}
            return await self.link.request(name, wanted, raw=raw, encoded=encoded)
        except TabNotFound as error:
            # It was open when the command was sent, so the command may have run.
            self.browsers.remove_tab(self.link, self.tab.chrome_id)
            there = self.browsers.missing(self.tab_id)
            raise TabFailed(f"Tab {self.tab_id} is gone: {error.message}", hint=there.hint) from None
        except CommandFailed as error:
            known = self.describe_failure(error.message)
            if known is None:
                raise
            raise known from None

    async def raise_failure(self, said: str) -> None:
        """Raise the error for a command that failed as part of another one."""
        raise self.describe_failure(said) or CommandFailed(said)

    def describe_failure(self, said: str) -> CommandFailed | None:
        """A clearer error for a known message of the browser; None for others."""
        if _NO_CONTEXT in said or any(text in said for text in _LEFT):
            return (ContextDestroyed if _NO_CONTEXT in said else PageNavigated)(
                f"Tab {self.tab_id} went to another page while the command ran.",
                hint="Look at the tab (browser_get_tab_info) before repeating it.",
            )
        reload = "Use browser_navigate_tab to load a page in it again."
        if _CRASHED_UNDER in said:
            return TabFailed(f"The page of tab {self.tab_id} crashed while the command ran.", hint=reload)
        if _CRASHED in said:
            return CommandFailed(f"The page of tab {self.tab_id} has crashed.", hint=reload)
        if any(text in said for text in _KEPT):
            return CommandFailed(
                f"Tab {self.tab_id} shows {self.tab.url[:200]}, a page that extensions may not access ({said}).",
                hint="Close it or navigate it to a web page (browser_navigate_tab).",
            )
        if _UNLOADED in said:
            return CommandFailed(
                f"The browser has unloaded the page of tab {self.tab_id} to save memory.",
                hint="browser_reload_tab loads it again.",
            )
        if _TAKEN in said:
            return CommandFailed(
                f"Tab {self.tab_id} is debugged by something else: {said}",
                hint="Close the developer tools of that tab, or use another tab.",
            )
        return None

    def cdp_encoded(self, params: bytes) -> Awaitable[bytes]:
        """Send one CDP command that is already encoded (`"method":…,"params":…`); the result is bytes, too."""
        self.watch.ensure_watching(self.key, self.tab_id)
        return self.command("forwardCDPCommand", encoded=b'{"tabId":%d,%b}' % (self.tab.chrome_id, params), raw=True)

    async def cdp(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        session_id: str | None = None,
        *,
        raw: bool = False,
        ahead: Sequence[dict[str, Any]] = (),
        follow: Sequence[dict[str, Any]] = (),
    ) -> Any:
        """Send one CDP command to this tab and return its result.

        Commands `ahead` of it, and those that `follow` a script returning `go: true`, travel in the same message.
        """
        self.watch.ensure_watching(self.key, self.tab_id)
        command: dict[str, Any] = {"method": method}
        if params:
            command["params"] = params
        if session_id is not None:
            command["sessionId"] = session_id
        if ahead:
            command["ahead"] = ahead
        if follow:
            command["follow"] = follow
        return await self.command("forwardCDPCommand", command, raw=raw)

    def cdp_nowait(self, method: str, params: dict[str, Any] | None = None, session_id: str | None = None) -> None:
        """Send a CDP command without waiting, for what only prepares the next one."""
        send_cdp_nowait(*self.key, method, params, session_id)


def send_cdp(
    link: ExtensionLink,
    chrome_id: int,
    method: str,
    params: dict[str, Any] | None = None,
    session_id: str | None = None,
) -> Future[Any] | None:
    """Send one command; None if the link is closed. The caller must consume the future's exception."""
    if link.closed is not None:
        return None
    command: dict[str, Any] = {"tabId": chrome_id, "method": method, "params": params or {}}
    if session_id is not None:
        command["sessionId"] = session_id
    return link.request("forwardCDPCommand", command)


def send_cdp_nowait(
    link: ExtensionLink,
    chrome_id: int,
    method: str,
    params: dict[str, Any] | None = None,
    session_id: str | None = None,
) -> None:
    """Send one command and ignore how it ends: for cleanup, and for what only prepares the next command."""
    sent = send_cdp(link, chrome_id, method, params, session_id)
    if sent is not None:
        sent.add_done_callback(ignore_failure)


def ignore_failure(future: Future[Any]) -> None:
    """Done callback that marks an exception as retrieved."""
    if not future.cancelled():
        future.exception()


async def open_tab(
    browsers: Browsers,
    *,
    browser_id: str | None = None,
    active: bool = False,
    url: str | None = None,
    group: dict[str, str] | None = None,
) -> Tab:
    """Open a tab, in the background unless `active`; with a `url`, wait until it has loaded.

    `group` is the tab group it goes into: {key, title}.
    """
    link = browsers.link(browser_id) if browser_id is not None else browsers.default_link()
    wish: dict[str, Any] = {"active": active}
    if group is not None:
        wish["group"] = group
    if url is not None:
        wish.update(url=url, waitUntil="load")
    return browsers.update_tab(link, await link.request("createTab", wish))


def validate_url(url: str, *, files: bool) -> str:
    """The URL if a tab may open it, otherwise InvalidArguments; `files` allows file: URLs."""
    parts = urls.split(url)
    if parts is None:
        raise InvalidArguments(f"url {url[:200]!r} is not valid: its host or port cannot be parsed.")
    scheme = parts.scheme.lower()
    if scheme == "file" and not files:
        raise InvalidArguments(
            "url must not be a file: URL: agents may not open files of this machine unless the person allows it.",
            hint="To allow it: tabhub config set fileUrls true",
        )
    if scheme in _SCHEMES or url == "about:blank":
        return url
    if not scheme or "." in scheme or (scheme == "localhost"):
        raise InvalidArguments(f"url {url[:200]!r} is not a full URL.", hint=f"Did you mean https://{url[:200]} ?")
    raise InvalidArguments(
        f"url must not have the scheme {scheme[:40]}:.",
        hint="http, https, data and about:blank can be opened.",
    )
