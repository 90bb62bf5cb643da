"""Servers that several tests use, each started by the first test that needs it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from tests.harness.ports import free_port
from tests.harness.waiting import wait_for
from tests.upstream.servers import FIXTURES, listens


@pytest.fixture(scope="session")
def library() -> Iterator[Callable[..., str]]:
    """The URL of fixtures/library.py over HTTP, in one of its modes; for tests that do not change the server."""
    running: dict[str, tuple[subprocess.Popen[bytes], str]] = {}

    def start(way: str = "http") -> str:
        if way not in running:
            port = free_port()
            command = [sys.executable, str(FIXTURES / "library.py"), "http", str(port), way]
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            running[way] = process, f"http://127.0.0.1:{port}/mcp"
            wait_for(lambda: process.poll() is not None or listens(port, "127.0.0.1"), 60)
            assert process.poll() is None, f"library.py ended with {process.returncode}"
        return running[way][1]

    yield start
    for process, _ in running.values():
        process.kill()
        process.wait()
