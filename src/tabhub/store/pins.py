"""Approved definitions on disk: `pins.json`, replaced when a person approves a definition.

Owns the format of the file. What a pin means is trust.pins'. After a file that could not be read, tools are pinned
again with their next approval. When the file cannot be written, pins are lost at a restart, and no call fails.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from tabhub.store.json_file import JsonFile
from tabhub.trust.pins import Pin

_MOST = 20_000


class _Saved(msgspec.Struct, frozen=True):
    source: str
    tool: str
    fingerprints: list[str]
    text: str


class PinStore(JsonFile[list[_Saved]]):
    """The pins of one hub."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, list[_Saved])
        self._pins = {(each.source, each.tool): Pin(tuple(each.fingerprints), each.text) for each in self.load() or ()}

    def get(self, source: str, tool: str) -> Pin | None:
        return self._pins.get((source, tool))

    def approve(self, source: str, tool: str, fingerprint: str, text: str) -> None:
        before = self._pins.pop((source, tool), None)
        pin = before.with_definition(fingerprint, text) if before is not None else Pin((fingerprint,), text)
        self._pins[source, tool] = pin
        while len(self._pins) > _MOST:
            del self._pins[next(iter(self._pins))]
        if pin != before:
            self._save_pins()

    def forget(self, source: str) -> None:
        gone = [key for key in self._pins if key[0] == source]
        for key in gone:
            del self._pins[key]
        if gone:
            self._save_pins()

    def _save_pins(self) -> None:
        self.save([_Saved(*key, list(pin.fingerprints), pin.text) for key, pin in self._pins.items()])
