"""Which process listens on a TCP port of this machine, from /proc or lsof."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
from pathlib import Path

from tabhub.cli.hub.client import HOST

UNKNOWN = "a process of another user"


def taken(port: int) -> bool:
    try:
        with socket.create_connection((HOST, port), timeout=1.0):
            return True
    except OSError:
        return False


def holder(port: int) -> str:
    """The process that listens on a port, as text and as far as this user may know."""
    if Path("/proc/net/tcp").exists():
        return _from_proc(port)
    return _from_lsof(port)


def _from_proc(port: int) -> str:
    inodes = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        if Path(table).exists():
            for row in Path(table).read_text("ascii").splitlines()[1:]:
                fields = row.split()
                if fields[3] == "0A" and int(fields[1].rsplit(":", 1)[1], 16) == port:
                    inodes.add(f"socket:[{fields[9]}]")
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and inodes and _has_socket(entry, inodes):
            try:
                return f"{(entry / 'comm').read_text('utf-8', 'replace').strip()} (pid {entry.name})"
            except OSError:  # it has just ended
                return f"a process (pid {entry.name})"
    return UNKNOWN


def _has_socket(process: Path, inodes: set[str]) -> bool:
    with contextlib.suppress(OSError):  # another user's, or it has ended: its sockets cannot be known
        for link in os.scandir(process / "fd"):
            with contextlib.suppress(OSError):
                if os.readlink(link) in inodes:  # noqa: PTH115 - thousands of them
                    return True
    return False


def _from_lsof(port: int) -> str:
    lsof = shutil.which("lsof")
    if lsof is None:
        return UNKNOWN
    try:
        found = subprocess.run(
            [lsof, "-nP", f"-iTCP:{port}", "-sTCP:LISTEN", "-Fpc"],
            capture_output=True,
            text=True,
            timeout=5,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return UNKNOWN
    fields = {text[0]: text[1:] for text in found.stdout.splitlines() if text}
    return f"{fields.get('c', 'a process')} (pid {fields['p']})" if fields.get("p") else UNKNOWN
