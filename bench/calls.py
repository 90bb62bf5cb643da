"""Tool calls through the hub compared with the limit, interleaved in one run.

Every round measures the limit and then each surface of the hub, so that slow periods of the machine affect all of them.
Reported are the medians over the rounds.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench import cases, load, report, servers
from bench.load import Load, Request
from bench.servers import Server

CONNECTIONS = (1, 20, 200)
_WARM_UP = 0.5


@dataclass(frozen=True, slots=True)
class Sample:
    """One run: the generator's report, and the CPU time of each process."""

    load: Load
    server_cpu: float
    extension_cpu: float
    rss_mb: float


@dataclass(frozen=True, slots=True)
class Line:
    """The medians of one surface at one number of connections."""

    name: str
    connections: int
    rate: float
    p50_us: float
    p99_us: float
    cpu_us: float
    rss_mb: float
    split: tuple[float, float, float]
    """CPU of server, fake extension and generator, each in cores."""


def sample(server: Server, request: Request, connections: int, seconds: float) -> Sample:
    server_before, extension_before = server.child.cpu_seconds(), server.extension.cpu_seconds()
    seen = load.run(server.port, request, connections=connections, seconds=seconds)
    return Sample(
        seen,
        server.child.cpu_seconds() - server_before,
        server.extension.cpu_seconds() - extension_before,
        server.child.rss_mb(),
    )


def summarize(name: str, connections: int, samples: Sequence[Sample]) -> Line:
    """The medians of several runs."""
    return Line(
        name,
        connections,
        median(s.load.rate for s in samples),
        median(s.load.p50_us for s in samples),
        median(s.load.p99_us for s in samples),
        median(s.server_cpu / s.load.requests * 1e6 for s in samples),
        median(s.rss_mb for s in samples),
        (
            median(s.server_cpu / s.load.seconds for s in samples),
            median(s.extension_cpu / s.load.seconds for s in samples),
            median(s.load.cpu_seconds / s.load.seconds for s in samples),
        ),
    )


def measure(
    targets: Sequence[tuple[str, Server, Request]], *, seconds: float, rounds: int, connections: Sequence[int]
) -> list[Line]:
    """All targets at each number of connections, interleaved."""
    lines = []
    for name, server, request in targets:
        load.run(server.port, request, connections=20, seconds=_WARM_UP)
        print(f"warm: {name}", flush=True)
    for count in connections:
        runs: dict[str, list[Sample]] = {name: [] for name, _, _ in targets}
        for number in range(rounds):
            for name, server, request in targets:
                runs[name].append(sample(server, request, count, seconds))
                seen = runs[name][-1].load
                print(f"{count:>4} connections, round {number + 1}: {name:<16} {seen.rate:>8.0f}/s", flush=True)
        lines += [summarize(name, count, samples) for name, samples in runs.items()]
    return lines


def render(lines: Sequence[Line], *, seconds: float, rounds: int) -> str:
    """The table and the verdicts."""
    limits = {line.connections: line for line in lines if line.name == cases.LIMIT.name}
    rows = [_row(line, limits[line.connections]) for line in lines]
    head = (
        "",
        "connections",
        "calls/s",
        "of limit",
        "p50 ms",
        "p99 ms",
        "p50 to limit",
        "CPU us/call",
        "RSS MB",
        "cores server+ext+load",
    )
    wanted = []
    for line in lines:
        base = limits[line.connections]
        if line is base:
            continue
        if line.connections == 20:
            wanted.append(
                report.verdict(f"{line.name}, 20 connections, rate to limit", line.rate / base.rate, 0.6, at_least=True)
            )
        if line.connections == 1:
            wanted.append(
                report.verdict(
                    f"{line.name}, 1 connection, p50 to limit", line.p50_us / base.p50_us, 1.6, at_least=False
                )
            )
    note = f"Medians of {rounds} interleaved rounds of {seconds:g} s; {report.machine()}."
    return "\n\n".join(part for part in (note, report.table(head, rows), "\n".join(wanted)) if part)


def _row(line: Line, base: Line) -> tuple[str, ...]:
    return (
        line.name,
        str(line.connections),
        f"{line.rate:,.0f}",
        f"{line.rate / base.rate:.2f}",
        f"{line.p50_us / 1000:.2f}",
        f"{line.p99_us / 1000:.2f}",
        f"{line.p50_us / base.p50_us:.2f}",
        f"{line.cpu_us:.0f}",
        f"{line.rss_mb:.0f}",
        "+".join(f"{cores:.2f}" for cores in line.split),
    )


def main(*, seconds: float, rounds: int, connections: Sequence[int] = CONNECTIONS, only_limit: bool = False) -> None:
    """Measure, print, and write the section of docs/performance.md."""
    with tempfile.TemporaryDirectory(prefix="tabhub-bench-") as where, servers.limit(Path(where)) as bare:
        targets = [(cases.LIMIT.name, bare, cases.LIMIT.make(bare))]
        if only_limit:
            lines = measure(targets, seconds=seconds, rounds=rounds, connections=connections)
        else:
            with servers.hub(Path(where)) as hub:
                targets += [(case.name, hub, case.make(hub)) for case in cases.HUB]
                lines = measure(targets, seconds=seconds, rounds=rounds, connections=connections)
    text = render(lines, seconds=seconds, rounds=rounds)
    print(f"\n{text}\n")
    if not only_limit and tuple(connections) == CONNECTIONS:
        report.write_section("calls", text)
