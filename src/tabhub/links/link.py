"""A link: one way to reach one browser. The extension's WebSocket is one; a relay will be another.

Owns the interface the browser tools are written against, and the vocabulary of commands every link speaks.
"""

from __future__ import annotations

from asyncio import Future
from typing import Any, Protocol

COMMANDS = frozenset(
    {
        "getState",
        "getTabs",
        "createTab",
        "selectTab",
        "activateTab",
        "closeTab",
        "browser_navigate",
        "goBack",
        "goForward",
        "reloadTab",
        "forwardCDPCommand",
        "subscribeCDPEvents",
        "click",
        "hover",
        "type",
        "screenshot",
        "browser/executeTool",
        "tool.dispatch",
        "plugin.uninstall",
        "getGroups",
        "createGroup",
        "addToGroup",
        "removeFromGroup",
        "updateGroup",
        "getWindows",
        "createWindow",
        "updateWindow",
        "closeWindow",
        "searchHistory",
        "getVisits",
        "getRecentlyClosed",
        "restoreSession",
        "searchBookmarks",
        "createBookmark",
        "getBookmarkTree",
        "downloadFile",
        "getDownloads",
        "getDownload",
        "getCookies",
        "setCookie",
        "deleteCookies",
        "clearSiteData",
        "showNotification",
        "getLogs",
        "getPanels",
        "getAdapters",
    }
)
"""What may be asked of a browser; everything else is refused on both sides."""
CONNECT_ANEW = 4006
"""The close code after which a browser connects again at once."""


class Link(Protocol):
    """One connected browser."""

    browser_id: str
    name: str

    def request(self, method: str, params: dict[str, Any]) -> Future[Any]:
        """Send one command; the future resolves with its `result`.

        It fails with CommandFailed when the browser refused, and with LinkLost when the connection ended first.
        Cancelling the future tells the browser to stop.
        """
        ...

    def notify(self, method: str, params: dict[str, Any]) -> None:
        """Send one notification."""
        ...

    def close(self, code: int, reason: str) -> None:
        """End the link."""
        ...
