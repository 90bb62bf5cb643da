"""Watching local plugins: saved files are noticed at once or by polling, and a callback handles the change."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tabhub.plugins.discovery import Stamp, stamp_of

log = logging.getLogger("tabhub.plugins")

_DEBOUNCE = 20
"""Milliseconds without a further change before one is reported: a build writes several files."""
_POLL = 5.0


class Watcher:
    """Watches folders of plugins."""

    def __init__(self, changed: Callable[[], None], wall: Callable[[], float] = time.time) -> None:
        self._changed = changed
        self._wall = wall
        self._folders: tuple[Path, ...] = ()
        self._paths: tuple[Path, ...] = ()
        self._pending = 0
        self._stamps: dict[Path, Stamp] = {}
        self._polled: float | None = None
        self._detections = 0
        self._task: asyncio.Task[None] | None = None
        self._stop: asyncio.Event | None = None
        self._running = False

    def start(self) -> None:
        """Start watching; needs a running event loop."""
        self._running = True
        self._restart()

    def watch(self, folders: Iterable[Path], above: Iterable[Path] = (), pending: int = 0) -> None:
        """Watch these plugin folders, and the folders `above` in which new ones may appear."""
        self._folders = tuple(folders)
        self._pending = pending
        self._stamps = {folder: stamp_of(folder) for folder in self._folders}
        paths = tuple(dict.fromkeys((*_paths(self._folders), *(path for path in above if path.is_dir()))))
        if paths != self._paths:
            self._paths = paths
            self._restart()

    def poll(self) -> None:
        """Look for changes that were not reported; cheap enough for a timer."""
        now = self._wall()
        if self._polled is not None and 0 <= now - self._polled < _POLL:
            return
        self._polled = now
        if self._differs():
            self._detections += 1
            self._changed()

    def _differs(self) -> bool:
        return any(stamp_of(folder) != stamp for folder, stamp in self._stamps.items())

    def status(self) -> dict[str, Any]:
        return {
            "watchedPlugins": max(len(self._folders) - self._pending, 0),
            "pendingPlugins": self._pending,
            "lastPollAt": round(self._polled * 1000) if self._polled is not None else None,
            "pollDetections": self._detections,
        }

    def stop(self) -> None:
        self._running = False
        if self._stop is not None:
            self._stop.set()
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def _restart(self) -> None:
        if not self._running:
            return
        if self._stop is not None:
            self._stop.set()
        self._stop = None
        if self._paths:
            self._stop = asyncio.Event()
            self._task = asyncio.create_task(self._watch(self._paths, self._stop))
            # The task starts watching in its first step; changes saved before that are not reported.
            asyncio.get_running_loop().call_soon(self._check_once)

    def _check_once(self) -> None:
        if self._running and self._differs():
            self._changed()

    async def _watch(self, paths: tuple[Path, ...], stop: asyncio.Event) -> None:
        from watchfiles import awatch  # costs more than a hub without local plugins should pay

        try:
            async for _ in awatch(
                *paths, step=_DEBOUNCE, stop_event=stop, recursive=False, ignore_permission_denied=True
            ):
                if not stop.is_set():
                    self._changed()
        except Exception as error:  # noqa: BLE001 - polling still finds changes
            log.warning("local plugins are only polled, every %g s: %s", _POLL, error)


def _paths(folders: Iterable[Path]) -> tuple[Path, ...]:
    """The folders and their `dist`; for one that does not exist yet, its parent."""
    paths: dict[Path, None] = {}
    for folder in folders:
        if folder.is_dir():
            paths[folder] = None
            if (folder / "dist").is_dir():
                paths[folder / "dist"] = None
        elif folder.parent.is_dir():
            paths[folder.parent] = None
    return tuple(paths)
