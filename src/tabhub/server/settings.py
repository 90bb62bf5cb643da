"""The settings and the extension's key in force: reloaded on request, and when their files change.

Owns who is notified of a change. With an invalid file the last good settings stay in force; health and log report it
until it is fixed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any

from tabhub.config.settings import Config
from tabhub.config.sites import SiteLevel, with_level
from tabhub.errors import SetupError
from tabhub.platform.files import stamp
from tabhub.store import config_file as store
from tabhub.store import extension_key
from tabhub.store.config_file import ConfigFile
from tabhub.store.home import Home

log = logging.getLogger("tabhub.hub")

_AT_START = ("port", "limits", "launch", "headless", "browser", "filesDir", "fileUrls", "relays")
"""Settings that are read only at the start."""


class Settings:
    """The settings of one hub."""

    def __init__(self, home: Home, file: ConfigFile) -> None:
        self._home = home
        self._file = file
        self._at_start: Config = file.current
        self._stamp = stamp(home.config)
        self._listeners: list[Callable[[Config], None]] = []
        self.current: Config = file.current
        self.error: str | None = file.error

    def on_change(self, listener: Callable[[Config], None]) -> None:
        self._listeners.append(listener)

    def reload(self) -> None:
        """Read the file again and put it in force, unless it is invalid."""
        self._stamp = stamp(self._home.config)
        self.current, self.error = self._file.reload()
        for listener in self._listeners:
            listener(self.current)

    def check_file(self) -> bool:
        """Reload if the file has changed on disk. Returns whether it has."""
        if stamp(self._home.config) == self._stamp:
            return False
        self.reload()
        if self.error is not None:
            log.error("%s", self.error)
        else:
            log.info("the settings were reloaded")
        return True

    def set_at(self, path: tuple[str, ...], value: Any) -> None:
        """Write one setting by its path in the file (None removes it), and put it in force."""
        store.set_at(self._home, path, value)
        self.reload()

    def set_site(self, pattern: str, agent: str | None, level: SiteLevel | None) -> None:
        """Set a site rule (None removes it), and put it in force."""
        store.change_section(self._home, "sites", lambda values: with_level(values, pattern, agent, level))
        self.reload()

    def block_sites(self, patterns: Iterable[str]) -> None:
        """Keep every agent off some sites, and put that in force."""

        def blocked(values: dict[str, Any]) -> dict[str, Any]:
            for pattern in patterns:
                values = with_level(values, pattern, None, "block")
            return values

        store.change_section(self._home, "sites", blocked)
        self.reload()

    def set_text(self, key: str, text: str | None) -> None:
        """Write one setting as a person types it (None restores the default), and put it in force."""
        if text is None:
            store.reset(self._home, key)
        else:
            store.set_value(self._home, key, text)
        self.reload()

    def needs_restart(self) -> list[str]:
        """Settings that differ from those at start and cannot change while the hub runs."""
        before, now = self._at_start.values(), self.current.values()
        return [key for key in _AT_START if before[key] != now[key]]


class ExtensionKey:
    """The extension's key, which may be rotated on disk while the hub runs."""

    def __init__(self, home: Home, value: str) -> None:
        self._home = home
        self._stamp = stamp(home.auth)
        self._listeners: list[Callable[[str], None]] = []
        self.current = value

    def on_change(self, listener: Callable[[str], None]) -> None:
        self._listeners.append(listener)

    def check_file(self) -> None:
        """Put a rotated key in force; from then on the old one is refused."""
        now = stamp(self._home.auth)
        if now == self._stamp:
            return
        try:
            value = extension_key.read(self._home)
        except SetupError as error:
            log.error("the key of the extension cannot be read, the old one stays: %s", error.message)
            return
        self._stamp = now
        if value != self.current:
            self.current = value
            for listener in self._listeners:
                listener(value)
            log.info("the key of the extension was rotated")
