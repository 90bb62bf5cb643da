"""Reloading what can change while the hub runs: settings, the extension's key and plugins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tabhub.calls.sources.plugins import Plugins
from tabhub.errors import ConfigNotReloaded
from tabhub.server.settings import ExtensionKey, Settings


@dataclass(slots=True)
class Reload:
    """Reloads on request, and checks the files once a second."""

    settings: Settings
    key: ExtensionKey
    plugins: Plugins
    clock: Callable[[], float]
    wall: Callable[[], float]
    count: int = 0
    """Requested reloads since the start; when the last one was, and how long it took."""
    at_ms: int = 0
    took_ms: float = 0.0

    def __call__(self) -> dict[str, Any]:
        """Reload everything. With an invalid file the last good settings stay in force, and ConfigNotReloaded is
        raised."""
        began = self.clock()
        self.key.check_file()
        self.settings.reload()
        self.plugins.load()
        self.count += 1
        self.at_ms = int(self.wall() * 1000)
        self.took_ms = round((self.clock() - began) * 1000, 2)
        if self.settings.error is not None:
            raise ConfigNotReloaded(self.settings.error)
        waiting = self.settings.needs_restart()
        more = {"needsRestart": waiting} if waiting else {}
        return {"ok": True, "plugins": len(self.plugins), "durationMs": self.took_ms, **more}

    def check_files(self) -> None:
        self.key.check_file()
        if self.settings.check_file():
            self.plugins.load()
