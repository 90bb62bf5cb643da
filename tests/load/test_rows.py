"""The load rows with small numbers: nothing is lost, crossed or left behind. `python -m bench rows` runs them in full.

The hub runs in its own process, as in the bench; times and memory are measured only there.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bench import rows
from bench.rows import Hub, Outcome


@pytest.fixture
def loaded() -> Iterator[Hub]:
    with rows.running() as hub:
        yield hub


def check(outcome: Outcome) -> None:
    assert outcome.correct, (outcome.did, outcome.checks)


@pytest.mark.req("L1")
async def test_no_call_of_many_agents_in_many_tabs_is_lost_or_crossed(loaded: Hub) -> None:
    check(await rows.l1(loaded, agents=25, tabs=10, calls=2))


@pytest.mark.req("L2")
async def test_agents_that_visit_many_tabs_get_every_answer(loaded: Hub) -> None:
    check(await rows.l2(loaded, agents=20, tabs=20, seconds=0, warm=0))


@pytest.mark.req("L3")
async def test_busy_agents_get_their_own_answers_beside_many_idle_ones(loaded: Hub) -> None:
    check(await rows.l3(loaded, idle=60, busy=5, calls=20, rounds=1))


@pytest.mark.req("L7")
async def test_agents_and_extensions_that_come_and_go_leave_no_task_socket_or_file(loaded: Hub) -> None:
    check(await rows.l7(loaded, cycles=40))
