"""One connected browser: its link, when it connected, what it reported about itself, and the state of each part.

Owns these facts for health and status. Which browsers there are is known elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from tabhub.core.tabs import TabTable
from tabhub.links.extension import ExtensionLink
from tabhub.wire.extension_link import ExtensionHello

FACTS = ("browserName", "browserVersion", "extensionVersion", "platform")
_MAX_TEXT = 200


@dataclass(slots=True)
class ConnectedBrowser:
    """One connected browser."""

    link: ExtensionLink
    since: float
    hello: dict[str, Any] = field(default_factory=dict)
    introduced: bool = False
    """Whether it has said what it is, and so whether the hub started it."""
    attached: frozenset[int] = frozenset()
    """The tabs its debugger is attached to."""
    synced: bool = False
    """Whether it has reported all its tabs."""

    def apply_hello(self, hello: ExtensionHello) -> None:
        self.introduced = True
        facts = msgspec.to_builtins(hello)
        self.hello = {name: facts[name][:_MAX_TEXT] for name in FACTS if facts[name] is not None}
        if hello.managed and self.link.local:
            self.hello["managed"] = True

    def describe(self, book: TabTable) -> dict[str, Any]:
        """Its parts: socket, extension, tabs, debugger."""
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
            "stoppedTabs": [tab.tab_id for tab in tabs if tab.stopped],
        }
