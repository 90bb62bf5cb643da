"""Run the relay's load generator once. Owns its command line and its report, not what is measured.

It is written in C, with browser and agents in one process, so that it is not the bottleneck: it has one core.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from bench.build import program
from bench.processes import Child


@dataclass(frozen=True, slots=True)
class Route:
    """Where the agents connect, and where their browser is; an echo has no browser and needs no token."""

    name: str
    port: int
    browser_port: int | None = None
    token: str = ""
    work_us: int = 0
    """How long the browser takes to answer."""


@dataclass(frozen=True, slots=True)
class Seen:
    """The report of one run: times in milliseconds, CPU time of each child in microseconds per call."""

    rate: float
    p50_ms: float
    p99_ms: float
    cpu_us: tuple[float, ...]
    cores: tuple[float, ...]
    """CPU time of each child, and of the generator, divided by the duration of the run."""


def run(route: Route, children: Sequence[Child], *, agents: int, seconds: float) -> Seen:
    """Have `agents` agents make calls for some seconds; any wrong answer aborts the benchmark."""
    command = [str(program("relay_load")), "-p", str(route.port), "-c", str(agents), "-d", f"{seconds:g}"]
    if route.browser_port is not None:
        command += ["-m", '"tabId":42', "-b", str(route.browser_port), "-t", route.token, "-w", str(route.work_us)]
    else:
        command += ["-m", "createTab"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        ready = process.stdout.readline()
        before = [child.cpu_seconds() for child in children]
        if ready:
            process.stdin.write("\n")
            process.stdin.flush()
        report = process.stdout.readline()
        used = [child.cpu_seconds() - cpu for child, cpu in zip(children, before, strict=True)]
        if process.wait() != 0:
            raise SystemExit(f"error: the load run failed at {route.name}\n{process.stderr.read().strip()}")
    facts = json.loads(report)
    return Seen(
        rate=facts["rate"],
        p50_ms=facts["p50_us"] / 1000,
        p99_ms=facts["p99_us"] / 1000,
        cpu_us=tuple(cpu / facts["calls"] * 1e6 for cpu in used),
        cores=tuple(cpu / facts["seconds"] for cpu in (*used, facts["cpu_seconds"])),
    )
