"""A separate home for each test, a fake hub, and the command line as a person runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.fake_http_hub import EXTENSION_KEY, PERSON_KEY, FakeHub, running

Done = subprocess.CompletedProcess[str]
Run = Callable[..., Done]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The hub's home, with its keys in it."""
    folder = tmp_path / "home"
    (folder / "extension").mkdir(parents=True)
    folder.chmod(0o700)
    auth = folder / "extension" / "auth.json"
    auth.write_text(json.dumps({"secret": EXTENSION_KEY, "scope": "extension"}))
    auth.chmod(0o600)
    (folder / "run").mkdir(mode=0o700)
    (folder / "run" / "person.key").write_text(PERSON_KEY)
    return folder


@pytest.fixture
def env(home: Path, tmp_path: Path) -> dict[str, str]:
    """An environment with only this home."""
    person = tmp_path / "person"
    person.mkdir()
    kept = {key: value for key, value in os.environ.items() if key in ("PATH", "LANG", "PYTHONPATH", "VIRTUAL_ENV")}
    return {**kept, "HOME": str(person), "TABHUB_HOME": str(home)}


@pytest.fixture
def hub(home: Path) -> Iterator[FakeHub]:
    """A hub that the command line considers running."""
    with running() as fake:
        announce(home, fake.port)
        fake.answer("GET /health", {"status": "ok", "version": "0.1.0", "uptime": 61})
        yield fake


def announce(home: Path, port: int, pid: int | None = None) -> None:
    record = {"pid": pid or os.getpid(), "port": port, "version": "0.1.0", "url": f"http://127.0.0.1:{port}"}
    (home / "hub.json").write_text(json.dumps(record))


@pytest.fixture
def tabhub(env: dict[str, str], tmp_path: Path) -> Run:
    """Run the command line to its end."""

    def run(*words: str, input: str | bytes | None = None, **extra: str) -> Done:  # noqa: A002
        data = input.encode() if isinstance(input, str) else input
        done = subprocess.run(
            [sys.executable, "-m", "tabhub", *words],
            input=data if data is not None else b"",
            capture_output=True,
            env={**env, **extra},
            cwd=tmp_path,
            timeout=60,
            check=False,
        )
        return subprocess.CompletedProcess(
            done.args, done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
        )

    return run
