"""`tabhub stop`: it waits for the hub, kills it only when forced, and never signals another process."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from tests.cli.conftest import Run, announce
from tests.cli.fake_http_hub import FakeHub


def test_stop_ends_the_hub_and_waits_for_it(home: Path, hub: FakeHub, tabhub: Run) -> None:
    child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    announce(home, hub.port, pid=child.pid)
    done = tabhub("stop")
    assert (done.returncode, done.stdout) == (0, "The hub has stopped.\n")
    child.communicate()
    assert child.returncode == -signal.SIGTERM
    assert not (home / "hub.json").exists()


def test_stop_never_signals_another_process(home: Path, tabhub: Run) -> None:
    child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    announce(home, 1, pid=child.pid)
    done = tabhub("stop")
    assert done.returncode == 2
    assert "is not a hub; nothing was stopped" in done.stderr
    assert child.poll() is None
    child.communicate()


def test_stop_kills_a_hub_that_hangs_only_when_forced(home: Path, hub: FakeHub, tabhub: Run) -> None:
    code = "import signal, sys; signal.signal(15, signal.SIG_IGN); print('up', flush=True); sys.stdin.read()"
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    announce(home, hub.port, pid=child.pid)
    done = tabhub("stop", "--timeout", "0.1")
    assert done.returncode == 1
    assert "tabhub stop --force" in done.stderr
    assert tabhub("stop", "--timeout", "0.1", "--force").returncode == 0
    child.communicate()
    assert child.returncode == -signal.SIGKILL
