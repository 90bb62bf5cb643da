"""The open panels, which are notified of what happens."""

from __future__ import annotations

from typing import Any

from tabhub.links.extension import ExtensionLink


class OpenPanels(set[ExtensionLink]):
    """Links of extensions whose panel is open."""

    def notify(self, method: str, params: dict[str, Any], also: ExtensionLink | None = None) -> None:
        """Notify every open panel, and `also` one that may not be open any longer."""
        for link in self | ({also} if also is not None else set()):
            if link.closed is None:
                link.notify(method, params)
