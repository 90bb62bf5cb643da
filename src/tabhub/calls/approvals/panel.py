"""The panel's channel: requests for approval shown by the extensions on this machine, as card and notification.

Owns what the extension is sent. Its answer comes back as `confirmation.response` (server.panel).
"""

from __future__ import annotations

from typing import Any

from tabhub.links.browsers import Browsers


class PanelChannel:
    """Sends requests to every local extension."""

    def __init__(self, browsers: Browsers) -> None:
        self._browsers = browsers

    def show(self, facts: dict[str, Any]) -> None:
        self._notify("confirmation.request", {**facts, "notify": True})

    def close(self, request_id: str, decision: str | None, by: str) -> None:
        self._notify("confirmation.done", {"id": request_id, "decision": decision, "by": by})

    def _notify(self, method: str, params: dict[str, Any]) -> None:
        for link in self._browsers.links():
            if link.local:
                link.notify(method, params)
