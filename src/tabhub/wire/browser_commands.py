"""The commands of the extension link: everything the hub may ask of a browser, with its parameters and its result.

This table is the allow-list of both sides: a method that is not in it is refused. Results of the Chrome DevTools
Protocol pass through as they are (browser/cdp_values reads them).
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import msgspec

from tabhub.wire.extension_link import BrowserFacts, DebuggerState, Empty, Nothing, TabInfo
from tabhub.wire.messages import Object, Received, Sent, TabId
from tabhub.wire.page_tools import ExecuteTool, ToolOutcome


class BrowserState(BrowserFacts):
    """The browser and its extension."""

    started_at: float | None = None
    tabs: int = 0
    windows: int = 0
    debugger: DebuggerState | None = None
    last_error: str | None = None


class TabList(Received):
    """All tabs."""

    tabs: list[TabInfo] = []


class GroupChoice(Sent):
    """The tab group kept for a key, such as a session."""

    key: str
    title: str


class CreateTab(Sent):
    """Open a tab, in the background unless `active`."""

    url: str | None = None
    active: bool = False
    window_id: int | None = None
    index: int | None = None
    opener_tab_id: int | None = None
    wait_until: Literal["none", "load"] | None = None
    group: GroupChoice | None = None


class OneTab(Sent):
    """A command on a tab."""

    tab_id: TabId


class ActivateTab(OneTab):
    """Bring a tab to the front of its window."""

    focus_window: bool = False


class Closed(Received):
    """A tab or window was closed."""

    closed: bool


class Navigate(OneTab):
    """Load a URL in a tab."""

    url: str
    wait_until: Literal["none", "commit", "load"] | None = None
    timeout_ms: int | None = None


class Arrival(Received):
    """Where a tab is after it was moved."""

    tab_id: TabId
    url: str = ""
    title: str = ""
    status: str = ""
    ok: bool = True
    http_status: int | None = None
    error: str | None = None


class ReloadTab(OneTab):
    """Load the page of a tab again."""

    ignore_cache: bool = False


class CdpCommand(Sent):
    """A command of the Chrome DevTools Protocol that travels with another one."""

    method: str
    params: Object | None = None


class ForwardCdpCommand(OneTab):
    """A command of the Chrome DevTools Protocol."""

    method: str
    params: Object | None = None
    session_id: str | None = None
    interruptible: bool = False
    ahead: list[CdpCommand] = []
    """Sent before it, not waited for."""
    follow: list[CdpCommand] = []
    """Sent after a script whose value has `go: true`."""


class SubscribeCdpEvents(OneTab):
    """The CDP events a tab sends from now on."""

    events: list[str]
    children: list[CdpCommand] = []
    """Sent to every new frame in another process and every new worker, before it runs."""


class Hover(OneTab):
    """Move the mouse over an element or a point."""

    selector: str | None = None
    x: float | None = None
    y: float | None = None


class Click(Hover):
    """Click an element or a point."""

    button: Literal["left", "right", "middle"] | None = None
    click_count: int | None = None


class Pointed(Received):
    """Where in the viewport the mouse was used."""

    x: float | None = None
    y: float | None = None
    dialog: str | None = None
    """The text of a dialog that opened instead."""


class Type(OneTab):
    """Type text into an element, or the focused one."""

    text: str
    selector: str | None = None
    clear: bool = False


class Typed(Received):
    """How many characters were typed."""

    typed: int | None = None
    dialog: str | None = None


class Screenshot(OneTab):
    """Take a picture of a tab."""

    format: Literal["png", "jpeg", "webp"] | None = None
    full_page: bool = False


class Picture(Received):
    """A picture in base64."""

    data: str
    mime_type: str


class DispatchTool(OneTab):
    """A call of a plugin's tool."""

    plugin: str
    tool: str
    input: Object
    dispatch_id: str
    url_patterns: list[str] = []
    timeout_ms: int | None = None


class DispatchResult(Received):
    """What a plugin's tool returned."""

    output: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class PluginName(Sent):
    """A plugin."""

    name: str


class Group(Received):
    """A tab group."""

    group_id: int
    title: str = ""
    color: str = ""
    collapsed: bool = False
    window_id: int = -1
    tab_ids: list[int] = []


class Groups(Received):
    """All tab groups."""

    groups: list[Group] = []


class CreateGroup(Sent):
    """Put tabs into a new group."""

    tab_ids: list[int]
    title: str | None = None
    color: str | None = None
    collapsed: bool | None = None


class AddToGroup(Sent):
    """Put tabs into a group."""

    group_id: int
    tab_ids: list[int]


class SomeTabs(Sent):
    """Tabs."""

    tab_ids: list[int]


class UpdateGroup(Sent):
    """Change a group."""

    group_id: int
    title: str | None = None
    color: str | None = None
    collapsed: bool | None = None


class WindowPlace(Sent):
    """State, position and size of a window."""

    state: str | None = None
    left: int | None = None
    top: int | None = None
    width: int | None = None
    height: int | None = None
    focused: bool | None = None


class CreateWindow(WindowPlace):
    """Open a window."""

    url: str | None = None
    incognito: bool = False


class UpdateWindow(WindowPlace, kw_only=True):
    """Change a window."""

    window_id: int


class OneWindow(Sent):
    """A window."""

    window_id: int


class Window(Received):
    """A window."""

    window_id: int
    focused: bool = False
    incognito: bool = False
    state: str | None = None
    type: str | None = None
    left: int | None = None
    top: int | None = None
    width: int | None = None
    height: int | None = None
    active_tab_id: int | None = None
    tab_ids: list[int] = []


class Windows(Received):
    """All windows."""

    windows: list[Window] = []


class NewWindow(Received):
    """A window that was opened, and its tab."""

    window: Window
    tab: TabInfo


class SearchHistory(Sent):
    """Find visited pages."""

    query: str | None = None
    max_results: int | None = None
    start_time: float | None = None
    end_time: float | None = None


class HistoryEntry(Received):
    """A visited page."""

    url: str
    title: str = ""
    last_visit_time: str | None = None
    visit_count: int = 0
    typed_count: int = 0


class History(Received):
    """Visited pages; `cut` if there are more."""

    entries: list[HistoryEntry] = []
    cut: bool = False


class OneUrl(Sent):
    """A URL."""

    url: str


class Visit(Received):
    """One visit of a page."""

    visit_id: str
    visit_time: str | None = None
    transition: str = ""
    referring_visit_id: str | None = None


class Visits(Received):
    """The visits of a page, newest first."""

    visits: list[Visit] = []
    more: int = 0
    """How many were left out."""


class MaxResults(Sent):
    """How many at most."""

    max_results: int | None = None


class ClosedPage(Received):
    """A page of a closed window."""

    url: str = ""
    title: str = ""


class ClosedSession(Received):
    """A closed tab or window that can be restored."""

    session_id: str
    kind: Literal["tab", "window"]
    closed_at: str | None = None
    url: str | None = None
    title: str | None = None
    tab_count: int | None = None
    tabs: list[ClosedPage] = []


class RecentlyClosed(Received):
    """Closed tabs and windows."""

    closed: list[ClosedSession] = []


class RestoreSession(Sent):
    """Restore a closed tab or window."""

    session_id: str


class Restored(Received):
    """The tabs that were restored."""

    kind: Literal["tab", "window"]
    tabs: list[TabInfo] = []


class SearchBookmarks(Sent):
    """Find bookmarks."""

    query: str | None = None


class Bookmark(Received):
    """A bookmark or a folder of bookmarks."""

    id: str
    title: str = ""
    url: str | None = None
    parent_id: str | None = None
    date_added: str | None = None
    children: list[Bookmark] | None = None
    more: int = 0


class Bookmarks(Received):
    """Bookmarks that were found."""

    bookmarks: list[Bookmark] = []
    more: int = 0


class CreateBookmark(Sent):
    """Add a bookmark."""

    url: str
    title: str | None = None
    parent_id: str | None = None


class BookmarkFolder(Sent):
    """Which bookmarks to list."""

    parent_id: str | None = None
    max_depth: int | None = None


class BookmarkTree(Received):
    """Bookmarks with their folders."""

    roots: list[Bookmark] = []


class DownloadFile(Sent):
    """Download a URL."""

    url: str
    filename: str | None = None
    save_as: bool = False


class GetDownloads(Sent):
    """Which downloads to list."""

    query: str | None = None
    state: str | None = None
    limit: int | None = None


class OneDownload(Sent):
    """A download."""

    download_id: int


class Download(Received):
    """A download."""

    download_id: int
    url: str = ""
    filename: str = ""
    state: str = ""
    bytes_received: float = 0
    total_bytes: float = 0
    mime: str | None = None
    start_time: str | None = None
    end_time: str | None = None
    error: str | None = None
    danger: str | None = None
    paused: bool = False
    deleted: bool = False


class Downloads(Received):
    """Downloads, newest first; `cut` if there are more."""

    downloads: list[Download] = []
    cut: bool = False


class GetCookies(Sent):
    """Which cookies to list."""

    url: str
    name: str | None = None


class Cookie(Received):
    """A cookie."""

    name: str
    value: str = ""
    domain: str = ""
    path: str = ""
    secure: bool = False
    http_only: bool = False
    same_site: str = ""
    session: bool = False
    host_only: bool = False
    expiration_date: float | None = None
    partition: str | None = None


class Cookies(Received):
    """Cookies of a URL."""

    cookies: list[Cookie] = []
    more: int = 0


class SetCookie(Sent):
    """Set a cookie."""

    url: str
    name: str
    value: str | None = None
    domain: str | None = None
    path: str | None = None
    secure: bool | None = None
    http_only: bool | None = None
    expiration_date: float | None = None


class DeleteCookies(Sent):
    """Delete the cookies of that name."""

    url: str
    name: str


class Deleted(Received):
    """How many cookies were deleted."""

    deleted: int


class ClearSiteData(Sent):
    """What to delete of a site."""

    origin: str
    cookies: bool = False
    local_storage: bool = False
    cache: bool = False
    indexed_db: bool = msgspec.field(default=False, name="indexedDB")
    service_workers: bool = False


class Cleared(Received):
    """What was deleted."""

    origin: str
    cleared: list[str] = []


class ShowNotification(Sent):
    """Show a notification on the desktop."""

    title: str
    message: str | None = None
    icon_url: str | None = None
    require_interaction: bool | None = None
    context_message: str | None = None
    url: str | None = None


class Notification(Received):
    """A notification; `allowed` if the system shows it."""

    notification_id: str
    allowed: bool


class GetLogs(Sent):
    """Which lines of the extension's log to list."""

    level: str | None = None
    source: str | None = None
    limit: int | None = None
    since: float | None = None


class LogLine(Received):
    """A line of the extension's log."""

    level: str
    source: str
    message: str
    time: str


class Logs(Received):
    """The extension's log."""

    entries: list[LogLine] = []
    sources: list[str] = []
    more: int = 0


class OpenPage(Received):
    """A page of the extension that is open."""

    kind: str
    page: str
    window_id: int
    tab_id: int | None = None


class PanelText(Received):
    """What the extension's popup shows."""

    headline: str
    explanation: str
    tabs: int
    debugged: int
    last_error: str | None = None


class Panels(Received):
    """The extension's open pages, and what they show."""

    open: list[OpenPage] = []
    shows: PanelText | None = None


class AdapterFacts(Received):
    """A plugin's adapter and the tabs that have it."""

    plugin: str
    hash: str
    matches: list[str] = []
    world: str = ""
    tab_ids: list[int] = []


class Adapters(Received):
    """The adapters of all plugins."""

    adapters: list[AdapterFacts] = []


class Command(NamedTuple):
    """The types of a command; `result` is Any where it passes through unread."""

    params: type[msgspec.Struct]
    result: Any


COMMANDS: dict[str, Command] = {
    "getState": Command(Empty, BrowserState),
    "getTabs": Command(Empty, TabList),
    "createTab": Command(CreateTab, TabInfo),
    "selectTab": Command(OneTab, TabInfo),
    "activateTab": Command(ActivateTab, TabInfo),
    "closeTab": Command(OneTab, Closed),
    "browser_navigate": Command(Navigate, Arrival),
    "goBack": Command(OneTab, Arrival),
    "goForward": Command(OneTab, Arrival),
    "reloadTab": Command(ReloadTab, Arrival),
    "forwardCDPCommand": Command(ForwardCdpCommand, Any),
    "subscribeCDPEvents": Command(SubscribeCdpEvents, Nothing),
    "click": Command(Click, Pointed),
    "hover": Command(Hover, Pointed),
    "type": Command(Type, Typed),
    "screenshot": Command(Screenshot, Picture),
    "browser/executeTool": Command(ExecuteTool, ToolOutcome),
    "tool.dispatch": Command(DispatchTool, DispatchResult),
    "plugin.uninstall": Command(PluginName, Nothing),
    "getGroups": Command(Empty, Groups),
    "createGroup": Command(CreateGroup, Group),
    "addToGroup": Command(AddToGroup, Group),
    "removeFromGroup": Command(SomeTabs, Nothing),
    "updateGroup": Command(UpdateGroup, Group),
    "getWindows": Command(Empty, Windows),
    "createWindow": Command(CreateWindow, NewWindow),
    "updateWindow": Command(UpdateWindow, Window),
    "closeWindow": Command(OneWindow, Closed),
    "searchHistory": Command(SearchHistory, History),
    "getVisits": Command(OneUrl, Visits),
    "getRecentlyClosed": Command(MaxResults, RecentlyClosed),
    "restoreSession": Command(RestoreSession, Restored),
    "searchBookmarks": Command(SearchBookmarks, Bookmarks),
    "createBookmark": Command(CreateBookmark, Bookmark),
    "getBookmarkTree": Command(BookmarkFolder, BookmarkTree),
    "downloadFile": Command(DownloadFile, Download),
    "getDownloads": Command(GetDownloads, Downloads),
    "getDownload": Command(OneDownload, Download),
    "getCookies": Command(GetCookies, Cookies),
    "setCookie": Command(SetCookie, Cookie),
    "deleteCookies": Command(DeleteCookies, Deleted),
    "clearSiteData": Command(ClearSiteData, Cleared),
    "showNotification": Command(ShowNotification, Notification),
    "getLogs": Command(GetLogs, Logs),
    "getPanels": Command(Empty, Panels),
    "getAdapters": Command(Empty, Adapters),
}
