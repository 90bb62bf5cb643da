"""`tabhub logs`: the end of the log, and following it through a rotation."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from tests.cli.conftest import Run


def test_logs_show_the_end_of_the_file(home: Path, tabhub: Run) -> None:
    assert "There is no log yet" in tabhub("logs").stderr
    (home / "logs").mkdir()
    rows = [f"line {n} {'x' * 100}" for n in range(5000)]
    (home / "logs" / "hub.log").write_text("\n".join(rows) + "\n")
    assert tabhub("logs").stdout.splitlines() == rows[-50:]
    assert tabhub("logs", "-n", "2000").stdout.splitlines() == rows[-2000:]
    assert tabhub("logs", "-n", "0").stdout == ""


def test_logs_follow_through_a_rotation(home: Path, env: dict[str, str]) -> None:
    (home / "logs").mkdir()
    path = home / "logs" / "hub.log"
    path.write_text("one\n")
    child = subprocess.Popen(
        [sys.executable, "-m", "tabhub", "logs", "-f"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "one\n"
    with path.open("a") as file:
        file.write("two\n")
    assert child.stdout.readline() == "two\n"
    path.rename(home / "logs" / "hub.log.1")
    path.write_text("three\n")
    assert child.stdout.readline() == "three\n"
    child.send_signal(signal.SIGINT)
    _, output = child.communicate(timeout=10)
    assert (child.returncode, output) == (130, "")
