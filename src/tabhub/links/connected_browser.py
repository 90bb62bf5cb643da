"""One connected browser: its link, since when it is there, what it said of itself, and its legs told apart.

Owns these facts for health and status. Which browsers there are, and what is done with what they tell, is known
elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tabhub.core.tabs import TabTable
from tabhub.links.extension import ExtensionLink

_HELLO = ("browserName", "browserVersion", "extensionVersion", "platform")


@dataclass(slots=True)
class Seat:
    """One connected browser."""

    link: ExtensionLink
    since: float
    hello: dict[str, Any] = field(default_factory=dict)
    attached: frozenset[int] = frozenset()
    """The tabs its debugger is attached to, as far as it told."""
    synced: bool = False
    """Whether it has told all its tabs."""

    def greeted(self, params: dict[str, Any]) -> None:
        """Take what the extension says of itself."""
        self.hello = {name: str(params[name])[:200] for name in _HELLO if isinstance(params.get(name), str)}
        if params.get("managed") is True and self.link.local:
            self.hello["managed"] = True
        self.link.name = self.hello.get("browserName", self.link.name)

    def facts(self, book: TabTable) -> dict[str, Any]:
        """Its legs: socket, extension, tabs, debugger."""
        link = self.link
        tabs = book.of(link.browser_id)
        return {
            "browserId": link.browser_id,
            "connected": True,
            **({} if link.local else {"relay": True}),
            **self.hello,
            "socket": {
                "connectedAt": self.since,
                "silentSeconds": round(max(0.0, link.loop.time() - link.last_seen), 3),
                "pending": link.pending,
                "droppedReplies": link.dropped,
                "malformed": link.counts.malformed,
                "refused": link.counts.refused,
            },
            "extension": {"saidHello": bool(self.hello), "sentTabs": self.synced},
            "tabs": len(tabs),
            "windows": len({tab.window_id for tab in tabs}),
            "debugger": {"attachedTabs": [tab.tab_id for tab in tabs if tab.chrome_id in self.attached]},
        }
