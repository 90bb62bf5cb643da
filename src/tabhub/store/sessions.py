"""Sessions on disk: what the hub needs to restore them after it was restarted or killed.

Owns the format of the file. No secret, no arguments and no URLs of pages are in it, but ids of sessions are, so only
this user may read it. When the disk cannot be written, sessions end with the hub, and calls continue.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Literal

import msgspec

from tabhub.core.sessions import SessionKind
from tabhub.store.json_file import JsonFile


class SavedTab(msgspec.Struct, frozen=True):
    """A leased tab, and how to recognise it."""

    id: int
    browser: str
    chrome: int
    origin: str | None
    page: str


class SavedLease(msgspec.Struct, frozen=True):
    """A lease of a tab; times are in seconds since 1970."""

    tab: int
    since: float


class SavedMcp(msgspec.Struct, frozen=True):
    """What a client of a handshake revision negotiated."""

    endpoint: str
    version: str
    capabilities: list[str] = []
    log_level: int = 1
    followed: list[str] = []
    """The resources it is subscribed to."""


class SavedSession(msgspec.Struct, frozen=True):
    """One session."""

    id: str
    kind: SessionKind
    client: str
    opened: float
    tab: int | None = None
    acted: bool = False
    own: list[int] = []
    leases: list[SavedLease] = []
    mcp: SavedMcp | None = None
    token: str | None = None
    """The name of its client's token."""
    lost: int | None = None
    """The tab it has lost, until it is notified."""
    lost_how: str = ""


class SavedPause(msgspec.Struct, frozen=True):
    """The pause in effect, if any."""

    since: float
    by: str
    reason: str
    mode: Literal["wait", "fail"]


class Saved(msgspec.Struct, frozen=True):
    """The whole file."""

    version: Literal[1] = 1
    sessions: list[SavedSession] = []
    tabs: list[SavedTab] = []
    browsers: dict[str, list[int]] = {}
    """Ids of all tabs of the browsers those tabs belong to."""
    pause: SavedPause | None = None


class SessionStore(JsonFile[Saved]):
    """The file of sessions."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, Saved)
        self._lock = threading.Lock()
        self._number = 0

    def save_numbered(self, saved: Saved, number: int) -> bool:
        """Save a snapshot, from any thread, unless one with a higher number was saved before."""
        with self._lock:
            if number < self._number:
                return True
            self._number = number
            return self.save(saved)
