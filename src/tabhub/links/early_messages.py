"""Messages of pages in tabs that their browser has not reported yet.

Owns how many are kept of one browser, and how many bytes: beyond that the tab with the most gives way. Knows no link.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from tabhub.wire.page_tools import PageMessage

_TABS = 200
_PER_TAB = 50


class _Early(NamedTuple):
    message: PageMessage
    size: int


class EarlyMessages:
    """The early messages of one browser, by the browser's own ids of tabs."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._waiting: dict[int, list[_Early]] = {}
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, message: PageMessage) -> None:
        early = _Early(message, len(msgspec.json.encode(message)))
        waiting = self._waiting.setdefault(message.tab_id, [])
        waiting.append(early)
        self.bytes += early.size
        if len(waiting) > _PER_TAB:
            self._drop_oldest(message.tab_id)
        if len(self._waiting) > _TABS:
            self.pop(next(iter(self._waiting)))
        while self.bytes > self._most:
            self._drop_oldest(max(self._waiting, key=lambda tab_id: sum(each.size for each in self._waiting[tab_id])))

    def pop(self, tab_id: int) -> list[PageMessage]:
        """The messages of a tab, in order, which are then forgotten."""
        popped = self._waiting.pop(tab_id, [])
        self.bytes -= sum(each.size for each in popped)
        return [each.message for each in popped]

    def _drop_oldest(self, tab_id: int) -> None:
        waiting = self._waiting[tab_id]
        self.bytes -= waiting.pop(0).size
        if not waiting:
            del self._waiting[tab_id]
