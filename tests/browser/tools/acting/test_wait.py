"""How the waiting tools spend their time, under a virtual clock: pauses, signs of life, and the end."""

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


def call(told: list[tuple[float, float, str]], **args: Any) -> Any:
    context = SimpleNamespace(progress=lambda *facts: told.append(facts))
    return SimpleNamespace(args=args, ctx=context, box=SimpleNamespace(browsers=SimpleNamespace(limits=Limits())))


def test_a_long_wait_reports_every_ten_seconds_that_it_goes_on(loop: VirtualLoop) -> None:
    told: list[tuple[float, float, str]] = []

    async def wait() -> None:
        patience = WaitBudget(call(told, timeout=35_000), "'#nothing'")
        while True:
            await patience.pause("no such element")

    waiting = loop.create_task(wait())
    loop.run_for(9)
    assert told == []
    loop.run_for(30)
    with pytest.raises(CommandFailed, match=r"Timed out after 35 s waiting for '#nothing': no such element\."):
        waiting.result()
    assert [round(spent) for spent, _, _ in told] == [10, 20, 30]
    assert {(total, message) for _, total, message in told} == {(35, "Still waiting for '#nothing'")}


def test_a_page_that_does_not_answer_is_reported_on_and_given_up(loop: VirtualLoop) -> None:
    told: list[tuple[float, float, str]] = []

    async def wait() -> None:
        await WaitBudget(call(told, timeout=25_000), "'#nothing'").await_page(asyncio.Event().wait())

    waiting = loop.create_task(wait())
    loop.run_for(26)
    assert not waiting.done()
    loop.run_for(1)
    with pytest.raises(CommandFailed, match="not respond"):
        waiting.result()
    assert [round(spent) for spent, _, _ in told] == [10, 20]


def test_a_wait_that_leaves_the_call_no_time_to_answer_is_refused(loop: VirtualLoop) -> None:
    async def begin() -> None:
        with pytest.raises(InvalidArguments, match="The maximum is 295000 ms"):
            WaitBudget(call([], timeout=295_001), "'#nothing'")

    begun = loop.create_task(begin())
    loop.run_for()
    begun.result()
