"""Measure what a second relay node costs: the same calls with agent and browser on one node, and on two over NATS.

Run it with `python -m bench.relay_nodes`; it prints one JSON object. Both roads are taken in turns.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import sysconfig
import tempfile
import time
from pathlib import Path
from typing import Any

import uvloop

from bench.processes import Child, free_port
from bench.relay import listens
from bench.relay_clients import Caller, Wire, agent, browser
from tabhub.trust.jwt import Rules, issue, read_keys

_REQUEST = b'{"jsonrpc":"2.0","id":%d,"method":"createTab","params":{"url":"https://example.com/","stealth":true}}'
_MARK = b'"tabId":42'


class Nodes:
    """A nats-server and two nodes on it."""

    def __init__(self, where: Path) -> None:
        key = where / "relay.key"
        key.write_text("0123456789abcdef" * 4)
        self._key = read_keys(key.read_bytes())[0]
        bus = free_port()
        binary = Path(sysconfig.get_path("scripts")) / "nats-server"
        self.nats = Child([str(binary), "-a", "127.0.0.1", "-p", str(bus)], log=where / "nats.log")
        self.nats.wait_until(lambda: listens(bus), "nats-server")
        self.ports = (free_port(), free_port())
        self.nodes: list[Child] = []
        for port in self.ports:
            words = ["--port", str(port), "--key-file", str(key), "--client-rate", "0", "--user-rate", "0"]
            words += ["--bus", f"nats://127.0.0.1:{bus}"]
            child = Child([sys.executable, "-m", "tabhub", "relay", "start", *words], log=where / f"{port}.log")
            child.wait_until(lambda port=port: listens(port), "a node")  # type: ignore[misc]
            self.nodes.append(child)

    def token(self, user: str) -> str:
        return issue(self._key, user, now=time.time(), ttl=3600, token_id=user, rules=Rules())

    def cpu(self) -> tuple[float, float]:
        """CPU seconds of the nodes together, and of nats-server."""
        return sum(node.cpu_seconds() for node in self.nodes), self.nats.cpu_seconds()


async def run(nodes: Nodes, wires: list[Wire], seconds: float) -> dict[str, float]:
    """Have all call for a while."""
    callers = [Caller(wire, _REQUEST, _MARK) for wire in wires]
    before, began = nodes.cpu(), time.perf_counter()
    for caller in callers:
        caller.go()
    await asyncio.sleep(seconds)
    took, after = time.perf_counter() - began, nodes.cpu()
    done = sum(caller.done for caller in callers)
    times = sorted(t for caller in callers for t in caller.times)
    for caller in callers:
        caller.stop()
    await asyncio.sleep(0.2)
    return {
        "rate": done / took,
        "p50_ms": times[len(times) // 2] * 1000,
        "p99_ms": times[int(len(times) * 0.99)] * 1000,
        "nodes_cpu_us": (after[0] - before[0]) / done * 1e6,
        "nats_cpu_us": (after[1] - before[1]) / done * 1e6,
    }


async def compare(nodes: Nodes, agents: int, seconds: float, rounds: int) -> dict[str, Any]:
    """Same node and other node, in turns."""
    token = nodes.token(f"user{agents}")
    await browser(nodes.ports[0], token, "bench")
    roads = {
        "same": [await agent(nodes.ports[0], token) for _ in range(agents)],
        "cross": [await agent(nodes.ports[1], token) for _ in range(agents)],
    }
    seen: dict[str, list[dict[str, float]]] = {name: [] for name in roads}
    for _ in range(rounds):
        for name, wires in roads.items():
            seen[name].append(await run(nodes, wires, seconds))
    for wires in roads.values():
        for wire in wires:
            wire.transport.close()
    found: dict[str, Any] = {n: {k: statistics.median(r[k] for r in rows) for k in rows[0]} for n, rows in seen.items()}
    by_round = [c["p50_ms"] / s["p50_ms"] for c, s in zip(seen["cross"], seen["same"], strict=True)]
    found["cross_to_same_p50"] = {
        "of_medians": found["cross"]["p50_ms"] / found["same"]["p50_ms"],
        "by_round": by_round,
    }
    return found


async def idle(nodes: Nodes, users: int) -> dict[str, float]:
    """What users on a bus cost that say nothing: a browser on one node and an agent on the other."""
    before = [child.rss_mb() for child in (*nodes.nodes, nodes.nats)]
    kept: list[Wire] = []
    start = nodes.cpu()
    for number in range(users):
        token = nodes.token(f"idle{number}")
        kept.append(await browser(nodes.ports[0], token, "idle"))
        kept.append(await agent(nodes.ports[1], token))
    joining = [(after - old) / users / 2 * 1e6 for after, old in zip(nodes.cpu(), start, strict=True)]
    await asyncio.sleep(2)
    grown = [child.rss_mb() - old for child, old in zip((*nodes.nodes, nodes.nats), before, strict=True)]
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


async def main(args: argparse.Namespace) -> dict[str, Any]:
    """All of it."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        nodes = Nodes(Path(folder))
        with nodes.nats, nodes.nodes[0], nodes.nodes[1]:
            for agents in args.agents:
                found[f"agents_{agents}"] = await compare(nodes, agents, args.seconds, args.rounds)
            found["idle"] = await idle(nodes, args.idle)
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--agents", type=int, nargs="+", default=[1, 32])
    parser.add_argument("--idle", type=int, default=1000)
    print(json.dumps(uvloop.run(main(parser.parse_args())), indent=2))
    sys.stdout.flush()
    os._exit(0)
