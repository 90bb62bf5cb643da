"""Load rows of the matrix: how many agents, tabs and connections a hub can handle.

Owns what L1, L2, L3 and L7 do and their bounds; matrix.py runs them. The hub runs in its own process; crowd.py provides
agents and browsers. tests/load runs the rows with small numbers and checks only what must hold at any speed.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import tempfile
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles

from bench.crowd import Agent, Browser, CrossedError, over_bridge
from bench.processes import Child, free_port
from bench.servers import agent_token, start_hub
from tabhub.store import extension_key
from tabhub.store.home import Home

MB = 1024 * 1024
TABS_PER_BROWSER = 2500


Fact = tuple[str, float, float]
"""Name, value, and maximum."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a row: each value with its bound."""

    row: str
    did: str
    checks: tuple[Fact, ...]
    """Values that must be met on any machine, however busy: nothing lost, crossed or left behind."""
    figures: tuple[Fact, ...] = ()
    """Times and memory."""

    @property
    def correct(self) -> bool:
        """Whether all values that do not depend on the machine are met."""
        return all(value <= most for _, value, most in self.checks)

    @property
    def met(self) -> bool:
        """Whether all bounds are met."""
        return self.correct and all(value <= most for _, value, most in self.figures)


@dataclass(frozen=True, slots=True)
class Hub:
    """The hub under load."""

    port: int
    token: str
    """An agent's."""
    extension_key: str
    child: Child
    home: Path

    def agent(self) -> Agent:
        return Agent(self.port, self.token)

    def browser(self, name: str, tabs: range) -> Browser:
        return Browser(self.port, self.extension_key, name, tabs)

    @asynccontextmanager
    async def agents(self, count: int) -> AsyncIterator[list[Agent]]:
        async with AsyncExitStack() as stack:
            yield [await stack.enter_async_context(self.agent()) for _ in range(count)]

    @asynccontextmanager
    async def browsers(self, tabs: int) -> AsyncIterator[None]:
        """As many browsers as this many tabs need; the tabs are numbered from 1."""
        async with AsyncExitStack() as stack:
            for first in range(1, tabs + 1, TABS_PER_BROWSER):
                own = range(first, min(first + TABS_PER_BROWSER, tabs + 1))
                await stack.enter_async_context(self.browser(f"crowd-{first}", own))
            yield

    def metric(self, name: str) -> float:
        """The sum of one of its counters."""
        key = (self.home / "run" / "person.key").read_text()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/metrics", headers={"Authorization": f"Bearer {key}"}
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            text = answer.read().decode()
        return sum(float(value) for value in re.findall(rf"^{name} ([0-9.e+]+)$", text, re.MULTILINE))

    def descriptors(self) -> tuple[int, int]:
        """Its open files, and how many of them are sockets."""
        links = []
        for link in Path(f"/proc/{self.child.process.pid}/fd").iterdir():
            with suppress(FileNotFoundError):  # closed in the meantime
                links.append(str(link.readlink()))
        return len(links), sum(link.startswith("socket:") for link in links)


@contextmanager
def running(*launcher: str) -> Iterator[Hub]:
    """A hub with a temporary home, no limit on new sessions and no approvals.

    `launcher` replaces `-m tabhub`.
    """
    with tempfile.TemporaryDirectory(prefix="tabhub-rows-") as where:
        home, port = Path(where, "home"), free_port()
        home.mkdir(mode=0o700)
        settings = {"limits": {"session_rate": 0}, "permissions": {"default": "auto"}, "dataflow": "off"}
        (home / "config.json").write_text(json.dumps(settings))
        (home / "config.json").chmod(0o600)
        child, _ = start_hub(home, port, launcher=launcher or ("-m", "tabhub"))
        with child:
            yield Hub(port, agent_token(home), extension_key.read(Home(home)), child, home)


async def l1(hub: Hub, agents: int = 50, tabs: int = 20, calls: int = 200) -> Outcome:
    """Every agent makes `calls` calls in each of its own `tabs` tabs."""
    answered = crossed = failed = 0
    async with hub.browsers(agents * tabs), hub.agents(agents) as all_of:

        async def work(number: int, agent: Agent) -> None:
            nonlocal answered, crossed, failed
            for n in range(tabs * calls):
                try:
                    await agent.echo(number * tabs + n % tabs + 1, f"{number}-{n}")
                    answered += 1
                except TimeoutError:
                    return  # what this agent has not received by now will not arrive
                except CrossedError:
                    crossed += 1
                except AssertionError:
                    failed += 1

        began = time.monotonic()
        await asyncio.gather(*(work(number, agent) for number, agent in enumerate(all_of)))
        took = time.monotonic() - began
        counted = hub.metric(r'tabhub_calls_total\{outcome="ok",plugin="browser"\}')
    total = agents * tabs * calls
    return Outcome(
        "L1",
        f"{agents} agents x {tabs} tabs x {calls} calls = {total:,}, {total / took:,.0f} calls/s",
        (
            ("lost", total - answered - crossed - failed, 0),
            ("crossed", crossed, 0),
            ("failed", failed, 0),
            ("not counted by the hub", total - counted, 0),
        ),
    )


async def l2(hub: Hub, agents: int = 200, tabs: int = 100, seconds: float = 300, warm: float = 120) -> Outcome:
    """Every agent visits each of its own tabs; then all continue for some time, while the hub's memory is measured."""
    calls = errors = 0
    first_error = ""
    memory: list[float] = []
    async with hub.browsers(agents * tabs), hub.agents(agents) as all_of:

        async def visit(number: int, agent: Agent, n: int) -> None:
            nonlocal calls, errors, first_error
            try:
                await agent.echo(number * tabs + n % tabs + 1, f"{number}-{n}")
            except (AssertionError, TimeoutError) as error:
                errors += 1
                first_error = first_error or f", first error: {error!r}"
            calls += 1

        async def work(number: int, agent: Agent, stop: float) -> None:
            for n in itertools.count():
                if time.monotonic() >= stop:
                    return
                await visit(number, agent, n)

        async def watch(stop: float) -> None:
            await asyncio.sleep(warm)
            while time.monotonic() < stop:
                memory.append(hub.child.rss_mb())
                await asyncio.sleep(seconds / 30)

        async def once(number: int, agent: Agent) -> None:
            for n in range(tabs):
                await visit(number, agent, n)

        await asyncio.gather(*(once(number, agent) for number, agent in enumerate(all_of)))
        end = time.monotonic() + warm + seconds
        await asyncio.gather(watch(end), *(work(number, agent, end) for number, agent in enumerate(all_of)))
    checks = (("errors", errors, 0),)
    did = f"{agents} agents x {tabs} tabs, {seconds:g} s after {warm:g} s of warm-up, {calls:,} calls{first_error}"
    if not memory:
        return Outcome("L2", did, checks)
    first, last = median(memory[:5]), median(memory[-5:])
    growth = round(100 * (last / first - 1), 2)
    return Outcome("L2", f"{did}, {first:.1f} to {last:.1f} MB", checks, (("growth in %", growth, 5),))


async def l3(hub: Hub, idle: int = 500, busy: int = 10, calls: int = 100, rounds: int = 10) -> Outcome:
    """First only busy agents, and then also others that only listen: medians of the rounds."""
    crossed = 0
    async with hub.browsers(busy), hub.agents(busy) as all_of:

        async def p99() -> float:
            nonlocal crossed
            took: list[float] = []

            async def work(number: int, agent: Agent) -> None:
                nonlocal crossed
                for n in range(calls):
                    began = time.perf_counter()
                    try:
                        await agent.echo(number + 1, f"{number}-{n}")
                    except CrossedError:
                        crossed += 1
                    took.append((time.perf_counter() - began) * 1000)

            await asyncio.gather(*(work(number, agent) for number, agent in enumerate(all_of)))
            return quantiles(took, n=100)[98]

        await p99()
        alone = median([await p99() for _ in range(rounds)])
        before = hub.child.rss_mb()
        async with hub.agents(idle) as quiet:
            for agent in quiet:
                await agent.listen()
            each = (hub.child.rss_mb() - before) * 1024 / idle
            sessions = hub.metric("tabhub_sessions")
            beside = median([await p99() for _ in range(rounds)])
    return Outcome(
        "L3",
        f"{idle} idle beside {busy} busy agents, p99 {alone:.2f} ms alone and {beside:.2f} ms beside",
        (("crossed", crossed, 0), ("missing sessions", idle + busy - sessions, 0)),
        (("KB per idle agent", round(each, 1), 100), ("p99 to p99 alone", round(beside / alone, 2), 2)),
    )


async def l7(hub: Hub, cycles: int = 1000) -> Outcome:
    """Agents and browsers connect and disconnect, some cleanly and some by a cut connection."""
    socket = json.loads((hub.home / "hub.json").read_text())["socket"]

    async def cycle(number: int) -> None:
        async with hub.browser(f"crowd-{number % 7}", range(1, 4)) as browser, hub.agent() as agent:
            (_, line, *_) = (await agent.call("browser_list_tabs", {})).splitlines()  # below its browser and window
            tab_id = int(line.split(maxsplit=1)[0])
            await agent.call("browser_execute_script", {"tabId": tab_id, "code": "return 'x'"})
            if number % 3 == 0:
                browser.cut()
            if number % 2 == 0:
                await agent.listen()
                agent.cut()
            await agent.end()
        if number % 4 == 0:
            await over_bridge(socket, hub.token)

    def look() -> tuple[float, ...]:
        return hub.metric("tabhub_tasks"), *hub.descriptors(), hub.metric("tabhub_sessions")

    async def baseline() -> tuple[float, ...]:
        """Tasks, files, sockets and sessions once they no longer change."""
        found, same = look(), 0
        while same < 10:
            await asyncio.sleep(0.05)
            before, found = found, look()
            same = same + 1 if found == before else 0
        return found

    async def settled(bound: tuple[float, ...]) -> tuple[float, ...]:
        """The same once they do not exceed the bound, or after half a minute."""
        found: tuple[float, ...] = ()
        for _ in range(600):
            found = look()
            if all(value <= most for value, most in zip(found, bound, strict=True)):
                break
            await asyncio.sleep(0.05)
        return found

    for number in range(20):
        await cycle(number)
    base = await baseline()
    for number in range(cycles):
        await cycle(number)
    after = await settled(base)
    return Outcome(
        "L7",
        f"{cycles:,} cycles of agents and of extensions",
        tuple(
            (name, value, most)
            for name, value, most in zip(("tasks", "files", "sockets", "sessions"), after, base, strict=True)
        ),
    )
