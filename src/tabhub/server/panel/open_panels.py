"""The open panels, which are notified of what happens."""

from __future__ import annotations

from typing import Any

from tabhub.links.extension import ExtensionLink


class OpenPanels:
    """Links of extensions whose panel is open."""

    def __init__(self) -> None:
        self._links: set[ExtensionLink] = set()

    def __bool__(self) -> bool:
        return bool(self._links)

    def set_open(self, link: ExtensionLink, *, is_open: bool) -> None:
        if is_open:
            self._links.add(link)
        else:
            self._links.discard(link)

    def drop_closed(self) -> None:
        self._links = {link for link in self._links if link.closed is None}

    def clear(self) -> None:
        self._links.clear()

    def notify(self, method: str, params: dict[str, Any], also: ExtensionLink | None = None) -> None:
        """Notify every open panel, and `also` one that may not be open any longer."""
        for link in self._links | ({also} if also is not None else set()):
            if link.closed is None:
                link.notify(method, params)
