"""Approved definitions on disk: `pins.json`, replaced when a person approves a definition.

Owns the file. What a pin means is trust.pins'. A file that cannot be read counts as empty and is set aside: tools are
pinned again with their next approval. One that cannot be written loses pins at a restart, never a call.
"""

from __future__ import annotations

import contextlib
import logging
from pathlib import Path

import msgspec

from tabhub.errors import SetupError
from tabhub.platform.files import write_atomic
from tabhub.trust.pins import Pin

log = logging.getLogger("tabhub.pins")

_MOST = 20_000
_LARGEST = 64 * 1024 * 1024


class _Saved(msgspec.Struct, frozen=True):
    source: str
    tool: str
    fingerprints: list[str]
    text: str


class PinStore:
    """The pins of one hub."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._pins: dict[tuple[str, str], Pin] = {}
        self.error: str | None = None
        """Why the file could not be written, while it cannot."""
        self._load()

    def __len__(self) -> int:
        return len(self._pins)

    def get(self, source: str, tool: str) -> Pin | None:
        return self._pins.get((source, tool))

    def approve(self, source: str, tool: str, fingerprint: str, text: str) -> None:
        before = self._pins.pop((source, tool), None)
        pin = before.with_form(fingerprint, text) if before is not None else Pin((fingerprint,), text)
        self._pins[source, tool] = pin
        while len(self._pins) > _MOST:
            del self._pins[next(iter(self._pins))]
        if pin != before:
            self._save()

    def forget(self, source: str) -> None:
        """Remove all pins of a removed source."""
        gone = [key for key in self._pins if key[0] == source]
        for key in gone:
            del self._pins[key]
        if gone:
            self._save()

    def _load(self) -> None:
        try:
            if self._path.stat().st_size > _LARGEST:
                raise ValueError(f"larger than {_LARGEST} bytes")
            saved = msgspec.json.decode(self._path.read_bytes(), type=list[_Saved])
        except FileNotFoundError:
            return
        except (OSError, ValueError) as error:
            log.error("the approved definitions in %s cannot be read, and are set aside: %s", self._path, error)
            with contextlib.suppress(OSError):
                self._path.replace(self._path.with_name("pins.json.broken"))
            return
        self._pins = {(each.source, each.tool): Pin(tuple(each.fingerprints), each.text) for each in saved}

    def _save(self) -> None:
        saved = [_Saved(*key, list(pin.fingerprints), pin.text) for key, pin in self._pins.items()]
        try:
            write_atomic(self._path, msgspec.json.encode(saved))
        except SetupError as error:
            if self.error is None:
                log.error("approved definitions cannot be saved: %s", error.text())
            self.error = error.message
        else:
            self.error = None
