"""`tabhub logs`: the last lines of the hub's log, and those to come, also after its rotation."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from argparse import Namespace
from collections import deque
from pathlib import Path
from typing import BinaryIO

from tabhub.cli.command import Command, option, whole
from tabhub.cli.hub.background import log_path
from tabhub.cli.hub.client import home
from tabhub.cli.terminal import safe
from tabhub.client_errors import UsageError

_BLOCK = 65536
_POLL = 0.2


def logs(args: Namespace) -> None:
    path = log_path(home())
    try:
        file = path.open("rb")
    except FileNotFoundError:
        raise UsageError(f"There is no log yet: {path}", "Start the hub: tabhub start --background") from None
    with file:
        _print(b"".join(deque(file, args.lines)))  # the hub bounds the log's size
        if args.follow:
            _follow(path, file)


def _follow(path: Path, file: BinaryIO) -> None:
    """Print new lines until interrupted; a rotated or truncated file is read from its start."""
    while True:
        while data := file.read(_BLOCK):
            _print(data)
        with contextlib.suppress(FileNotFoundError):  # between the two steps of a rotation
            now = path.stat()
            if now.st_ino != os.fstat(file.fileno()).st_ino:
                _print(file.read())  # written just before the rotation
                file.close()
                file = path.open("rb")
            elif now.st_size < file.tell():
                file.seek(0)
        time.sleep(_POLL)


def _print(data: bytes) -> None:
    sys.stdout.write(safe(data.decode("utf-8", "replace")))
    sys.stdout.flush()


COMMAND = Command(
    logs,
    option("-f", "--follow", action="store_true", help="keep printing new lines until Ctrl+C"),
    option("-n", "--lines", metavar="N", type=whole, default=50, help="number of lines to show first (default: 50)"),
    examples=(("tabhub logs -f", "follow it"), ("tabhub logs -n 200", "the last 200 lines")),
)
