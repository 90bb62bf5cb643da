"""The commands of the extension link: everything the hub may ask of a browser, with its parameters and its result.

This table is the allow-list of both sides: a method that is not in it is refused. Results of the Chrome DevTools
Protocol pass through as they are (browser/driver/cdp_values.py parses them).
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import msgspec

from tabhub.wire.extension_link import BrowserFacts, DebuggerState, Empty, Nothing, TabInfo, Tabs
from tabhub.wire.messages import Object, Received, TabId, received, sent
from tabhub.wire.page_tools import ExecuteTool, ToolOutcome

_TEXT = str | None
_WHOLE = int | None
_NUMBER = float | None
_FLAG = bool | None


class BrowserState(BrowserFacts):
    """The browser and its extension."""

    started_at: float | None = None
    tabs: int = 0
    windows: int = 0
    debugger: DebuggerState | None = None
    last_error: str | None = None


# tabs

TabList = received("TabList", "All tabs.", tabs=Tabs)
GroupChoice = sent("GroupChoice", "The tab group kept for a key, such as an agent.", key=str, title=str, color=str)
CreateTab = sent(
    "CreateTab",
    "Open a tab, in the background unless `active`.",
    url=_TEXT,
    active=False,
    window_id=_WHOLE,
    index=_WHOLE,
    opener_tab_id=_WHOLE,
    wait_until=Literal["none", "load"] | None,
    group=GroupChoice | None,
)
OneTab = sent("OneTab", "A command on a tab.", tab_id=TabId)
ActivateTab = sent("ActivateTab", "Bring a tab to the front of its window.", tab_id=TabId, focus_window=False)
Closed = received("Closed", "A tab or window was closed.", closed=bool)
Navigate = sent(
    "Navigate",
    "Load a URL in a tab.",
    tab_id=TabId,
    url=str,
    wait_until=Literal["none", "commit", "load"] | None,
    timeout_ms=_WHOLE,
)
Arrival = received(
    "Arrival",
    "Where a tab is after it was moved.",
    tab_id=TabId,
    url="",
    title="",
    status="",
    ok=True,
    http_status=_WHOLE,
    error=_TEXT,
)
ReloadTab = sent("ReloadTab", "Load the page of a tab again.", tab_id=TabId, ignore_cache=False)

# CDP

CdpCommand = sent(
    "CdpCommand",
    "A command of the Chrome DevTools Protocol that travels with another one.",
    method=str,
    params=Object | None,
)
# `ahead` is sent before the command and not waited for; the results of scripts in it come with the answer. `follow` is
# sent after a script if its value, or that of a script ahead of it, has `go: true`. With a `site`, all of them are sent
# only while the tab shows it.
ForwardCdpCommand = sent(
    "ForwardCdpCommand",
    "A command of the Chrome DevTools Protocol.",
    tab_id=TabId,
    method=str,
    params=Object | None,
    session_id=_TEXT,
    interruptible=False,
    site=_TEXT,
    ahead=[CdpCommand],
    follow=[CdpCommand],
)
# `children` are sent to every new frame in another process and every new worker, before it runs.
SubscribeCdpEvents = sent(
    "SubscribeCdpEvents",
    "The CDP events a tab sends from now on.",
    tab_id=TabId,
    events=list[str],
    children=[CdpCommand],
)

# input

_POINT: Object = {"tab_id": TabId, "selector": _TEXT, "x": _NUMBER, "y": _NUMBER}
Hover = sent("Hover", "Move the mouse over an element or a point.", **_POINT)
Click = sent(
    "Click",
    "Click an element or a point.",
    **_POINT,
    button=Literal["left", "right", "middle"] | None,
    click_count=_WHOLE,
)
# `dialog` is the text of a dialog that opened instead.
Pointed = received("Pointed", "Where in the viewport the mouse was used.", x=_NUMBER, y=_NUMBER, dialog=_TEXT)
Type = sent(
    "Type", "Type text into an element, or the focused one.", tab_id=TabId, text=str, selector=_TEXT, clear=False
)
Typed = received("Typed", "How many characters were typed.", typed=_WHOLE, dialog=_TEXT)
Screenshot = sent(
    "Screenshot",
    "Take a picture of a tab.",
    tab_id=TabId,
    format=Literal["png", "jpeg", "webp"] | None,
    full_page=False,
)
Picture = received("Picture", "A picture in base64.", data=str, mime_type=str)

# plugins

DispatchTool = sent(
    "DispatchTool",
    "A call of a plugin's tool.",
    tab_id=TabId,
    plugin=str,
    tool=str,
    input=Object,
    dispatch_id=str,
    url_patterns=[str],
    timeout_ms=_WHOLE,
)


class DispatchResult(Received):
    """What a plugin's tool returned."""

    output: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


PluginName = sent("PluginName", "A plugin.", name=str)

# tab groups

Group = received(
    "Group", "A tab group.", group_id=int, title="", color="", collapsed=False, window_id=-1, tab_ids=[int]
)
Groups = received("Groups", "All tab groups.", groups=[Group])
CreateGroup = sent(
    "CreateGroup", "Put tabs into a new group.", tab_ids=list[int], title=_TEXT, color=_TEXT, collapsed=_FLAG
)
AddToGroup = sent("AddToGroup", "Put tabs into a group.", group_id=int, tab_ids=list[int])
SomeTabs = sent("SomeTabs", "Tabs.", tab_ids=list[int])
UpdateGroup = sent("UpdateGroup", "Change a group.", group_id=int, title=_TEXT, color=_TEXT, collapsed=_FLAG)

# windows

_SIZE: Object = {"left": _WHOLE, "top": _WHOLE, "width": _WHOLE, "height": _WHOLE}
_PLACE: Object = {"state": _TEXT, **_SIZE, "focused": _FLAG}
CreateWindow = sent("CreateWindow", "Open a window.", **_PLACE, url=_TEXT, incognito=False)
UpdateWindow = sent("UpdateWindow", "Change a window.", window_id=int, **_PLACE)
OneWindow = sent("OneWindow", "A window.", window_id=int)
Window = received(
    "Window",
    "A window.",
    window_id=int,
    focused=False,
    incognito=False,
    state=_TEXT,
    type=_TEXT,
    **_SIZE,
    active_tab_id=_WHOLE,
    tab_ids=[int],
)
Windows = received("Windows", "All windows.", windows=[Window])
NewWindow = received("NewWindow", "A window that was opened, and its tab.", window=Window, tab=TabInfo)

# history

SearchHistory = sent(
    "SearchHistory", "Find visited pages.", query=_TEXT, max_results=_WHOLE, start_time=_NUMBER, end_time=_NUMBER
)
HistoryEntry = received(
    "HistoryEntry", "A visited page.", url=str, title="", last_visit_time=_TEXT, visit_count=0, typed_count=0
)
History = received("History", "Visited pages; `cut` if there are more.", entries=[HistoryEntry], cut=False)
OneUrl = sent("OneUrl", "A URL.", url=str)
Visit = received(
    "Visit", "One visit of a page.", visit_id=str, visit_time=_TEXT, transition="", referring_visit_id=_TEXT
)
# `more` is how many were left out.
Visits = received("Visits", "The visits of a page, newest first.", visits=[Visit], more=0)
MaxResults = sent("MaxResults", "How many at most.", max_results=_WHOLE)
ClosedPage = received("ClosedPage", "A page of a closed window.", url="", title="")
ClosedSession = received(
    "ClosedSession",
    "A closed tab or window that can be restored.",
    session_id=str,
    kind=Literal["tab", "window"],
    closed_at=_TEXT,
    url=_TEXT,
    title=_TEXT,
    tab_count=_WHOLE,
    tabs=[ClosedPage],
)
RecentlyClosed = received("RecentlyClosed", "Closed tabs and windows.", closed=[ClosedSession])
RestoreSession = sent("RestoreSession", "Restore a closed tab or window.", session_id=str)
Restored = received("Restored", "The tabs that were restored.", kind=Literal["tab", "window"], tabs=[TabInfo])

# bookmarks

SearchBookmarks = sent("SearchBookmarks", "Find bookmarks.", query=_TEXT)


class Bookmark(Received):
    """A bookmark or a folder of bookmarks."""

    id: str
    title: str = ""
    url: str | None = None
    parent_id: str | None = None
    date_added: str | None = None
    children: list[Bookmark] | None = None
    more: int = 0


Bookmarks = received("Bookmarks", "Bookmarks that were found.", bookmarks=[Bookmark], more=0)
CreateBookmark = sent("CreateBookmark", "Add a bookmark.", url=str, title=_TEXT, parent_id=_TEXT)
BookmarkFolder = sent("BookmarkFolder", "Which bookmarks to list.", parent_id=_TEXT, max_depth=_WHOLE)
BookmarkTree = received("BookmarkTree", "Bookmarks with their folders.", roots=[Bookmark])

# downloads

# `cancel_late`: a download that begins after the answer is stopped.
DownloadFile = sent("DownloadFile", "Download a URL.", url=str, filename=_TEXT, save_as=False, cancel_late=False)
GetDownloads = sent("GetDownloads", "Which downloads to list.", query=_TEXT, state=_TEXT, limit=_WHOLE)
OneDownload = sent("OneDownload", "A download.", download_id=int)
DiscardDownload = sent(
    "DiscardDownload",
    "A download to stop and delete, by its id or as the newest of a URL; from the hub on this machine only.",
    download_id=_WHOLE,
    url=_TEXT,
)
Discarded = received("Discarded", "Whether no file of a download is left.", discarded=False)
Download = received(
    "Download",
    "A download.",
    download_id=int,
    url="",
    start_url=_TEXT,
    referrer=_TEXT,
    filename="",
    state="",
    bytes_received=0.0,
    total_bytes=0.0,
    mime=_TEXT,
    start_time=_TEXT,
    end_time=_TEXT,
    error=_TEXT,
    danger=_TEXT,
    paused=False,
    deleted=False,
)
Downloads = received("Downloads", "Downloads, newest first; `cut` if there are more.", downloads=[Download], cut=False)

# site data

GetCookies = sent("GetCookies", "Which cookies to list.", url=str, name=_TEXT)
Cookie = received(
    "Cookie",
    "A cookie.",
    name=str,
    value="",
    domain="",
    path="",
    secure=False,
    http_only=False,
    same_site="",
    session=False,
    host_only=False,
    expiration_date=_NUMBER,
    partition=_TEXT,
)
Cookies = received("Cookies", "Cookies of a URL.", cookies=[Cookie], more=0)
SetCookie = sent(
    "SetCookie",
    "Set a cookie.",
    url=str,
    name=str,
    value=_TEXT,
    domain=_TEXT,
    path=_TEXT,
    secure=_FLAG,
    http_only=_FLAG,
    expiration_date=_NUMBER,
)
DeleteCookies = sent("DeleteCookies", "Delete the cookies of that name.", url=str, name=str)
Deleted = received("Deleted", "How many cookies were deleted.", deleted=int)
ClearSiteData = sent(
    "ClearSiteData",
    "What to delete of a site.",
    origin=str,
    cookies=False,
    local_storage=False,
    cache=False,
    indexedDB=False,
    service_workers=False,
)
Cleared = received("Cleared", "What was deleted.", origin=str, cleared=[str])

# the extension itself

ShowNotification = sent(
    "ShowNotification",
    "Show a notification of an agent on the desktop.",
    agent=str,
    title=str,
    message=_TEXT,
    image_url=_TEXT,
    require_interaction=_FLAG,
    context_message=_TEXT,
    url=_TEXT,
)
Notification = received(
    "Notification", "A notification; `allowed` if the system shows it.", notification_id=str, allowed=bool
)
GetLogs = sent(
    "GetLogs", "Which lines of the extension's log to list.", level=_TEXT, source=_TEXT, limit=_WHOLE, since=_NUMBER
)
LogLine = received("LogLine", "A line of the extension's log.", level=str, source=str, message=str, time=str)
Logs = received("Logs", "The extension's log.", entries=[LogLine], sources=[str], more=0)
OpenPage = received(
    "OpenPage", "A page of the extension that is open.", kind=str, page=str, window_id=int, tab_id=_WHOLE
)
PanelText = received(
    "PanelText",
    "What the extension's popup shows.",
    headline=str,
    explanation=str,
    tabs=int,
    debugged=int,
    last_error=_TEXT,
)
Panels = received("Panels", "The extension's open pages, and what they show.", open=[OpenPage], shows=PanelText | None)
AdapterFacts = received(
    "AdapterFacts",
    "A plugin's adapter and the tabs that have it.",
    plugin=str,
    hash=str,
    matches=[str],
    world="",
    tab_ids=[int],
)
Adapters = received("Adapters", "The adapters of all plugins.", adapters=[AdapterFacts])


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
    "resumeTab": Command(OneTab, TabInfo),
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
    "discardDownload": Command(DiscardDownload, Discarded),
    "getCookies": Command(GetCookies, Cookies),
    "setCookie": Command(SetCookie, Cookie),
    "deleteCookies": Command(DeleteCookies, Deleted),
    "clearSiteData": Command(ClearSiteData, Cleared),
    "showNotification": Command(ShowNotification, Notification),
    "getLogs": Command(GetLogs, Logs),
    "getPanels": Command(Empty, Panels),
    "getAdapters": Command(Empty, Adapters),
}

# Results of tools arrive as bytes, which their callers decode.
RESULTS: dict[str, type[msgspec.Struct]] = {
    method: command.result
    for method, command in COMMANDS.items()
    if command.result not in (Any, ToolOutcome, DispatchResult)
}
"""The results that are checked on arrival, by command."""
