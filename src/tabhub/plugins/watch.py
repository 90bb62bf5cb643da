"""Watching local plugins: a build or a saved file is noticed at once, and by a slower look if the system says nothing.

Owns the watching alone; what a change means is told to whoever asked.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tabhub.plugins.discovery import Stamp, stamp_of

log = logging.getLogger("tabhub.plugins")

_GATHER = 20
"""Milliseconds without a further change before one is told: a build writes several files."""
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
        """Begin; an event loop runs."""
        self._running = True
        self._restart()

    def watch(self, folders: Iterable[Path], above: Iterable[Path] = (), pending: int = 0) -> None:
        """Watch these folders of plugins, and those in which new ones may appear, from now on."""
        self._folders = tuple(folders)
        self._pending = pending
        self._stamps = {folder: _stamp(folder) for folder in self._folders}
        paths = tuple(dict.fromkeys((*_paths(self._folders), *(path for path in above if path.is_dir()))))
        if paths != self._paths:
            self._paths = paths
            self._restart()

    def poll(self) -> None:
        """Look for changes without a notification; cheap enough for a timer."""
        now = self._wall()
        if self._polled is not None and 0 <= now - self._polled < _POLL:
            return
        self._polled = now
        if self._differs():
            self._detections += 1
            self._changed()

    def _differs(self) -> bool:
        return any(_stamp(folder) != stamp for folder, stamp in self._stamps.items())

    def facts(self) -> dict[str, Any]:
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
            self._task.add_done_callback(_ended)
            # In its first step the task begins to watch: what was saved before that, nobody will tell.
            asyncio.get_running_loop().call_soon(self._begun)

    def _begun(self) -> None:
        if self._running and self._differs():
            self._changed()

    async def _watch(self, paths: tuple[Path, ...], stop: asyncio.Event) -> None:
        from watchfiles import awatch  # costs more than a hub without local plugins should pay

        try:
            async for _ in awatch(
                *paths, step=_GATHER, stop_event=stop, recursive=False, ignore_permission_denied=True
            ):
                if not stop.is_set():
                    self._changed()
        except (OSError, RuntimeError) as error:
            log.warning("local plugins are looked at every %g s only: %s", _POLL, error)


def _ended(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("local plugins are looked at every %g s only", _POLL, exc_info=error)


def _paths(folders: Iterable[Path]) -> tuple[Path, ...]:
    """What to watch of the folders: them and where their builds go; one that is not there yet, by its parent."""
    paths: dict[Path, None] = {}
    for folder in folders:
        if folder.is_dir():
            paths[folder] = None
            if (folder / "dist").is_dir():
                paths[folder / "dist"] = None
        elif folder.parent.is_dir():
            paths[folder.parent] = None
    return tuple(paths)


def _stamp(folder: Path) -> Stamp:
    try:
        return stamp_of(folder)
    except OSError:
        return ()
