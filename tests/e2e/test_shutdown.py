"""`tabhub stop` leaves no process behind."""

from __future__ import annotations

import os
from pathlib import Path

from tests.e2e import live
from tests.harness.waiting import wait_for


def group_of(pid: int) -> list[int]:
    """The processes of a group, without zombies."""
    found = []
    for place in Path("/proc").iterdir():
        if not place.name.isdigit():
            continue
        try:
            fields = (place / "stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended in the meantime
        if int(fields[2]) == pid and fields[0] != "Z":
            found.append(int(place.name))
    return found


def test_stop_ends_the_hub_and_its_browser(tmp_path: Path) -> None:
    hub = live.start(tmp_path)
    browser = hub.browser_pid
    assert browser is not None
    assert len(group_of(browser)) > 1
    stopped = hub.tabhub("stop")
    assert stopped.returncode == 0, stopped.stderr
    assert hub.process.wait(10) == 0
    assert not (hub.home / "hub.json").exists()
    assert group_of(browser) == []
    assert "not running" in hub.tabhub("status").stdout + hub.tabhub("status").stderr


def test_killing_the_hub_ends_its_browser(tmp_path: Path) -> None:
    hub = live.start(tmp_path)
    browser = hub.browser_pid
    assert browser is not None
    os.kill(hub.process.pid, 9)
    hub.process.wait()
    wait_for(lambda: group_of(browser) == [])
