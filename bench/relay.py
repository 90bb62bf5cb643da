"""Measure the relay: forwarded calls next to a bare WebSocket echo, a second node, and many idle connections.

Owns the section `relay` of docs/performance.md. The relay and the echoes run in their own processes, on the same
uvicorn and the same event loop, and alternate, so that a busy machine affects all of them equally.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import uvloop

from bench import relay_nodes, report
from bench.processes import Child, free_port
from bench.relay_clients import Wire, agent, browser
from bench.relay_load import Route, Seen, run
from bench.relay_servers import ECHO, OWN_ECHO, Echo, Relay
from tabhub.limits import DEFAULTS

AGENTS = (1, 32, 200)
BUSY = 200
IDLE_SECONDS = 2 * 2 * DEFAULTS.relay_ping
"""Two intervals in which every silent client is pinged once."""


@dataclass(frozen=True, slots=True)
class Crowd:
    """Many idle connections, and some busy ones."""

    connections: int
    kb_each: float
    idle_cpu: float
    busy: Seen


async def _idle(relay: Relay, connections: int) -> list[Wire]:
    """Connected idle clients, half of them browsers and half agents of the same users."""
    kept: list[Wire] = []
    for number in range(connections // 2):
        token = relay.token(f"user{number}")
        kept.append(await browser(relay.port, token, "idle"))
        kept.append(await agent(relay.port, token))
    return kept


async def crowd(relay: Relay, connections: int, seconds: float) -> Crowd:
    """The memory and CPU time a node needs for idle connections, and what is left for the busy ones."""
    warm = [await browser(relay.port, relay.token(f"warm{number}"), "warm") for number in range(50)]
    await asyncio.sleep(1)
    before = relay.child.rss_mb()
    kept = await _idle(relay, connections)
    await asyncio.sleep(2)
    grown, cpu = relay.child.rss_mb() - before, relay.child.cpu_seconds()
    await asyncio.sleep(IDLE_SECONDS)
    idle_cpu = (relay.child.cpu_seconds() - cpu) / IDLE_SECONDS
    route = Route("relay", relay.port, relay.port, relay.token("busy"))
    busy = await asyncio.to_thread(run, route, [relay.child], agents=BUSY, seconds=seconds)
    for wire in [*warm, *kept]:
        wire.transport.close()
    return Crowd(connections, grown * 1024 / connections, idle_cpu, busy)


def compare(routes: Sequence[tuple[Route, Child]], agents: int, seconds: float, rounds: int) -> dict[str, list[Seen]]:
    """All routes, alternating."""
    seen: dict[str, list[Seen]] = {route.name: [] for route, _ in routes}
    for _ in range(rounds):
        for route, child in routes:
            seen[route.name].append(run(route, [child], agents=agents, seconds=seconds))
    return seen


def ratio(these: Sequence[Seen], those: Sequence[Seen]) -> float:
    """The ratio of the rates of two alternating routes: the median of their rounds."""
    return median(one.rate / other.rate for one, other in zip(these, those, strict=True))


def cpu_ratio(these: Sequence[Seen], those: Sequence[Seen]) -> float:
    """The same ratio in calls per CPU time, on which other load of the machine has less influence."""
    return median(one.cpu_us[0] for one in those) / median(one.cpu_us[0] for one in these)


def _forwarded(seconds: float, rounds: int, agents: Sequence[int], idle: int) -> tuple[str, list[str]]:
    rows, wanted = [], []
    with tempfile.TemporaryDirectory(prefix="tabhub-bench-") as name:
        where = Path(name)
        echo, own, relay = Echo(where, "echo", ECHO), Echo(where, "own echo", OWN_ECHO), Relay(where, free_port())
        with echo.child, own.child, relay.child:
            routes = [(Route("relay", relay.port, relay.port, relay.token("ann")), relay.child)]
            routes += [(Route(each.name, each.port), each.child) for each in (echo, own)]
            for count in agents:
                seen = compare(routes, count, seconds, rounds)
                for kind, runs in seen.items():
                    shares = [f"{ratio(runs, seen[each.name]):.2f}" for each in (echo, own)]
                    rows.append((kind, str(count), f"{median(r.rate for r in runs):,.0f}", *shares, *_times(runs)))
                for each in (echo, own):
                    what = f"forwarded calls to the {each.name}, agents {count}"
                    share, cpu = (how(seen["relay"], seen[each.name]) for how in (ratio, cpu_ratio))
                    wanted.append(report.verdict(f"{what}, by rate", share, 0.5, at_least=True))
                    wanted.append(report.verdict(f"{what}, by CPU", cpu, 0.5, at_least=True))
        relay = Relay(where, free_port())
        with relay.child:
            found = uvloop.run(crowd(relay, idle, seconds))
    wanted.append(
        report.verdict(f"KB an idle connection, {found.connections:,} of them", found.kb_each, 40, at_least=False)
    )
    idle_us = found.idle_cpu / found.connections * 1e6
    wanted.append(report.verdict("us of CPU an idle connection and second", idle_us, 2, at_least=False))
    head = ("", "agents", "calls/s", "of echo", "of own echo", "p50 ms", "p99 ms", "CPU us/call", "cores server+load")
    text = report.table(head, rows)
    busy = found.busy
    text += (
        f"\n\nWith {found.connections:,} idle connections on the node ({found.idle_cpu:.3f} cores by themselves),"
        f" {BUSY} busy agents made {busy.rate:,.0f} calls/s, p50 {busy.p50_ms:.2f} ms, p99 {busy.p99_ms:.2f} ms,"
        f" {busy.cpu_us[0]:.1f} us CPU a call."
    )
    return text, wanted


def _times(runs: Sequence[Seen]) -> tuple[str, ...]:
    cores = "+".join(f"{median(r.cores[at] for r in runs):.2f}" for at in range(2))
    p50, p99 = median(r.p50_ms for r in runs), median(r.p99_ms for r in runs)
    return f"{p50:.3f}", f"{p99:.2f}", f"{median(r.cpu_us[0] for r in runs):.1f}", cores


def main(*, seconds: float, rounds: int, agents: Sequence[int] = AGENTS, idle: int = 2000) -> None:
    """Measure, print, and write the section of docs/performance.md."""
    forwarded, wanted = _forwarded(seconds, rounds, agents, idle)
    across, more = relay_nodes.section(seconds, rounds)
    note = f"Medians of {rounds} interleaved rounds of {seconds:g} s; {report.machine()}."
    text = "\n\n".join((note, forwarded, across, "\n".join([*wanted, *more])))
    print(f"\n{text}\n")
    report.write_section("relay", text)
    sys.stdout.flush()
