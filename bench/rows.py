"""The load rows: how many agents, tabs and connections a hub carries without losing, crossing or keeping anything.

Owns what each row does and what it must give. The hub runs in a process of its own; agents and browsers are crowd.py's.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import tempfile
import time
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles

import uvloop

from bench import report
from bench.crowd import Agent, Browser, CrossedError, over_daemon
from bench.processes import Child, free_port
from bench.servers import start_hub

MB = 1024 * 1024
TABS_PER_BROWSER = 2500


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a row gave: each fact with its bound."""

    row: str
    did: str
    facts: tuple[tuple[str, float, float], ...]
    """Name, value, and the most it may be."""

    @property
    def met(self) -> bool:
        """Whether every bound is kept."""
        return all(value <= most for _, value, most in self.facts)


@dataclass(frozen=True, slots=True)
class Hub:
    """The hub under load."""

    port: int
    secret: str
    child: Child
    home: Path

    def agent(self) -> Agent:
        """A new agent."""
        return Agent(self.port, self.secret)

    def browser(self, name: str, tabs: range) -> Browser:
        """A new browser."""
        return Browser(self.port, self.secret, name, tabs)

    @asynccontextmanager
    async def agents(self, count: int) -> AsyncIterator[list[Agent]]:
        """That many agents."""
        async with AsyncExitStack() as stack:
            yield [await stack.enter_async_context(self.agent()) for _ in range(count)]

    @asynccontextmanager
    async def browsers(self, tabs: int) -> AsyncIterator[None]:
        """As many browsers as that many tabs take; the tabs have the numbers from 1 on."""
        async with AsyncExitStack() as stack:
            for first in range(1, tabs + 1, TABS_PER_BROWSER):
                own = range(first, min(first + TABS_PER_BROWSER, tabs + 1))
                await stack.enter_async_context(self.browser(f"crowd-{first}", own))
            yield

    def metric(self, name: str) -> float:
        """The sum of one of its counters."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/metrics", headers={"Authorization": f"Bearer {self.secret}"}
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            text = answer.read().decode()
        return sum(float(value) for value in re.findall(rf"^{name} ([0-9.e+]+)$", text, re.MULTILINE))

    def descriptors(self) -> tuple[int, int]:
        """Its open files, and how many of them are sockets."""
        links = []
        for link in Path(f"/proc/{self.child.process.pid}/fd").iterdir():
            with suppress(FileNotFoundError):  # it was closed under our eyes
                links.append(str(link.readlink()))
        return len(links), sum(link.startswith("socket:") for link in links)


@contextmanager
def running() -> Iterator[Hub]:
    """A hub with a home of its own, without a limit on new sessions and with nobody to ask."""
    with tempfile.TemporaryDirectory(prefix="tabhub-rows-") as where:
        home, port = Path(where, "home"), free_port()
        home.mkdir(mode=0o700)
        settings = {"limits": {"session_rate": 0}, "permissions": {"default": "auto"}, "dataflow": "off"}
        (home / "config.json").write_text(json.dumps(settings))
        (home / "config.json").chmod(0o600)
        child, _ = start_hub(home, port)
        with child:
            secret: str = json.loads((home / "extension" / "auth.json").read_text())["secret"]
            yield Hub(port, secret, child, home)


async def l1(hub: Hub, agents: int = 50, tabs: int = 20, calls: int = 200) -> Outcome:
    """Every agent makes `calls` calls in each of `tabs` tabs of its own."""
    answered = crossed = failed = 0
    async with hub.browsers(agents * tabs), hub.agents(agents) as all_of:

        async def work(number: int, agent: Agent) -> None:
            nonlocal answered, crossed, failed
            for n in range(tabs * calls):
                try:
                    await agent.echo(number * tabs + n % tabs + 1, f"{number}-{n}")
                    answered += 1
                except TimeoutError:
                    return  # what this agent has not had, it will not get
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
    """Every agent goes round the tabs of its own; the hub's memory is read again and again once all were visited."""
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
    first, last = median(memory[:5]), median(memory[-5:])
    return Outcome(
        "L2",
        f"{agents} agents x {tabs} tabs, {seconds:g} s, {calls:,} calls, {first:.1f} to {last:.1f} MB{first_error}",
        (("errors", errors, 0), ("growth in %", round(100 * (last / first - 1), 2), 5)),
    )


async def l3(
    hub: Hub, idle: int = 500, busy: int = 10, calls: int = 100, rounds: int = 10, slack: float = 0
) -> Outcome:
    """Busy agents alone, and then beside others that only listen.

    The best round counts, since what else a machine does only makes a p99 later; `slack` is what it may be later in
    any case, in milliseconds.
    """
    async with hub.browsers(busy), hub.agents(busy) as all_of:

        async def late() -> float:
            took: list[float] = []

            async def work(number: int, agent: Agent) -> None:
                for n in range(calls):
                    began = time.perf_counter()
                    await agent.echo(number + 1, f"{number}-{n}")
                    took.append((time.perf_counter() - began) * 1000)

            await asyncio.gather(*(work(number, agent) for number, agent in enumerate(all_of)))
            return quantiles(took, n=100)[98]

        await late()
        alone = min([await late() for _ in range(rounds)])
        before = hub.child.rss_mb()
        async with hub.agents(idle) as quiet:
            for agent in quiet:
                await agent.listen()
            each = (hub.child.rss_mb() - before) * 1024 / idle
            beside = min([await late() for _ in range(rounds)])
    return Outcome(
        "L3",
        f"{idle} idle beside {busy} busy agents, p99 {alone:.2f} ms alone and {beside:.2f} ms beside",
        (("KB an idle agent", round(each, 1), 100), ("p99 in multiples", round((beside - slack) / alone, 2), 2)),
    )


async def l7(hub: Hub, cycles: int = 1000) -> Outcome:
    """Agents and browsers come and go, in order and cut off."""
    socket = json.loads((hub.home / "hub.json").read_text())["socket"]

    async def cycle(number: int) -> None:
        async with hub.browser(f"crowd-{number % 7}", range(1, 4)) as browser, hub.agent() as agent:
            (tab_id, *_) = [each["tabId"] for each in (await agent.call("browser_list_tabs", {}))["tabs"]]
            await agent.call("browser_execute_script", {"tabId": tab_id, "code": "return 'x'"})
            if number % 3 == 0:
                browser.cut()
            if number % 2 == 0:
                await agent.listen()
                agent.cut()
            await agent.end()
        if number % 4 == 0:
            await over_daemon(socket)

    async def settled(bound: tuple[float, ...] | None) -> tuple[float, ...]:
        """Tasks, files, sockets and sessions once they are no more than the bound, or after some seconds."""
        found: tuple[float, ...] = ()
        for _ in range(100):
            found = hub.metric("tabhub_tasks"), *hub.descriptors(), hub.metric("tabhub_sessions")
            if bound is not None and all(value <= most for value, most in zip(found, bound, strict=True)):
                break
            await asyncio.sleep(0.05)
        return found

    for number in range(20):
        await cycle(number)
    base = await settled(None)
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


ROWS: dict[str, Callable[[Hub], Awaitable[Outcome]]] = {"L1": l1, "L3": l3, "L7": l7, "L2": l2}


def main(rows: Sequence[str]) -> None:
    """Run the rows that are named, each against a hub of its own; the exit code says whether all is met."""
    done = []
    for name in [row for row in ROWS if row in rows or not rows]:
        with running() as hub:
            outcome = uvloop.run(_one(ROWS[name], hub))
        print(f"{outcome.row}: {outcome.did}", flush=True)
        done.append(outcome)
    lines = [
        [outcome.row, fact, f"{value:,g}", f"{most:,g}", "met" if value <= most else "NOT met"]
        for outcome in done
        for fact, value, most in outcome.facts
    ]
    print(report.table(["row", "what", "seen", "at most", ""], lines))
    if not all(outcome.met for outcome in done):
        raise SystemExit(1)


async def _one(row: Callable[[Hub], Awaitable[Outcome]], hub: Hub) -> Outcome:
    return await row(hub)
