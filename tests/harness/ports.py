"""Ports for servers that a test starts, also more than once.

Taken from below those that the system gives to outgoing connections and to servers that ask for any port: a port that
is free now stays free until the test's server listens on it. A lock reserves it for this process, so that another
worker or another run of the tests does not choose the same one and reach a server that is not its own.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import socket
import tempfile
from pathlib import Path

_FIRST, _END = 20_000, 32_000
"""Linux gives ports from 32768 on by itself, macOS and Windows from 49152 on."""
_offsets = itertools.count(os.getpid() * 500 % (_END - _FIRST))
_locks = (Path(tempfile.gettempdir()) / f"tabhub-test-ports-{os.getuid()}").open("a")
"""Byte N is locked by the process that has port N, and unlocked by the system when that process ends."""


def free_port() -> int:
    """A port that nothing listens on, and that no other test is given."""
    while True:
        port = _FIRST + next(_offsets) % (_END - _FIRST)
        try:
            fcntl.lockf(_locks, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", port))
        except OSError:
            continue
        return port
