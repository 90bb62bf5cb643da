"""The processes of this machine, their listening sockets and open files, read from /proc."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

BOUND = 20.0


def handles_of(pids: Iterable[int]) -> list[int]:
    """Handles of running processes: a pid alone may later belong to another process."""
    handles = []
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            handles.append(os.pidfd_open(pid))
    return handles


async def ended(handle: int) -> None:
    """Wait for the end of a process that is not a child of this one."""
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(handle, over.set)
    try:
        async with asyncio.timeout(BOUND):
            await over.wait()
    finally:
        loop.remove_reader(handle)
        os.close(handle)


def processes_with(text: str) -> dict[int, str]:
    """The running processes with this text in their command line."""
    found: dict[int, str] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if text in command:
                    found[int(entry.name)] = command
    return found


def listening_sockets() -> set[str]:
    """Every listening TCP socket of this machine, as named in /proc/<pid>/fd."""
    rows = [row.split() for name in ("tcp", "tcp6") for row in Path("/proc/net", name).read_text().splitlines()[1:]]
    return {f"socket:[{row[9]}]" for row in rows if row[3] == "0A"}


def open_files(pids: Iterable[int]) -> set[str]:
    """The open files of the processes."""
    opened: set[str] = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            opened.update(str(handle.readlink()) for handle in Path(f"/proc/{pid}/fd").iterdir())
    return opened
