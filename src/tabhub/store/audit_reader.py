"""Reading the audit log: from the end of the file backward, over the file rotated before it, also while a hub writes.

Owns how a line is parsed and which entries are wanted. Writes nothing, and needs nothing of what writes.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from tabhub.errors import SetupError

_CHUNK = 64 * 1024


def read_log(
    path: Path,
    *,
    limit: int | None = 50,
    plugin: str | None = None,
    tool: str | None = None,
    since: float | None = None,
    success: bool | None = None,
) -> tuple[list[dict[str, Any]], int]:
    """The calls on disk, newest first, over both files, and how many lines could not be read.

    `since` is a time in seconds. The log may be read while a hub writes to it.
    """
    found: list[dict[str, Any]] = []
    skipped = 0
    try:
        for line in lines_backward(path):
            if limit is not None and len(found) >= limit:
                break
            entry = parse_line(line)
            if entry is None:
                skipped += 1
            elif matches(entry, plugin, tool, success) and (since is None or entry_time(entry) >= since):
                found.append(entry)
    except OSError as error:
        raise SetupError(
            f"The audit log {path} cannot be read: {error.strerror}.", hint="Check that the file is yours and readable."
        ) from error
    return found, skipped


def matches(entry: Mapping[str, Any], plugin: str | None, tool: str | None, success: bool | None) -> bool:
    return (
        (plugin is None or entry.get("plugin") == plugin)
        and (tool is None or entry.get("tool") == tool)
        and (success is None or entry.get("success") is success)
    )


def parse_line(line: bytes) -> dict[str, Any] | None:
    """The entry in a line; None if the line is not one."""
    try:
        entry = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return entry if isinstance(entry, dict) else None


def entry_time(entry: Mapping[str, Any]) -> float:
    """When an entry of the file was made; long ago if it does not say so properly."""
    try:
        return datetime.fromisoformat(str(entry.get("timestamp"))).timestamp()
    except (ValueError, OverflowError):
        return 0.0


def lines_backward(path: Path) -> Iterator[bytes]:
    """The lines of a log and of the file rotated before it, last first; empty ones skipped."""
    files = []
    try:
        # The newer one is opened first: a rotation in between then shows the same file twice, never a gap.
        for name in (str(path), f"{path}.1"):
            with contextlib.suppress(FileNotFoundError):
                files.append(open(name, "rb"))  # noqa: PTH123, SIM115 - closed below
        seen = set()
        for file in files:
            facts = os.fstat(file.fileno())
            if (facts.st_dev, facts.st_ino) not in seen:
                seen.add((facts.st_dev, facts.st_ino))
                yield from _backward(file.fileno(), facts.st_size)
    finally:
        for file in files:
            file.close()


def _backward(fd: int, end: int) -> Iterator[bytes]:
    """Lines from the end, reading one chunk at a time."""
    pieces: list[bytes] = []  # of the line whose beginning is not read yet, last piece first
    while end > 0:
        start = max(0, end - _CHUNK)
        chunk = os.pread(fd, end - start, start)
        end = start
        *complete, last = chunk.split(b"\n")[::-1]
        for part in complete:
            pieces.append(part)
            line = b"".join(reversed(pieces))
            pieces = []
            if line:
                yield line
        pieces.append(last)
    if line := b"".join(reversed(pieces)):
        yield line
