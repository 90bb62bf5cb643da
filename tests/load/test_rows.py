"""The load rows in short, against a hub in a process of its own; `python -m bench rows` runs them in full."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bench import rows
from bench.rows import Hub, Outcome


@pytest.fixture
def loaded() -> Iterator[Hub]:
    with rows.running() as hub:
        yield hub


def met(outcome: Outcome) -> None:
    assert outcome.met, (outcome.did, outcome.facts)


@pytest.mark.req("L1")
async def test_no_call_of_many_agents_in_many_tabs_is_lost_or_crossed(loaded: Hub) -> None:
    met(await rows.l1(loaded, agents=50, tabs=20, calls=2))


@pytest.mark.req("L2")
async def test_memory_stays_flat_while_many_agents_go_round_many_tabs(loaded: Hub) -> None:
    met(await rows.l2(loaded, agents=20, tabs=10, seconds=4, warm=2))


@pytest.mark.req("L3")
async def test_idle_agents_cost_little_memory_and_hardly_slow_the_busy_ones(loaded: Hub) -> None:
    # A machine that does other things besides makes a p99 late by a few milliseconds.
    met(await rows.l3(loaded, idle=500, busy=10, calls=50, slack=3))


@pytest.mark.req("L7")
async def test_agents_and_extensions_that_come_and_go_leave_no_task_socket_or_file(loaded: Hub) -> None:
    met(await rows.l7(loaded, cycles=100))
