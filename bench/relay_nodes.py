"""Measure what a second relay node costs: the same calls with agent and browser on one node, and on two over NATS.

Both routes alternate. `python -m bench.relay_nodes` prints the cost of idle users, for docs/scale.md.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sysconfig
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median

import uvloop

from bench import report
from bench.processes import Child, free_port
from bench.relay_clients import Wire, agent, browser
from bench.relay_load import Route, Seen, run
from bench.relay_servers import Relay, listens

BROWSER_US = 200
"""With this delay a call on one node takes about 0.3 ms, like the bare echo of a real Chromium's extension at its
hub."""
CASES = ((1, 0), (1, BROWSER_US), (32, 0), (200, 0))
"""Agents, and how long their browser takes to answer."""


class Nodes:
    """A nats-server and two nodes connected to it."""

    def __init__(self, where: Path) -> None:
        bus = free_port()
        binary = Path(sysconfig.get_path("scripts")) / "nats-server"
        self.nats = Child([str(binary), "-a", "127.0.0.1", "-p", str(bus)], log=where / "nats.log")
        self.nats.wait_until(lambda: listens(bus), "nats-server")
        self.nodes = [Relay(where, free_port(), "--bus", f"nats://127.0.0.1:{bus}") for _ in range(2)]
        self.children = [*(node.child for node in self.nodes), self.nats]

    def token(self, user: str) -> str:
        return self.nodes[0].token(user)

    def routes(self, work_us: int) -> tuple[Route, Route]:
        """Through the browser's own node, and through the other."""
        here, there = (node.port for node in self.nodes)
        token = self.token("ann")
        return Route("same", here, here, token, work_us), Route("cross", there, here, token, work_us)

    def cpu(self) -> tuple[float, float]:
        """CPU seconds of both nodes together, and of nats-server."""
        return sum(node.child.cpu_seconds() for node in self.nodes), self.nats.cpu_seconds()


def _row(kind: str, agents: int, work_us: int, runs: Sequence[Seen]) -> tuple[str, ...]:
    nodes = median(r.cpu_us[0] + r.cpu_us[1] for r in runs)
    return (
        {"same": "one node", "cross": "two nodes"}[kind],
        str(agents),
        f"{work_us / 1000:g}",
        f"{median(r.rate for r in runs):,.0f}",
        f"{median(r.p50_ms for r in runs):.3f}",
        f"{median(r.p99_ms for r in runs):.2f}",
        f"{nodes:.0f}",
        f"{median(r.cpu_us[2] for r in runs):.0f}",
    )


def section(seconds: float, rounds: int) -> tuple[str, list[str]]:
    """The table and the verdicts."""
    rows, wanted = [], []
    with tempfile.TemporaryDirectory(prefix="tabhub-bench-") as name, ExitStack() as stack:
        nodes = Nodes(Path(name))
        for child in nodes.children:
            stack.enter_context(child)
        for agents, work_us in CASES:
            seen: dict[str, list[Seen]] = {"same": [], "cross": []}
            for _ in range(rounds):
                for route in nodes.routes(work_us):
                    seen[route.name].append(run(route, nodes.children, agents=agents, seconds=seconds))
            pairs = zip(seen["cross"], seen["same"], strict=True)
            found = median(cross.p50_ms / same.p50_ms for cross, same in pairs)
            for kind, runs in seen.items():
                rows.append((*_row(kind, agents, work_us, runs), f"{found:.2f}" if kind == "cross" else "1.00"))
            who = f"{agents} agents" if agents > 1 else f"one agent, browser {work_us / 1000:g} ms"
            wanted.append(report.verdict(f"p50 across nodes to p50 on one, {who}", found, 3, at_least=False))
    head = (
        "",
        "agents",
        "browser ms",
        "calls/s",
        "p50 ms",
        "p99 ms",
        "CPU us/call nodes",
        "of NATS",
        "p50 to one node",
    )
    return report.table(head, rows), wanted


async def idle(nodes: Nodes, users: int) -> dict[str, float]:
    """The cost of idle users on a bus, with the browser on one node and an agent on the other."""
    before = [child.rss_mb() for child in nodes.children]
    kept: list[Wire] = []
    start = nodes.cpu()
    for number in range(users):
        token = nodes.token(f"idle{number}")
        kept.append(await browser(nodes.nodes[0].port, token, "idle"))
        kept.append(await agent(nodes.nodes[1].port, token))
    joining = [(after - old) / users / 2 * 1e6 for after, old in zip(nodes.cpu(), start, strict=True)]
    await asyncio.sleep(2)
    grown = [child.rss_mb() - old for child, old in zip(nodes.children, before, strict=True)]
    start = nodes.cpu()
    await asyncio.sleep(5)
    used = [(after - old) / 5 for after, old in zip(nodes.cpu(), start, strict=True)]
    for wire in kept:
        wire.transport.close()
    return {
        "users": users,
        "node_kb_each": (grown[0] + grown[1]) / 2 * 1024 / users,
        "nats_kb_each": grown[2] * 1024 / users,
        "nodes_join_cpu_us": joining[0],
        "nats_join_cpu_us": joining[1],
        "nodes_idle_cpu": used[0],
        "nats_idle_cpu": used[1],
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=1000)
    with tempfile.TemporaryDirectory(prefix="tabhub-bench-") as folder, ExitStack() as open_children:
        made = Nodes(Path(folder))
        for each in made.children:
            open_children.enter_context(each)
        print(json.dumps(uvloop.run(idle(made, parser.parse_args().users)), indent=2))
