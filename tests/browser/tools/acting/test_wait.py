"""The time budget of the waiting tools under a virtual clock: backoff, progress and timeout."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from tabhub.browser.tools.acting.wait import WaitBudget
from tabhub.errors import CommandFailed, InvalidArguments
from tabhub.limits import Limits
from tests.harness.virtual_time import VirtualLoop


@pytest.fixture
def loop() -> Iterator[VirtualLoop]:
    made = VirtualLoop()
    yield made
    made.close()


def call(reports: list[tuple[float, float, str]], **args: Any) -> Any:
    context = SimpleNamespace(progress=lambda *facts: reports.append(facts))
    return SimpleNamespace(args=args, ctx=context, box=SimpleNamespace(browsers=SimpleNamespace(limits=Limits())))


@pytest.mark.req("C5")
def test_a_long_wait_reports_progress_after_two_seconds_and_then_every_ten(loop: VirtualLoop) -> None:
    reports: list[tuple[float, float, str]] = []

    async def wait() -> None:
        budget = WaitBudget(call(reports, timeout=35_000), "'#nothing'")
        while True:
            await budget.pause("no such element")

    waiting = loop.create_task(wait())
    loop.run_for(1.9)
    assert reports == []
    loop.run_for(37.1)
    with pytest.raises(CommandFailed, match=r"Timed out after 35 s waiting for '#nothing': no such element\."):
        waiting.result()
    assert [round(spent) for spent, _, _ in reports] == [2, 12, 22, 32]
    assert {(total, message) for _, total, message in reports} == {(35, "Still waiting for '#nothing'")}


def test_time_passes_as_long_as_asked_for_with_progress(loop: VirtualLoop) -> None:
    reports: list[tuple[float, float, str]] = []

    async def wait() -> None:
        await WaitBudget(call(reports, timeout=3_000), "the time to pass").pass_time()

    waiting = loop.create_task(wait())
    loop.run_for(2.9)
    assert not waiting.done()
    loop.run_for(0.2)
    waiting.result()
    assert [(round(spent), total) for spent, total, _ in reports] == [(2, 3)]


def test_a_wait_for_a_page_that_does_not_respond_reports_progress_and_times_out(loop: VirtualLoop) -> None:
    reports: list[tuple[float, float, str]] = []

    async def wait() -> None:
        await WaitBudget(call(reports, timeout=25_000), "'#nothing'").await_page(asyncio.Event().wait())

    waiting = loop.create_task(wait())
    loop.run_for(26)
    assert not waiting.done()
    loop.run_for(1)
    with pytest.raises(CommandFailed, match="not respond"):
        waiting.result()
    assert [round(spent) for spent, _, _ in reports] == [2, 12, 22]


def test_a_timeout_longer_than_the_call_is_rejected(loop: VirtualLoop) -> None:
    async def begin() -> None:
        with pytest.raises(InvalidArguments, match="The maximum is 295000 ms"):
            WaitBudget(call([], timeout=295_001), "'#nothing'")

    begun = loop.create_task(begin())
    loop.run_for()
    begun.result()
