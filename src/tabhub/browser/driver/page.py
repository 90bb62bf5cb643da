"""The interface that built-in tools use to work on one tab: link commands and CDP.

Owns sending a tool's command over the link and translating its failure. A tool never sees the browser's own tab ids.
"""

from __future__ import annotations

from asyncio import Future
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from tabhub.browser.driver.tab_watch import TOP, Dialog, TabState, TabWatch
from tabhub.core.origins import browser_origin, origin_of
from tabhub.core.shown_elements import ShownElement, target_key
from tabhub.core.tabs import Tab
from tabhub.core.tools import CallContext
from tabhub.errors import (
    CommandFailed,
    ContextDestroyed,
    DialogOpen,
    InvalidArguments,
    PageNavigated,
    SiteBlocked,
    TabFailed,
    TabNotFound,
    TabStopped,
)
from tabhub.links.browsers import Browsers, TabKey, TabRef
from tabhub.trust.approvals import frame_changed
from tabhub.trust.visibility import EVERYTHING, MASK, View
from tabhub.wire import urls

_SCHEMES = ("http", "https", "data", "file")
_LEFT = "Tab {tab} went to another page while the command ran."
_MOVED = "Tab {tab} went to another site while the command was on its way; the command did not run."
_CHECK_AGAIN = "Look at the tab. To act there, make a new call: it is checked for that site."
_LOOK = "Look at the tab (browser_get_tab_info) before repeating it."
_RELOAD = "Use browser_navigate_tab to load a page in it again."
_RESTRICTED = "Tab {tab} shows {url}, a page that extensions may not access ({message})."
_UNCHECKED = frozenset({"browser_navigate", "closeTab", "activateTab", "subscribeCDPEvents"})
"""Commands that put nothing into the page that the tab shows."""
_INPUT = ("Input.", "DOM.setFileInputFiles", "Page.handleJavaScriptDialog")
_LEAVE = "Close it or navigate it to a web page (browser_navigate_tab)."
_FAILURES: tuple[tuple[str, type[CommandFailed], str, str], ...] = (
    ("Cannot find context", ContextDestroyed, _LEFT, _LOOK),
    ("navigated to another site before", CommandFailed, _MOVED, _CHECK_AGAIN),
    ("Inspected target navigated or closed", PageNavigated, _LEFT, _LOOK),
    ("Execution context was destroyed", PageNavigated, _LEFT, _LOOK),
    ("The tab crashed during", TabFailed, "The page of tab {tab} crashed while the command ran.", _RELOAD),
    ("The tab crashed", CommandFailed, "The page of tab {tab} has crashed.", _RELOAD),
    ("Cannot access a chrome:// URL", CommandFailed, _RESTRICTED, _LEAVE),
    ("Cannot access a chrome-extension:// URL", CommandFailed, _RESTRICTED, _LEAVE),
    ("extensions gallery cannot be scripted", CommandFailed, _RESTRICTED, _LEAVE),
    ("Cannot attach to this target", CommandFailed, _RESTRICTED, _LEAVE),
    (
        "unloaded to save memory",
        CommandFailed,
        "The browser has unloaded the page of tab {tab} to save memory.",
        "browser_reload_tab loads it again.",
    ),
    (
        "Another debugger is already attached",
        CommandFailed,
        "Tab {tab} is debugged by something else: {message}",
        "Close the developer tools of that tab, or use another tab.",
    ),
)
"""Messages of browsers, and the error, message and hint that an agent gets for each; the first match counts."""


class Page:
    """One tab, for the duration of one call."""

    def __init__(
        self,
        browsers: Browsers,
        watch: TabWatch,
        ref: TabRef,
        acting: CallContext | None = None,
        view: View = EVERYTHING,
        requesting: Callable[[TabKey], bool] | None = None,
    ) -> None:
        """`acting` is a call that may change something: it is marked as sent with every command. `requesting` says
        whether the page waits for a response."""
        self.ref = ref
        self.link = ref.link
        self.tab = ref.tab
        self.tab_id = ref.tab.tab_id
        """The hub's id of the tab."""
        self.key = ref.key
        self.watch = watch
        self.browsers = browsers
        self._acting = acting
        self._checked = ref.tab
        """The tab as it was when its site was last checked, at first by the caller."""
        self._frame: tuple[str, str] | None = None
        """The id and site of the frame that the call acts in."""
        self.view = view
        self._state: TabState | None = None
        self._requesting = requesting
        if view.active:
            watch.block_requests(self.state, view)

    @property
    def session(self) -> Any:
        """The session of the call that acts; None for one that only reads."""
        return self._acting.session if self._acting is not None else None

    @property
    def state(self) -> TabState:
        """What the driver knows of the tab; it begins with the first command that needs it."""
        if self._state is None:
            self._state = self.watch.tabs.get(self.key) or self.watch.tab(self.key)
        return self._state

    @property
    def dialog(self) -> Dialog | None:
        """The dialog that blocks the page; without its text if it is of a frame that is hidden from the agent."""
        state = self.watch.tabs.get(self.key)
        dialog = None if state is None else state.dialog
        if dialog is not None and self.view.active and self.view.hides(dialog.url):
            return replace(dialog, message=MASK, default="")
        return dialog

    @property
    def is_loading(self) -> bool:
        """Whether requests of the page are under way, as far as is known."""
        return self._requesting is not None and self._requesting(self.key)

    @property
    def is_hidden(self) -> bool:
        """Whether the tab shows a site that the agent is kept off, by its own events or the browser's reports."""
        if not self.view.active:
            return False
        tab = self.browsers.book.get(self.tab_id)
        reported = None if tab is None else tab.site
        return self.view.hides(reported) or self.view.hides(self.state.frame_urls.get(TOP))

    def require_visible(self) -> None:
        if self.is_hidden:
            raise SiteBlocked(self.tab_id)

    @property
    def has_remote_frames(self) -> bool:
        """Whether the tab has frames in other processes, as far as is known."""
        return "iframe" in self.state.children.values()

    def ensure_watching(self) -> None:
        """Start watching the tab if needed; raises DialogOpen if a dialog blocks it."""
        state = self.state
        if self.view.active:
            self.require_visible()
        if state.requests_blocked is not None and not self.view.active:
            self.watch.block_requests(state, None)
        if state.dialog is not None and (dialog := self.dialog) is not None:
            raise DialogOpen(self.tab_id, dialog.kind, dialog.message, sent=False)
        if state.watched:
            state.used = self.link.loop.time()
        else:
            self.watch.start(state)

    async def command(
        self, name: str, params: dict[str, Any] | None = None, *, raw: bool = False, encoded: bytes | None = None
    ) -> Any:
        """Send one link command to this tab and return its result."""
        tab = self.browsers.book.get(self.tab_id)
        if tab is not None and tab.stopped:
            raise TabStopped(self.tab_id, sent=self._acting is not None and self._acting.sent)
        wanted = {"tabId": self.tab.chrome_id, **params} if params else {"tabId": self.tab.chrome_id}
        if self._acting is not None:
            if encoded is None and _acts(name, wanted):  # `cdp_encoded` has checked the site
                where = self.require_site()
                wanted |= where if name == "forwardCDPCommand" else {}
            self._acting.sent = True
        try:
            answer = await self.link.request(name, wanted, raw=raw, encoded=encoded)
        except DialogOpen as error:
            if self.view.active and (dialog := self.dialog) is not None:
                raise DialogOpen(self.tab_id, dialog.kind, dialog.message, sent=error.outcome != "not_sent") from None
            raise
        except TabNotFound as error:
            # It was open when the command was sent, so the command may have run.
            self.browsers.remove_tab(self.link, self.tab.chrome_id)
            there = self.browsers.missing(self.tab_id)
            hint = "browser_list_tabs shows what is open." if self.view.active else there.hint  # it has titles of tabs
            raise TabFailed(f"Tab {self.tab_id} is gone: {error.message}", hint=hint) from None
        except TabStopped:
            raise TabStopped(self.tab_id, sent=self._acting is not None) from None
        except CommandFailed as error:
            known = self.describe_failure(error.message)
            if known is None:
                raise
            raise known from None
        if self.view.active and name == "forwardCDPCommand":
            self.require_visible()  # the tab may have gone there meanwhile
        return answer

    def require_site(self) -> dict[str, str]:
        """Raise SiteChanged if the tab went where the call may not act; returns what makes the browser check it."""
        tab = self.browsers.book.get(self.tab_id)
        if self._acting is None or tab is None:
            return {}
        if tab is not self._checked:
            self._acting.work_on(tab)
            self._checked = tab
        if self._frame is not None:
            frame_id, permitted = self._frame
            site = origin_of(self.state.frame_urls.get(frame_id, ""))
            if site not in (None, permitted):
                raise frame_changed(self.tab_id, permitted, str(site))
        origin = browser_origin(tab.url)
        return {"site": origin} if origin else {}

    def require_top(self) -> None:
        """Raise SiteChanged unless the call may act in the tab's own document from here on."""
        self._frame = None
        self.require_site()

    async def require_frame(self, frame_id: str | None, sites: Sequence[str]) -> None:
        """Raise PermissionDenied unless the call may act in a frame from here on; the person may be asked.

        `sites` are the frame's own and those of the frames around it. Without an id, the frame is one that shows, or is
        about to show, the first of them.
        """
        self.require_top()
        if self._acting is None:
            return
        tab = self.browsers.book.get(self.tab_id) or self.tab
        for site in dict.fromkeys(sites):
            if site != tab.site:
                await self._acting.require_frame(self.tab_id, site)
        self._frame = (frame_id, sites[0]) if frame_id is not None else None

    def shown_element(self, target: Mapping[str, Any]) -> ShownElement | None:
        """The element that the person was shown for a target, if the call was approved for it."""
        acting = self._acting
        return acting.shown.get(target_key(target)) if acting is not None and acting.shown else None

    def note_target(
        self, target: Mapping[str, Any], label: str, area: tuple[float, float, float, float] | None = None
    ) -> None:
        """Note the element that a call which may change something works on."""
        if self._acting is not None:
            self._acting.note_target(target_key(target), label, area)

    @property
    def frames_matter(self) -> bool:
        """Whether the frame that the call acts in may decide whether it may."""
        return self._acting is not None and self._acting.frames_matter()

    def elsewhere_note(self) -> str:
        """A note if the tab has gone to another site since the call began."""
        tab = self.browsers.book.get(self.tab_id)
        if tab is self.tab or tab is None or tab.site == self.tab.site or self.is_hidden:
            return ""
        return f"The tab shows another site now, {tab.site}: what you do there is checked for that site."

    async def raise_failure(self, message: str) -> None:
        """Raise the error for a command that failed as part of another one."""
        raise self.describe_failure(message) or CommandFailed(message)

    def describe_failure(self, message: str) -> CommandFailed | None:
        """A clearer error for a known message of the browser; None for others."""
        for part, error, text, hint in _FAILURES:
            if part in message:
                return error(text.format(tab=self.tab_id, url=self.tab.url[:200], message=message), hint=hint)
        return None

    def cdp_encoded(self, params: bytes) -> Awaitable[bytes]:
        """Send one CDP command that is already encoded (`"method":…,"params":…`); the result is bytes, too."""
        self.ensure_watching()
        where = orjson.dumps({"tabId": self.tab.chrome_id, **self.require_site()})[:-1]
        encoded = b"%b,%b}" % (where, params)
        return self.command("forwardCDPCommand", encoded=encoded, raw=True)

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
        self.ensure_watching()
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
        send_cdp_nowait(self.key, method, params, session_id)


def _acts(command: str, params: Mapping[str, Any]) -> bool:
    """Whether a command acts on the page that the tab shows. Scripts do not count: each is bound to its document."""
    if command != "forwardCDPCommand":
        return command not in _UNCHECKED
    return "follow" in params or str(params.get("method")).startswith(_INPUT)


def send_cdp(
    key: TabKey, method: str, params: dict[str, Any] | None = None, session_id: str | None = None
) -> Future[Any] | None:
    """Send one command; None if the link is closed. The caller must consume the future's exception."""
    link, chrome_id = key
    if link.closed is not None:
        return None
    command: dict[str, Any] = {"tabId": chrome_id, "method": method, "params": params or {}}
    if session_id is not None:
        command["sessionId"] = session_id
    return link.request("forwardCDPCommand", command)


def send_cdp_nowait(
    key: TabKey, method: str, params: dict[str, Any] | None = None, session_id: str | None = None
) -> None:
    """Send one command and ignore how it ends: for cleanup, and for what only prepares the next command."""
    sent = send_cdp(key, method, params, session_id)
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
