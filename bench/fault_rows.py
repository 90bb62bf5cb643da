"""Rows of the matrix that measure time: how soon a fault is detected, and how soon a killed hub is back.

Owns what F1, F9, F10, F14 and F21 do and their bounds; matrix.py runs them. Correctness is tested by tests/faults,
tests/upstream and tests/relay.
"""

from __future__ import annotations

import asyncio
import json
import signal
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from statistics import median
from typing import Any

from bench.crowd import Agent as CrowdAgent
from bench.crowd import Browser as CrowdBrowser
from bench.large_rows import address
from bench.processes import free_port
from bench.relay_nodes import Nodes
from bench.rows import Hub, Outcome
from bench.servers import agent_token, start_hub
from tabhub.store import extension_key
from tabhub.store.audit import digest
from tabhub.store.home import Home
from tests.harness.agent import Agent
from tests.harness.fake_extension import FakeExtension, Silent, tab
from tests.harness.hub import running_hub
from tests.harness.waiting import until
from tests.relay.independent import IndependentAgent, IndependentExtension
from tests.upstream.servers import python_http

SCRIPT = "browser_execute_script"


def _hold(params: dict[str, Any]) -> object:
    """A browser in which scripts never end."""
    return Silent if params["method"] == "Runtime.evaluate" else {}


def _never(_method: str, _params: dict[str, Any]) -> None:
    """A browser that does not answer."""


async def f1(hub: Hub, rounds: int = 20) -> Outcome:
    """The link to the browser is cut during a call."""

    async def cut(browser: FakeExtension) -> None:
        browser.cut()

    return await _noticed(hub, "F1", "the link was cut", cut, rounds)


async def f9(hub: Hub, rounds: int = 20) -> Outcome:
    """The tab is closed during a call."""

    async def close(browser: FakeExtension) -> None:
        [only] = browser.tabs
        await browser.notify("tab.stateChanged", {"tabId": only["tabId"], "change": "removed"})

    return await _noticed(hub, "F9", "the tab was closed", close, rounds)


async def _noticed(
    hub: Hub, row: str, what: str, break_it: Callable[[FakeExtension], Awaitable[None]], rounds: int
) -> Outcome:
    took, wrong = [], 0
    for number in range(1, rounds + 1):
        async with (
            Agent(address(hub)) as agent,
            FakeExtension(address(hub), f"browser-{number}", [tab(number)]) as browser,
        ):
            browser.handlers["forwardCDPCommand"] = _hold
            call = asyncio.create_task(agent.call(SCRIPT, {"tabId": number, "code": "return 1"}))
            while (await browser.next_request("forwardCDPCommand"))["params"]["method"] != "Runtime.evaluate":
                pass
            began = time.perf_counter()
            await break_it(browser)
            failed = await call
            took.append((time.perf_counter() - began) * 1000)
            wrong += failed["result"]["_meta"]["tabhub/error"]["outcome"] != "unknown"
    return Outcome(
        row,
        f"{rounds} times {what} during a call; it failed after {median(took):.1f} ms (median)",
        (("other outcomes than unknown", wrong, 0),),
        (("ms until the call failed, slowest", round(max(took), 1), 1000),),
    )


async def f10(kills: int = 20, agents: int = 6, calls: int = 240) -> Outcome:
    """A hub is killed under load and restarted, repeatedly."""
    answered: list[dict[str, Any]] = []
    starts = []
    with tempfile.TemporaryDirectory(prefix="tabhub-rows-") as where:
        home = Path(where, "home")
        for kill in range(kills):
            child, seconds = await asyncio.to_thread(start_hub, home, port := free_port())
            starts.append(seconds)
            with child:
                token = agent_token(home)
                enough = len(answered) + calls

                async def work(tab_id: int, port: int = port, token: str = token) -> None:
                    async with CrowdAgent(port, token) as agent:
                        number = 0
                        while True:
                            number += 1
                            arguments = {"tabId": tab_id, "code": f"return '{tab_id}-{number}'"}
                            await agent.call(SCRIPT, arguments)
                            answered.append(arguments)

                tabs = range(kill * agents + 1, (kill + 1) * agents + 1)  # new sessions: leases survive a kill
                async with CrowdBrowser(port, extension_key.read(Home(home)), f"crowd-{kill}", tabs):
                    tasks = [asyncio.create_task(work(tab_id)) for tab_id in tabs]
                    await until(lambda enough=enough: len(answered) >= enough)  # type: ignore[misc]
                    child.end(signal.SIGKILL)
                    await asyncio.gather(*tasks, return_exceptions=True)
        lines = (home / "audit.log").read_bytes().splitlines()
    audited = {json.loads(line)["argsDigest"] for line in lines if line.endswith(b"}")}
    missing = sum(digest(arguments) not in audited for arguments in answered)
    return Outcome(
        "F10",
        f"{kills} kills under the load of {agents} agents, {len(answered):,} answered calls; "
        f"back after {median(starts[1:]) * 1000:.0f} ms (median)",
        (("answered calls missing in the audit log", missing, 0),),
        (("s until a killed hub was back, slowest", round(max(starts[1:]), 2), 2),),
    )


async def f14(calls: int = 50) -> Outcome:
    """Calls of one external server while others hang, answer byte by byte, or answer without end."""
    took = []
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tabhub-rows-")))
        urls = {
            name: await stack.enter_async_context(python_http("broken_http", free_port())) for name in ("bad", "good")
        }
        hub = await stack.enter_async_context(running_hub(folder))
        agent = await stack.enter_async_context(Agent(hub))
        await hub.hub.upstream.add({name: {"url": url} for name, url in urls.items()})
        bad = [asyncio.create_task(agent.call(f"mcp__bad__{tool}")) for tool in ("hangs", "drips", "endless")]
        for _ in range(calls):
            began = time.perf_counter()
            answer = await agent.call("mcp__good__fine")
            took.append((time.perf_counter() - began) * 1000)
            assert "isError" not in answer["result"], answer
        for task in bad:
            task.cancel()
    return Outcome(
        "F14",
        f"{calls} calls of a server next to one that hangs, answers byte by byte or sends without end; "
        f"{median(took):.1f} ms each",
        (),
        (("ms a call of the other server took, slowest", round(max(took), 1), 1000),),
    )


async def f21(rounds: int = 5) -> Outcome:
    """The browser's relay node is killed during a call of an agent on another node."""
    took = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory(prefix="tabhub-rows-") as where:
            nodes = await asyncio.to_thread(Nodes, Path(where))
            here, there = nodes.nodes
            try:
                token = nodes.token("ann")
                async with (
                    IndependentExtension(f"ws://127.0.0.1:{there.port}", token) as far,
                    IndependentAgent(f"ws://127.0.0.1:{here.port}", token) as agent,
                ):
                    far.handle = _never
                    await agent.ready()
                    call = await agent.begin("click")
                    await until(lambda far=far: bool(far.requests))  # type: ignore[misc]
                    began = time.perf_counter()
                    there.child.process.kill()
                    lost = await call
                    took.append(time.perf_counter() - began)
                    assert lost["error"]["data"]["outcome"] == "unknown"
            finally:
                for child in nodes.children:
                    child.end()
    return Outcome(
        "F21",
        f"{rounds} kills of the browser's relay node during a call; it failed after {median(took):.1f} s (median)",
        (),
        (("s until the call failed, slowest", round(max(took), 1), 5),),
    )
