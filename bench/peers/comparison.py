"""Running the comparison, and its tables."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles

from bench import report
from bench.peers import site as pages
from bench.peers.measures import MEASURES, Measure, Run, measured, viewport
from bench.peers.starts import EVALUATED, READY, start_times
from bench.peers.subjects import (
    ALONE,
    Kind,
    Subject,
    available,
    connect_http,
    connect_stdio,
    hub_ready,
    spawn_hub,
    start_bare,
    start_peer,
)
from bench.processes import free_port

TABHUB = "Tabhub"
LEAN = "Playwright lean"
START_TARGETS = {READY: 0.7, EVALUATED: 0.8}
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(slots=True)
class Figures:
    """Everything that was measured."""

    size: tuple[int, int]
    times: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    """Milliseconds by measure, then by server."""
    cpu: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    """CPU milliseconds per call, of server and browser; one for each round."""
    starts: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    reasons: Sequence[str] = ()


@contextmanager
def subjects(where: Path, peers: Sequence[Kind]) -> Iterator[tuple[list[Subject], tuple[int, int]]]:
    """All servers, running, and the size of their viewport, which is that of Tabhub's tabs."""
    with ExitStack() as stack:
        port = free_port()
        hub = stack.enter_context(spawn_hub(where, port, launch=True))
        hub.wait_until(lambda: hub_ready(port), "the hub")
        found = [connect_http(hub, where, port)]
        stack.callback(found[0].session.close)
        size = viewport(found[0])
        found.append(connect_stdio(hub, where))
        stack.callback(found[-1].session.close)
        for kind in peers:
            found.append(start_peer(kind, where, f"{size[0]}x{size[1]}"))
            stack.callback(found[-1].session.close)
        found.append(start_bare(where, *size))
        stack.callback(found[-1].session.close)
        yield found, size


def measure(where: Path, measures: Sequence[Measure], rounds: int, seconds: float, starts: int) -> Figures:
    """Everything; in each round each server has its turn for each measure, and another one begins."""
    peers, reasons = available()
    for reason in reasons:
        print(reason, flush=True)
    with pages.serve() as site, subjects(where, peers) as (running, size):
        figures = Figures(size, reasons=reasons)
        for number in range(-1, rounds):  # the first warms up
            for one in measures:
                turn = (number + 1) % len(running)
                for subject in (*running[turn:], *running[:turn]):
                    if measured(one, subject):
                        run = Run(subject, site, seconds if number >= 0 else 0.0, size)
                        before = cpu_ms(subject)
                        one.run(run)
                        if number >= 0:
                            figures.times.setdefault(one.name, {}).setdefault(subject.name, []).extend(run.times)
                            spent = (cpu_ms(subject) - before) / run.calls
                            figures.cpu.setdefault(one.name, {}).setdefault(subject.name, []).append(spent)
                if number >= 0:
                    print(f"round {number + 1}: {one.name}: {_summary(figures, one)}", flush=True)
    if starts:
        figures.starts = start_times(where, peers, size, starts)
    return figures


def _summary(figures: Figures, one: Measure) -> str:
    return ", ".join(f"{name} {median(times):.1f}" for name, times in figures.times[one.name].items())


def cpu_ms(subject: Subject) -> float:
    """CPU time so far of a server's processes and of all that they started and that still run."""
    children: dict[int, list[int]] = {}
    spent: dict[int, float] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has ended
                continue
            children.setdefault(int(fields[1]), []).append(int(folder.name))
            spent[int(folder.name)] = (int(fields[11]) + int(fields[12])) / _TICKS * 1000
    total, waiting = 0.0, list(subject.processes)
    while waiting:
        pid = waiting.pop()
        total += spent.get(pid, 0.0)
        waiting += children.get(pid, [])
    return total


def _p50(times: dict[str, list[float]], name: str) -> float | None:
    return median(times[name]) if times.get(name) else None


def _cell(value: float | None, base: float | None = None) -> str:
    if value is None:
        return ""
    shown = f"{value:.2f}" if value < 1 else f"{value:.1f}" if value < 100 else f"{value:.0f}"
    return shown if base is None or value is base else f"{shown} ({base / value:.2f})"


def _names(times: dict[str, dict[str, list[float]]]) -> list[str]:
    found = dict.fromkeys(name for values in times.values() for name in values)
    return [TABHUB, *(name for name in found if name != TABHUB)]


def render(figures: Figures, measures: Sequence[Measure], rounds: int, seconds: float) -> str:
    """The tables and the verdicts."""
    names = _names(figures.times)
    rows, spent, wanted = [], [], []
    for one in measures:
        times = figures.times[one.name]
        own = _p50(times, TABHUB)
        tail = quantiles(times[TABHUB], n=100)[98]
        rows.append((one.name, *(_cell(_p50(times, name), own) for name in names), _cell(tail)))
        spent.append((one.name, *(_cell(_p50(figures.cpu[one.name], name)) for name in names)))
        lean = _p50(times, LEAN)
        if one.target is not None and own is not None and lean is not None:
            wanted.append(report.verdict(f"{one.name}, p50 to {LEAN}", own / lean, one.target, at_least=False))
    width, height = figures.size
    note = (
        f"p50 in ms of {rounds} alternating rounds of {seconds:g} s, and in brackets Tabhub's time as a share of it; "
        f"pages of {width}x{height}; {report.machine()}. {' '.join(figures.reasons)}"
    )
    parts = [
        note,
        report.table(("", *names, "Tabhub p99"), rows),
        "CPU ms per call, of the server and its browser together:",
        report.table(("", *names), spent),
    ]
    if figures.starts:
        parts.append(f"Starts on folders that were used before, median ms of {len(figures.starts[READY][TABHUB])}:")
        parts.append(_starts(figures.starts))
        wanted += _start_verdicts(figures.starts)
    return "\n\n".join([*parts, "\n".join(wanted)])


def _starts(starts: dict[str, dict[str, list[float]]]) -> str:
    names = _names(starts)
    rows = [(what, *(_cell(_p50(times, n), _p50(times, TABHUB)) for n in names)) for what, times in starts.items()]
    return report.table(("", *names), rows)


def _start_verdicts(starts: dict[str, dict[str, list[float]]]) -> list[str]:
    found = []
    for what, times in starts.items():
        others = [median(values) for name, values in times.items() if name not in (TABHUB, ALONE)]
        if others:
            ratio = median(times[TABHUB]) / min(others)
            found.append(report.verdict(f"start {what}, to the best peer", ratio, START_TARGETS[what], at_least=False))
    return found


def main(*, rounds: int, seconds: float, starts: int, only: Sequence[str] = ()) -> None:
    """Measure, print, and write the section of docs/performance.md."""
    measures = [one for one in MEASURES if not only or one.name in only]
    with tempfile.TemporaryDirectory(prefix="tabhub-bench-", ignore_cleanup_errors=True) as where:
        figures = measure(Path(where), measures, rounds, seconds, starts)
    text = render(figures, measures, rounds, seconds)
    print(f"\n{text}\n")
    if not only and starts:
        report.write_section("peers", text)
