"""Sites opened for a call: a background tab at a URL, without waiting for the page to load."""

from __future__ import annotations

from typing import Protocol

from tabhub.links.browsers import Browsers


class Sites(Protocol):
    """How the hub opens a site in a tab."""

    async def open(self, url: str) -> int:
        """Open a background tab and return its id; the page may still be loading."""
        ...

    async def revisit(self, tab_id: int, url: str) -> None:
        """Load a URL again in a tab that was opened here."""
        ...


class LinkSites:
    """Sites in the connected browsers."""

    def __init__(self, browsers: Browsers) -> None:
        self._browsers = browsers

    async def open(self, url: str) -> int:
        """Open a tab in the browser used last."""
        link = self._browsers.default_link()
        reply = await link.request("createTab", {"url": url, "active": False})
        return self._browsers.update_tab(link, reply).tab_id

    async def revisit(self, tab_id: int, url: str) -> None:
        ref = self._browsers.tab(tab_id)
        await ref.link.request("browser_navigate", {"tabId": ref.tab.chrome_id, "url": url, "waitUntil": "none"})
