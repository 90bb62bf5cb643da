"""The browser that the hub starts itself: when it starts, and its status."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tabhub.errors import SetupError
from tabhub.links.launch.browser_process import BrowserExit, ManagedBrowser
from tabhub.links.launch.extension_files import install_extension
from tabhub.links.launch.installed_browsers import FoundBrowser
from tabhub.store.home import Home

log = logging.getLogger("tabhub.managed")

_GRACE = 3.0
"""Seconds the person's own browser has to connect before one is started instead."""

_CLOSED = (
    ", as when its last window is closed, and is not started again. "
    "To have it back: `tabhub stop`, then `tabhub start --launch`."
)


class Managed:
    """The managed browser of one hub."""

    def __init__(
        self,
        home: Home,
        browser: FoundBrowser,
        *,
        port: int,
        key: str,
        downloads: Path,
        headless: bool | None,
        only_if_needed: bool,
    ) -> None:
        self._home = home
        self._port = port
        self._only_if_needed = only_if_needed
        self._error: str | None = None
        self._restarting = False
        self._on_failure: Callable[[], None] = lambda: None
        self._task: asyncio.Task[None] | None = None
        self.install(key)
        self._browser = ManagedBrowser(
            browser,
            extension_dir=home.managed / "extension",
            profile_dir=home.managed / "profile",
            log_file=home.logs / "browser.log",
            downloads=downloads,
            headless=headless,
            on_exit=self._ended,
        )

    @property
    def headless(self) -> bool:
        return self._browser.headless

    @property
    def name(self) -> str:
        kind = " (no window)" if self.headless else ""
        return f"{self._browser.browser.name}{kind}"

    def install(self, key: str) -> None:
        """Give the browser its copy of the extension with the key in force."""
        install_extension(self._home.managed / "extension", key=key, port=self._port, managed=True)

    async def spawn(self) -> None:
        """Start it before the hub is there, which takes about as long, unless it may not be needed."""
        if self._only_if_needed:
            return
        self._task = asyncio.create_task(self._start(lambda: False))
        spawned = asyncio.create_task(self._browser.wait_spawned())
        await asyncio.wait((self._task, spawned), return_when=asyncio.FIRST_COMPLETED)
        spawned.cancel()

    def begin(self, *, connected: Callable[[], bool], on_failure: Callable[[], None]) -> None:
        """Start it, now or when no other browser has connected; `on_failure` is called when it fails or ends."""
        self._on_failure = on_failure
        if self._task is None:
            self._task = asyncio.create_task(self._start(connected))
        elif self._error is not None:
            on_failure()

    async def _start(self, connected: Callable[[], bool]) -> None:
        if self._only_if_needed:
            until = asyncio.get_running_loop().time() + _GRACE
            while asyncio.get_running_loop().time() < until:
                if connected():
                    log.info("a browser is connected; none is started")
                    return
                await asyncio.sleep(0.1)
        try:
            await self._browser.start()
        except SetupError as error:
            self._error = error.text()
            log.error("the managed browser did not start: %s", error.text())
            self._on_failure()

    def _ended(self, end: BrowserExit) -> None:
        self._restarting = end.restart_in is not None
        next_ = _CLOSED if end.restart_in is None else f"; it is started again in {end.restart_in:g} s."
        self._error = f"{end.reason.rstrip('.')}{next_}"
        log.warning("the managed browser ended: %s", self._error)
        self._on_failure()

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
        await self._browser.stop()

    @property
    def starting(self) -> bool:
        """Whether it is about to connect, as far as is known; false if it failed, or was not needed."""
        if self._task is None or self._restarting:
            return self._restarting
        return self._error is None and (self._browser.alive or not self._task.done())

    def status(self) -> dict[str, Any]:
        status: dict[str, Any] = {"name": self.name, "running": self._browser.alive, "pid": self._browser.pid}
        status["starting"] = self.starting
        if self._error is not None and not self._browser.alive:
            status["error"] = self._error
        return status
