"""Many agents at once, many idle ones, and many that come and go: the hub keeps nothing of those that left."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.harness.agent import Agent
from tests.harness.fake_extension import FakeExtension, tab
from tests.harness.hub import RunningHub, running_hub
from tests.harness.waiting import until

UNLIMITED = {"session_rate": 0}


def echo(params: dict[str, Any]) -> dict[str, Any]:
    """A browser in which a script returns its own tab and text."""
    if params["method"] != "Runtime.evaluate":
        return {}
    text = params["params"]["expression"].split("'")[1]
    return {"result": {"type": "string", "value": f"{params['tabId']}:{text}"}}


@asynccontextmanager
async def agents(hub: RunningHub, count: int) -> AsyncIterator[list[Agent]]:
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(Agent(hub)) for _ in range(count)]


async def call(agent: Agent, tab_id: int, text: str) -> str:
    answer = await agent.call("browser_execute_script", {"tabId": tab_id, "code": f"return '{text}'"})
    value: str = answer["result"]["structuredContent"]["value"]
    return value


async def test_many_agents_on_many_tabs_lose_and_cross_no_answer(tmp_path: Path) -> None:
    each = 5
    tabs = [tab(n) for n in range(20 * each)]
    async with running_hub(tmp_path, limits=UNLIMITED) as hub:
        async with FakeExtension(hub, tabs=tabs) as browser, agents(hub, 20) as all_of:
            browser.handlers["forwardCDPCommand"] = echo

            async def work(number: int, agent: Agent) -> int:
                right = 0
                for n in range(10):
                    tab_id = number * each + n % each
                    right += await call(agent, tab_id, f"{number}-{n}") == f"{tab_id}:{number}-{n}"
                return right

            done = await asyncio.gather(*(work(number, agent) for number, agent in enumerate(all_of)))
        assert done == [10] * 20
        assert len(hub.hub.engine.calls) == 0
        assert len(hub.hub.leases) == len(tabs)
        lines = hub.home.audit.read_bytes().splitlines()
        assert len(lines) == 200
        assert all(orjson.loads(line)["success"] for line in lines)


@pytest.mark.req("S002-rate-04")
async def test_ten_agents_that_start_together_all_get_a_session_of_their_own(hub: RunningHub) -> None:
    starting = [Agent(hub) for _ in range(10)]
    await asyncio.gather(*(agent.__aenter__() for agent in starting))
    assert len({agent.headers["Mcp-Session-Id"] for agent in starting}) == 10
    assert len(hub.hub.sessions) == 10
    await asyncio.gather(*(agent.http.aclose() for agent in starting))


async def test_busy_agents_get_their_own_answers_beside_idle_ones_that_listen(tmp_path: Path) -> None:
    tabs = [tab(n) for n in range(3)]
    async with (
        running_hub(tmp_path, limits=UNLIMITED) as hub,
        FakeExtension(hub, tabs=tabs) as browser,
        agents(hub, 3) as busy,
        agents(hub, 20) as idle,
        AsyncExitStack() as stack,
    ):
        browser.handlers["forwardCDPCommand"] = echo
        for agent in idle:
            events = await stack.enter_async_context(agent.listening())
            await events.next()
        assert len(hub.hub.sessions) == 23
        for n in range(30):
            assert await call(busy[n % 3], n % 3, str(n)) == f"{n % 3}:{n}"


def tasks() -> int:
    return len(asyncio.all_tasks())


def descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


async def test_agents_and_browsers_that_come_and_go_leave_nothing_behind(tmp_path: Path) -> None:
    async with running_hub(tmp_path, limits=UNLIMITED) as hub:

        async def cycle(number: int) -> None:
            async with FakeExtension(hub, f"browser-{number % 7}") as browser, Agent(hub) as agent:
                browser.handlers["forwardCDPCommand"] = echo
                tabs = (await agent.call("browser_list_tabs"))["result"]["structuredContent"]["tabs"]
                assert await call(agent, tabs[0]["tabId"], "x") == "7:x"
                if number % 3 == 0:
                    browser.cut()
                if number % 2 == 0:
                    async with agent.listening() as events:
                        await events.next()
                await agent.http.delete("/mcp", headers=agent.headers)

        for number in range(6):
            await cycle(number)
        await until(lambda: not hub.hub.browsers.links())
        baseline = tasks(), descriptors()
        for number in range(30):
            await cycle(number)
        gc.collect()
        await until(lambda: tasks() <= baseline[0] and descriptors() <= baseline[1])
        assert len(hub.hub.sessions) == 0
        assert len(hub.hub.engine.calls) == 0
        assert len(hub.hub.browsers.book) == 0
        assert all(not endpoint.handshake.sessions for endpoint in (hub.hub.mcp, hub.hub.gateway))
