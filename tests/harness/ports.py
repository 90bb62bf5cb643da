"""Ports for servers that a test starts, possibly more than once.

They are below the range that the system assigns to outgoing connections and to servers that ask for any port: a free
port stays free until the test's server listens on it. A lock reserves it for this process, so that another worker or
test run does not choose the same one and reach a foreign server.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import socket
import tempfile
from pathlib import Path

_FIRST, _END = 20_000, 32_000
"""Linux assigns ports from 32768 on by itself, macOS and Windows from 49152 on."""
_offsets = itertools.count(os.getpid() * 500 % (_END - _FIRST))
_locks = (Path(tempfile.gettempdir()) / f"tabhub-test-ports-{os.getuid()}").open("a")
"""Byte N is locked by the process that has port N, and unlocked by the system when that process ends."""


def free_port() -> int:
    """A port that nothing listens on, and that no other test gets."""
    while True:
        port = _FIRST + next(_offsets) % (_END - _FIRST)
        try:
            fcntl.lockf(_locks, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", port))
        except OSError:
            continue
        return port
