"""Processes under measurement: start, wait until ready, read their CPU time and memory, end.

Owns the life of a child process and reading /proc, not what the child serves.
"""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO

ROOT = Path(__file__).parent.parent
_TICKS = os.sysconf("SC_CLK_TCK")
_POLL = 0.002


class Child:
    """A child process that ends with its `with` block."""

    def __init__(self, command: Sequence[str], *, log: Path, env: Mapping[str, str] | None = None) -> None:
        self.log = log
        self._log_file: IO[bytes] = log.open("ab")
        self.started = time.perf_counter()
        self.process = subprocess.Popen(
            list(command),
            cwd=ROOT,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=self._log_file,
            stderr=subprocess.STDOUT,
        )

    def __enter__(self) -> Child:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.end()

    def end(self, how: signal.Signals = signal.SIGTERM) -> None:
        """Terminate it, and kill it after ten seconds."""
        if self.process.poll() is None:
            self.process.send_signal(how)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self._log_file.close()

    def wait_until(self, ready: Callable[[], bool], what: str, timeout: float = 20.0) -> float:
        """Seconds from the start of the process until `ready` returns True; on timeout the process is ended."""
        end = self.started + timeout
        while time.perf_counter() < end:
            if ready():
                return time.perf_counter() - self.started
            if self.process.poll() is not None:
                self.end()
                raise SystemExit(f"error: {what} ended with status {self.process.returncode}\n{self.tail()}")
            time.sleep(_POLL)
        self.end()
        raise SystemExit(f"error: {what} was not ready after {timeout:g} s\n{self.tail()}")

    def tail(self, lines: int = 20) -> str:
        """The last lines of its output."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def cpu_seconds(self) -> float:
        """CPU time, user and system, of all its threads so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def rss_mb(self) -> float:
        """Its resident memory now."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        return 0.0


def free_port() -> int:
    """A port nothing listens on."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


def listens(port: int) -> bool:
    """Whether something accepts connections."""
    try:
        socket.create_connection(("localhost", port), timeout=2).close()
    except OSError:
        return False
    return True


def answers(port: int, path: str) -> bool:
    """Whether a GET is answered with 200."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
