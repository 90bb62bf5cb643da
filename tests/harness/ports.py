"""Ports for servers that a test starts, also more than once.

Taken from below those that the system gives to outgoing connections and to servers that ask for any port: a port that
is free now stays free until the test's server listens on it.
"""

from __future__ import annotations

import itertools
import os
import socket

_FIRST, _END = 20_000, 32_000
"""Linux gives ports from 32768 on by itself, macOS and Windows from 49152 on."""
_A_WORKER = 500
_worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
_offsets = itertools.count(os.getppid() * 7 % 5_000 + _worker * _A_WORKER)
"""Each worker has its own ports; another run of the tests begins elsewhere."""


def free_port() -> int:
    """A port that nothing listens on, and that no other test is given."""
    while True:
        port = _FIRST + next(_offsets) % (_END - _FIRST)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
