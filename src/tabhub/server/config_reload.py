"""Settings and secret while the hub runs: read again when asked, and when their files change.

Owns when that happens and what is told of it. A file that cannot be used leaves the last good settings in force, and is
said in health and log until it is mended.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tabhub.config.settings import Config
from tabhub.errors import ConfigNotReloaded, SetupError
from tabhub.store import secret as secrets_store
from tabhub.store.config_file import ConfigFile

if TYPE_CHECKING:
    from tabhub.server.hub import Hub

log = logging.getLogger("tabhub.hub")

_AT_START = ("port", "limits", "launch", "headless", "browser", "filesDir", "fileUrls", "relays")
"""Settings that are read once."""


@dataclass(slots=True)
class Reloads:
    """How often and when the configuration was read again."""

    count: int = 0
    at_ms: int = 0
    took_ms: float = 0.0


class Reloading:
    """What a hub reads anew."""

    def __init__(self, hub: Hub, file: ConfigFile, secret: str) -> None:
        self._hub = hub
        self._file = file
        self._secret = secret
        self._secret_stamp = _stamp(hub.home.auth)
        self._config_stamp = _stamp(hub.home.config)
        self._started_with: Config = file.current
        self.reloads = Reloads()

    def reload(self) -> dict[str, Any]:
        """Read configuration and secret again; a broken file leaves the last good one in force."""
        engine = self._hub.engine
        began = engine.clock()
        self.check_secret()
        self.read_config()
        self._hub.plugins.load()
        reloads = self.reloads
        reloads.count += 1
        reloads.at_ms = int(engine.wall() * 1000)
        reloads.took_ms = round((engine.clock() - began) * 1000, 2)
        if self._hub.config_error is not None:
            raise ConfigNotReloaded(self._hub.config_error)
        answer: dict[str, Any] = {"ok": True, "plugins": len(self._hub.plugins), "durationMs": reloads.took_ms}
        if waiting := self._needs_restart():
            answer["needsRestart"] = waiting
        return answer

    def read_config(self) -> None:
        """Read the settings again and put them in force."""
        hub = self._hub
        self._config_stamp = _stamp(hub.home.config)
        hub.config, hub.config_error = self._file.reload()
        hub.apply_config()

    def check_config(self) -> None:
        """Take over settings that were changed on disk."""
        if _stamp(self._hub.home.config) == self._config_stamp:
            return
        self.read_config()
        self._hub.plugins.load()
        if self._hub.config_error is not None:
            log.error("%s", self._hub.config_error)
        else:
            log.info("the settings were changed, and are in force")

    def check_secret(self) -> None:
        """Take over a secret that was rotated on disk; the old one fails from here on."""
        hub = self._hub
        stamp = _stamp(hub.home.auth)
        if stamp == self._secret_stamp:
            return
        try:
            fresh = secrets_store.read(hub.home)
        except SetupError as error:
            log.error("the secret cannot be read, the old one stays: %s", error.message)
            return
        self._secret_stamp = stamp
        if fresh != self._secret:
            self._secret = fresh
            hub.guard.replace_secret(fresh.encode())
            if hub.managed is not None:
                hub.managed.install(fresh)
            hub.socket.replace_secret(fresh.encode())
            hub.notices.end(lambda token: token is None)
            log.info("the secret was rotated")

    def _needs_restart(self) -> list[str]:
        """Settings that differ from those this hub was started with and that it cannot change while it runs."""
        began, now = self._started_with.values(), self._hub.config.values()
        return [key for key in _AT_START if began[key] != now[key]]


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        facts = path.stat()
    except OSError:
        return None
    return facts.st_mtime_ns, facts.st_ino
