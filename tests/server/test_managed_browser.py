"""The managed browser starts before the hub is there. A program that only waits, or ends, stands in for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from tabhub.links.launch.installed_browsers import FoundBrowser
from tabhub.server.managed_browser import Managed
from tabhub.store.home import Home
from tests.harness.waiting import until

Make = Callable[..., Managed]


@pytest.fixture
async def make(tmp_path: Path) -> AsyncIterator[Make]:
    """Creates managed browsers from the text of a shell script, and ends them."""
    made: list[Managed] = []

    def build(script: str, *, only_if_needed: bool = False) -> Managed:
        home = Home(tmp_path / "home")
        home.ensure()
        program = tmp_path / "browser"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        found = FoundBrowser("Test", program, branded=False)
        managed = Managed(
            home,
            found,
            port=1,
            key="ab" * 32,
            downloads=tmp_path / "downloads",
            headless=True,
            only_if_needed=only_if_needed,
        )
        made.append(managed)
        return managed

    yield build
    for managed in made:
        await managed.stop()


async def test_the_browser_runs_before_the_hub_that_it_connects_to(make: Make) -> None:
    managed = make("cat <&3 >/dev/null")  # until the pipe is closed
    await managed.spawn()
    assert managed.status()["running"]
    assert managed.starting
    failures: list[str] = []
    managed.begin(connected=lambda: False, on_failure=lambda: failures.append("failed"))
    assert managed.starting
    assert not failures


async def test_a_browser_that_ends_at_once_is_reported_to_the_hub_that_comes_later(make: Make) -> None:
    managed = make("exit 3")
    await managed.spawn()
    await until(lambda: not managed.starting)
    failed = asyncio.Event()
    managed.begin(connected=lambda: False, on_failure=failed.set)
    assert failed.is_set()
    assert "exit code 3" in managed.status()["error"]


async def test_a_browser_that_may_not_be_needed_does_not_start_before_the_hub(make: Make) -> None:
    managed = make("cat <&3 >/dev/null", only_if_needed=True)
    await managed.spawn()
    assert not managed.status()["running"]
    managed.begin(connected=lambda: True, on_failure=lambda: None)
    await until(lambda: not managed.starting)
    assert not managed.status()["running"]
