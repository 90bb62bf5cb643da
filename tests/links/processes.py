"""The processes of this machine, their listening sockets and open files, read from the kernel."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

BOUND = 20.0


def handles_of(pids: Iterable[int]) -> list[int]:
    """Handles of processes that run: a number alone may be another process's later."""
    handles = []
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            handles.append(os.pidfd_open(pid))
    return handles


async def ended(handle: int) -> None:
    """Wait for the end of a process that is not our child."""
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(handle, over.set)
    try:
        async with asyncio.timeout(BOUND):
            await over.wait()
    finally:
        loop.remove_reader(handle)
        os.close(handle)


def processes_with(text: str) -> dict[int, str]:
    """The running processes that have the text in their command line."""
    found: dict[int, str] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if text in command:
                    found[int(entry.name)] = command
    return found


def listening_sockets() -> set[str]:
    """Every TCP socket of this machine that waits for connections, as /proc/<pid>/fd names it."""
    rows = [row.split() for name in ("tcp", "tcp6") for row in Path("/proc/net", name).read_text().splitlines()[1:]]
    return {f"socket:[{row[9]}]" for row in rows if row[3] == "0A"}


def open_files(pids: Iterable[int]) -> set[str]:
    """What the processes hold open."""
    opened: set[str] = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            opened.update(str(handle.readlink()) for handle in Path(f"/proc/{pid}/fd").iterdir())
    return opened
