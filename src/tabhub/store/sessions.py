"""Sessions on disk: what lets them go on after the hub has been restarted or killed.

Owns the file and its form: read once at the start, replaced whole when something changed. No secret, no arguments and
no addresses of pages are in it, but ids of sessions are, so that only this user may read it. A disk that cannot be
written costs the continuation, never the work.
"""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import Literal

import msgspec

from tabhub.core.sessions import SessionKind
from tabhub.errors import SetupError
from tabhub.platform.files import write_atomic

log = logging.getLogger("tabhub.sessions")

_VERSION = 1
_LARGEST = 64 * 1024 * 1024


class SavedTab(msgspec.Struct, frozen=True):
    """A tab that is held, and how to know it again."""

    id: int
    browser: str
    chrome: int
    origin: str | None
    page: str


class SavedLease(msgspec.Struct, frozen=True):
    """A hold on a tab; times are in seconds since 1970."""

    tab: int
    since: float


class SavedMcp(msgspec.Struct, frozen=True):
    """What a client of the handshake era agreed on."""

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

    version: int = _VERSION
    sessions: list[SavedSession] = []
    tabs: list[SavedTab] = []
    browsers: dict[str, list[int]] = {}
    """Ids of all tabs of the browsers those tabs belong to."""
    pause: SavedPause | None = None


class SessionStore:
    """The file of sessions."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._number = 0
        self._written: bytes | None = None
        self.error: str | None = None
        """Why the file could not be written, while it cannot."""

    def load(self) -> Saved:
        """The saved state; an unusable file is logged, and counts as empty."""
        try:
            if self.path.stat().st_size > _LARGEST:
                log.warning("%s is larger than %d bytes and is not read", self.path, _LARGEST)
                return Saved()
            saved = msgspec.json.decode(self.path.read_bytes(), type=Saved)
        except FileNotFoundError:
            return Saved()
        except (OSError, ValueError) as error:  # msgspec's errors and broken UTF-8 are ValueErrors
            log.warning("the sessions in %s cannot be read, and are forgotten: %s", self.path, error)
            return Saved()
        if saved.version != _VERSION:
            log.warning("the sessions in %s are of version %d, and are forgotten", self.path, saved.version)
            return Saved()
        return saved

    def save(self, saved: Saved, number: int) -> bool:
        """Write the file if it changed; a failure is logged once, and retried at the next save.

        Any thread may call it. A picture with a lower number than one already written is older, and left out.
        """
        data = msgspec.json.encode(saved)
        with self._lock:
            if number < self._number or data == self._written:
                return True
            try:
                write_atomic(self.path, data)
            except SetupError as error:
                if self.error is None:
                    log.error("sessions cannot be kept: %s", error.text())
                self.error = error.message
                return False
            self._number, self._written, self.error = number, data, None
        return True
