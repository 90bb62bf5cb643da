"""A relay node with many idle connections beside busy agents: nothing is lost or crossed.

`python -m bench relay` measures 2,000 connections and 200 agents.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from bench.relay_clients import Wire, agent, browser
from bench.relay_servers import Relay
from tests.harness.ports import free_port
from tests.relay.independent import IndependentAgent, IndependentExtension

IDLE_USERS = 60
BUSY, CALLS, USERS = 24, 10, 8


@pytest.fixture
async def relay(tmp_path: Path) -> AsyncIterator[Relay]:
    node = await asyncio.to_thread(Relay, tmp_path, free_port())
    with node.child:
        yield node


async def idle(relay: Relay, users: range) -> list[Wire]:
    """A browser and an agent of each of these users, connected to each other, without messages."""
    made: list[Wire] = []
    for number in users:
        token = relay.token(f"idle{number}")
        made += [await browser(relay.port, token, "idle"), await agent(relay.port, token)]
    return made


async def calls(one: IndependentAgent, name: str) -> int:
    """Make calls and check every answer; returns how many were correct."""
    own = 0
    for number in range(CALLS):
        params = {"who": name, "n": number}
        own += await one.result("act", params) == {"method": "act", "params": params}
    return own


async def test_busy_agents_lose_no_answers_beside_idle_connections(relay: Relay) -> None:
    base = f"ws://127.0.0.1:{relay.port}"
    kept = await idle(relay, range(IDLE_USERS))
    async with AsyncExitStack() as stack:
        browsers = {
            user: await stack.enter_async_context(IndependentExtension(base, relay.token(user)))
            for user in (f"busy{number}" for number in range(USERS))
        }
        agents = {}
        for number in range(BUSY):
            user = f"busy{number % USERS}"
            one = await stack.enter_async_context(IndependentAgent(base, relay.token(user)))
            agents[f"{user}/{number}"] = await one.ready()
        done = await asyncio.gather(*(calls(one, name) for name, one in agents.items()))
        assert done == [CALLS] * BUSY
        for user, there in browsers.items():
            assert {request["params"]["who"].partition("/")[0] for request in there.requests} == {user}
            assert len(there.requests) == CALLS * BUSY // USERS
    assert not [wire for wire in kept if wire.transport.is_closing()]
    for wire in kept:
        wire.transport.close()
