"""The servers of the apps: each in its own process, with its files below a folder of the test."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2

from tests.harness.waiting import LONG, wait_for

_LOG_SHOWN = 4000
_STARTING = 2 * LONG


@dataclass(frozen=True, slots=True)
class AppServer:
    """A running app."""

    url: str
    folder: Path
    """Its own files."""


@contextmanager
def serving(
    command: Sequence[object], folder: Path, url: str, environment: Mapping[str, str], ready: str = "/"
) -> Iterator[AppServer]:
    """Start a server, wait until it answers at `ready`, and end it and its child processes with the context."""
    log = folder / "server.log"
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "PYTHON", "TABHUB_"))}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(word) for word in command],
            cwd=folder,
            env=kept | {"HOME": str(folder), **environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        wait_for(lambda: process.poll() is not None or _answers(f"{url}{ready}"), _STARTING)
        assert process.poll() is None, f"the server ended:\n{log.read_text(errors='replace')[-_LOG_SHOWN:]}"
        yield AppServer(url, folder)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(LONG)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _answers(url: str) -> bool:
    try:
        return httpx2.get(url, timeout=5, verify=False, follow_redirects=True).status_code < 500
    except httpx2.TransportError:
        return False


def run(command: Sequence[object], folder: Path, environment: Mapping[str, str]) -> None:
    """Run a command that prepares an app; it must succeed."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "PYTHON", "TABHUB_"))}
    env = kept | {"HOME": str(folder), **environment}
    done = subprocess.run(
        [str(word) for word in command], cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}: {done.stdout[-_LOG_SHOWN:]}{done.stderr[-_LOG_SHOWN:]}"
