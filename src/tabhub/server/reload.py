"""Reloading what can change while the hub runs: settings, secret and plugins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tabhub.calls.sources.plugins import Plugins
from tabhub.errors import ConfigNotReloaded
from tabhub.server.settings import Secret, Settings


@dataclass(slots=True)
class Reloads:
    """How often and when the configuration was reloaded."""

    count: int = 0
    at_ms: int = 0
    took_ms: float = 0.0


class Reload:
    """Reloads on request, and checks the files once a second."""

    def __init__(
        self,
        settings: Settings,
        secret: Secret,
        plugins: Plugins,
        *,
        clock: Callable[[], float],
        wall: Callable[[], float],
    ) -> None:
        self._settings = settings
        self._secret = secret
        self._plugins = plugins
        self._clock = clock
        self._wall = wall
        self.reloads = Reloads()

    def __call__(self) -> dict[str, Any]:
        """Reload everything; ConfigNotReloaded if the file is invalid, and the last good settings stay in force."""
        began = self._clock()
        self._secret.check_file()
        self._settings.reload()
        self._plugins.load()
        reloads = self.reloads
        reloads.count += 1
        reloads.at_ms = int(self._wall() * 1000)
        reloads.took_ms = round((self._clock() - began) * 1000, 2)
        if self._settings.error is not None:
            raise ConfigNotReloaded(self._settings.error)
        answer: dict[str, Any] = {"ok": True, "plugins": len(self._plugins), "durationMs": reloads.took_ms}
        if waiting := self._settings.needs_restart():
            answer["needsRestart"] = waiting
        return answer

    def check_files(self) -> None:
        """Put changed files in force."""
        self._secret.check_file()
        if self._settings.check_file():
            self._plugins.load()
