"""How many relay nodes are needed, and what happens when one dies: a model based on measurements, and a simulation of
it.

`Model` computes; `simulate` places users' browsers and agents one by one on nodes, kills a node, and counts. The test
compares the two, and docs/scale.md shows the results. Run it with `python -m bench.scale_sim`.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Literal

Policy = Literal["random", "least"]


@dataclass(frozen=True, slots=True)
class Figures:
    """Measurements of `python -m bench relay` and `python -m bench.relay_nodes` on a machine with 2 cores."""

    idle_kb: float = 20.0
    """Memory of a node for each idle connection, including its share of the bus."""
    socket_kb: float = 8.0
    """The kernel's part of it: estimated, not measured."""
    base_mb: float = 60.0
    """A node without connections."""
    same_us: float = 19.0
    """CPU time of a node for a call when agent and browser are on it."""
    cross_us: float = 50.0
    """CPU time of both nodes together when they are on two."""
    nats_us: float = 10.0
    """CPU time of nats-server for such a call."""
    join_us: float = 1500.0
    """CPU time of a node for a connection from its upgrade to its first call."""
    nats_join_us: float = 260.0


@dataclass(frozen=True, slots=True)
class Load:
    """The connected clients and their calls."""

    browsers: int
    agents_per_browser: float = 0.2
    calls: float = 1.0
    """Per second and agent."""
    back_within: float = 30.0
    """Seconds over which disconnected clients reconnect."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The nodes a load needs, with one to spare."""

    nodes: int
    node_gb: float
    node_cores: float
    nats_cores: float
    cross: float
    """The share of calls that cross nodes."""
    beats: int
    """Heartbeats that nats-server delivers per second."""
    lost_share: float
    """The share of clients that are disconnected when a node dies."""
    storm_cores: float
    """CPU time of each remaining node while they reconnect, in addition to its calls."""


class Model:
    """The capacity model of a relay."""

    def __init__(self, figures: Figures | None = None, *, clients: int = 50_000, busy: float = 0.6) -> None:
        self.figures = figures if figures is not None else Figures()
        self._clients = clients
        self._busy = busy

    def cross(self, nodes: int) -> float:
        """The share of pairs on two nodes, if agent and browser connect to nodes independently of each other."""
        return 1 - 1 / nodes

    def cpu(self, load: Load, nodes: int) -> float:
        """Cores that all nodes together use for calls."""
        f, share = self.figures, self.cross(nodes)
        per_call = share * f.cross_us + (1 - share) * f.same_us
        return load.browsers * load.agents_per_browser * load.calls * per_call / 1e6

    def plan(self, load: Load) -> Plan:
        """The fewest nodes that can still handle the load when one of them fails."""
        clients = load.browsers * (1 + load.agents_per_browser)
        nodes = 2
        while clients / (nodes - 1) > self._clients or self.cpu(load, nodes) / (nodes - 1) > self._busy:
            nodes += 1
        f = self.figures
        each = clients / (nodes - 1)
        calls = load.browsers * load.agents_per_browser * load.calls
        cut = clients / nodes
        return Plan(
            nodes=nodes,
            node_gb=(f.base_mb * 1024 + each * (f.idle_kb + f.socket_kb)) / 1024 / 1024,
            node_cores=self.cpu(load, nodes) / nodes,
            nats_cores=calls * self.cross(nodes) * f.nats_us / 1e6,
            cross=self.cross(nodes),
            beats=nodes * (nodes - 1),
            lost_share=1 / nodes,
            storm_cores=cut / (nodes - 1) * f.join_us / 1e6 / load.back_within,
        )

    def heaviest(self, clients: int, nodes: int) -> float:
        """A bound on the load of the fullest node relative to the mean, for random placement; exceeded in fewer than
        one case in 10,000."""
        mean = clients / nodes
        return 1 + math.sqrt(2 * math.log(nodes * 10_000) / mean)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The counts of a simulation."""

    fullest: float
    """The fullest node relative to the mean."""
    cross: float
    """The share of pairs of agent and browser that are on two nodes."""
    subjects: float
    """Nodes that subscribe to a user, on average."""
    cut: float
    """The share of pairs that lost one side or both when a node died."""
    fullest_after: float
    """The fullest node relative to the mean once all have reconnected."""
    unserved: int
    """Pairs without a node at the end."""


def _place(load: list[int], alive: list[int], policy: Policy, chance: random.Random) -> int:
    if policy == "random":
        node = chance.choice(alive)
    else:  # a proxy that compares two nodes and chooses the emptier one does as well as one that compares all
        one, two = chance.choice(alive), chance.choice(alive)
        node = one if load[one] <= load[two] else two
    load[node] += 1
    return node


def simulate(users: int, nodes: int, *, agents: int = 1, policy: Policy = "random", seed: int = 1) -> Outcome:
    """Each user has a browser and several agents; all connect, a node dies, and its clients reconnect to others."""
    chance = random.Random(seed)
    alive, load = list(range(nodes)), [0] * nodes
    homes = [[_place(load, alive, policy, chance) for _ in range(1 + agents)] for _ in range(users)]
    mean = users * (1 + agents) / nodes
    fullest = max(load) / mean
    pairs = [(home[0], agent) for home in homes for agent in home[1:]]
    cross = sum(browser != agent for browser, agent in pairs) / len(pairs)
    subjects = sum(len(set(home)) for home in homes) / users
    dead = chance.choice(alive)
    alive.remove(dead)
    cut = sum(dead in pair for pair in pairs) / len(pairs)
    load[dead] = 0
    homes = [[_place(load, alive, policy, chance) if node == dead else node for node in home] for home in homes]
    after = max(load) / (users * (1 + agents) / len(alive))
    unserved = sum(dead in home for home in homes)
    return Outcome(fullest, cross, subjects, cut, after, unserved)


LOADS = (Load(1_000), Load(10_000), Load(100_000), Load(1_000_000))


def table() -> list[str]:
    """The tables of docs/scale.md."""
    lines = [
        "| browsers | nodes | memory per node | cores per node | cores of NATS | calls across nodes "
        "| heartbeats per second | disconnected when a node dies | cores per node while they reconnect |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for load in LOADS:
        plan = Model().plan(load)
        lines.append(
            f"| {load.browsers:,} | {plan.nodes} | {plan.node_gb:.1f} GB | {plan.node_cores:.2f} "
            f"| {plan.nats_cores:.2f} | {plan.cross:.0%} | {plan.beats:,} | {plan.lost_share:.1%} "
            f"| {plan.storm_cores:.2f} |"
        )
    return lines


if __name__ == "__main__":
    print("\n".join(table()))
    for policy in ("random", "least"):
        print(policy, simulate(100_000, 25, policy=policy))
