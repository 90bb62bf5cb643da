"""A hub shared by several tests, any of which may stop and restart it."""

from __future__ import annotations

from pathlib import Path

from tests.e2e import live
from tests.e2e.live import LiveHub
from tests.harness.waiting import wait_for


class RestartableHub:
    """A hub with one home, started on demand."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self._folder = folder
        self._settings = settings
        self._hub: LiveHub | None = None

    @property
    def running(self) -> LiveHub:
        if self._hub is None or self._hub.process.poll() is not None:
            self._hub = hub = live.start(self._folder, **self._settings)
            wait_for(lambda: all(server["state"] == "ready" for server in hub.health()["upstream"]))
        return self._hub

    def stop(self) -> None:
        """Stop it as Ctrl+C does."""
        if self._hub is not None:
            live.stop(self._hub)
