"""Changes of local plugins are noticed through the system or by polling."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tabhub.plugins.watch import Watcher
from tests.plugins.packages import folder


async def test_builds_are_noticed_at_once_including_one_before_watching_began(tmp_path: Path) -> None:
    made = folder(tmp_path / "one", "one")
    changed = asyncio.Event()
    watcher = Watcher(changed.set)
    watcher.watch([made])
    (made / "dist/adapter.iife.js").write_text("1;")
    watcher.start()
    try:
        for text in ("2;", "3;"):
            async with asyncio.timeout(30):
                await changed.wait()
            changed.clear()
            (made / "dist/adapter.iife.js").write_text(text)
        async with asyncio.timeout(30):
            await changed.wait()
    finally:
        watcher.stop()


async def test_unchanged_folder_is_not_reported(tmp_path: Path) -> None:
    changes: list[str] = []
    watcher = Watcher(lambda: changes.append("changed"))
    watcher.watch([folder(tmp_path / "one", "one")])
    watcher.start()
    begun = asyncio.Event()
    asyncio.get_running_loop().call_soon(begun.set)
    await begun.wait()
    watcher.stop()
    assert changes == []


def test_polling_finds_changes_without_notifications(tmp_path: Path) -> None:
    made = folder(tmp_path / "one", "one")
    now, changes = [100.0], []
    watcher = Watcher(lambda: changes.append(now[0]), lambda: now[0])
    watcher.watch([made, tmp_path / "later"], pending=1)
    assert watcher.status() == {"watchedPlugins": 1, "pendingPlugins": 1, "lastPollAt": None, "pollDetections": 0}
    watcher.poll()
    folder(made, "one", "1.0.1")
    now[0] = 102.0
    watcher.poll()
    assert changes == []
    now[0] = 106.0
    watcher.poll()
    assert changes == [106.0]
    assert watcher.status() == {"watchedPlugins": 1, "pendingPlugins": 1, "lastPollAt": 106_000, "pollDetections": 1}
