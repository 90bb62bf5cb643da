"""A hub in the background: whether one is running, starting one, waiting until it answers.

Owns the one place that spawns a hub, and the lock by which only one of several concurrent callers does. It does not
know how a hub serves.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from tabhub.cli.hub.client import Hub, alive, decode, find_hub, request
from tabhub.cli.terminal import duration
from tabhub.client_errors import CliError

START_TIMEOUT = 20.0
_END_TIMEOUT = 10.0
_POLL = 0.02
_SHOWN_LINES = 15


def health(hub: Hub, timeout: float = 3.0) -> dict[str, Any] | None:
    """The hub's health report; None if no hub of ours answers."""
    if hub.extension_key is None:
        return None
    try:
        answer = request(hub, "GET", "/health", timeout=timeout)
        facts = decode(answer) if answer.status == 200 else None
    except CliError:
        return None
    return facts if isinstance(facts, dict) and "version" in facts else None


def describe(hub: Hub, facts: dict[str, Any]) -> str:
    parts = [f"version {facts.get('version')}"]
    if hub.pid is not None:
        parts.insert(0, f"pid {hub.pid}")
    uptime = facts.get("uptime")
    if isinstance(uptime, int | float):
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(time.time() - uptime))
        parts.append(f"since {since}, {duration(uptime)} ago")
    return f"http://{hub.address} ({', '.join(parts)})"


def refuse_second() -> None:
    hub = find_hub()
    facts = health(hub) if hub.pid is not None else None
    if facts is not None:
        raise CliError(
            f"A hub is already running on {describe(hub, facts)}.",
            "Use it as it is, or stop it first with: tabhub stop. "
            "A second hub needs its own home: TABHUB_HOME=~/.tabhub-two tabhub start --port 9516",
        )


def start_in_background(words: Sequence[str]) -> tuple[Hub, dict[str, Any]]:
    """Start a hub with these options of `start` and wait until it answers; an error if one is already running."""
    with _start_lock():
        refuse_second()
        return _spawn(words)


def ensure_running(words: Sequence[str]) -> tuple[Hub, dict[str, Any]]:
    """The hub of this home, started with these options if none is running. Of concurrent callers, one starts it."""
    hub = find_hub()
    facts = health(hub)
    if facts is not None:
        return hub, facts
    with _start_lock():
        hub = find_hub()
        facts = health(hub)
        return (hub, facts) if facts is not None else _spawn(words)


def wait_for_exit(pid: int, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while alive(pid):
        if time.monotonic() > until:
            return False
        time.sleep(_POLL)
    return True


def log_path(home: str) -> Path:
    return Path(home, "logs", "hub.log")


def _start_lock() -> AbstractContextManager[None]:
    from tabhub.platform.files import make_private_folder
    from tabhub.platform.locks import locked

    folder = Path(find_hub().home)
    make_private_folder(folder)
    return locked(folder / "start.lock")


def _spawn(words: Sequence[str]) -> tuple[Hub, dict[str, Any]]:
    home = find_hub().home
    path = log_path(home)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with defer_signals(signal.SIGINT) as interrupted, open(path, "ab", opener=lambda p, f: os.open(p, f, 0o600)) as log:
        before = log.tell()
        child = subprocess.Popen(
            # -P: the working directory is no place to import modules from
            [sys.executable, "-P", "-m", "tabhub", "start", "--background-child", *words],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=home,
            env={**os.environ, "TABHUB_HOME": home},
            start_new_session=True,
        )
    until = time.monotonic() + START_TIMEOUT
    try:
        if interrupted:
            raise KeyboardInterrupt
        while time.monotonic() < until:
            hub = find_hub()
            if hub.pid == child.pid:
                facts = health(hub, timeout=1.0)
                if facts is not None:
                    return hub, facts
            code = child.poll()
            if code is not None:
                raise _failed(f"The hub did not start (exit code {code}).", path, before)
            time.sleep(_POLL)
    except KeyboardInterrupt:  # Ctrl+C does not reach the hub, which is in another session
        child.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(_END_TIMEOUT)
        raise
    child.terminate()
    raise _failed(f"The hub did not answer within {START_TIMEOUT:g} s and was stopped.", path, before)


@contextlib.contextmanager
def defer_signals(*numbers: signal.Signals) -> Iterator[list[int]]:
    """Collect signals until a process that is just being started is known, so that it can be stopped too."""
    received: list[int] = []
    before = {number: signal.signal(number, lambda n, _frame: received.append(n)) for number in numbers}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _failed(what: str, log: Path, before: int) -> CliError:
    """The error, with the hub's log since its start."""
    with log.open("rb") as file:
        file.seek(before if before <= log.stat().st_size else 0)
        lines = file.read(1024 * 1024).decode("utf-8", "replace").splitlines()[-_SHOWN_LINES:]
    shown = "\n".join(f"  {text}" for text in lines) if lines else "  (empty)"
    return CliError(what, f"Full log: {log}. `tabhub doctor` checks this machine.", detail=f"Its log:\n{shown}")
