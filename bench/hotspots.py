"""Where the hub spends its time under load. Owns the run; profiled.py profiles the hub from within its process."""

from __future__ import annotations

import signal
import tempfile
import time
from pathlib import Path

from bench import cases, load, servers

TOP = 80
"""Functions in a report of counts."""


def main(*, case: str, mode: str, connections: int, seconds: float) -> None:
    """Load one surface of a profiled hub and print the profile."""
    chosen = {"mcp": cases.HUB[0], "mcp-stateless": cases.HUB[1], "rest": cases.HUB[2]}[case]
    with tempfile.TemporaryDirectory(prefix="tabhub-bench-") as name:
        out = Path(name, "profile.txt")
        with servers.hub(Path(name), launcher=("-m", "bench.profiled", mode, str(out))) as hub:
            request = chosen.make(hub)
            load.run(hub.port, request, connections=connections, seconds=0.5)
            hub.child.process.send_signal(signal.SIGUSR1)
            seen = load.run(hub.port, request, connections=connections, seconds=seconds)
            hub.child.process.send_signal(signal.SIGUSR2)
            taken = time.perf_counter() - hub.child.started
            hub.child.wait_until(out.exists, "the profile", taken + 20)
            print(
                f"{chosen.name}, {connections} connections: {seen.requests} calls, {seen.rate:.0f}/s under the profiler"
            )
            print(_per_call(out.read_text(), seen.requests) if mode == "count" else out.read_text())


def _per_call(text: str, requests: int) -> str:
    """The counts of one call, in total and of the functions with the most instructions."""
    rows: list[tuple[list[float], str]] = []
    for line in text.splitlines():
        *counts, place = line.split(" ", 3)
        rows.append(([int(count) / requests for count in counts], place))
    total = [sum(column) for column in zip(*(counts for counts, _ in rows), strict=True)]
    lines = ["per call: {:.0f} instructions, {:.0f} calls in Python, {:.0f} of C functions".format(*total)]
    lines += ["{:8.1f} {:6.2f} {:6.2f}  ".format(*counts) + place for counts, place in sorted(rows, reverse=True)[:TOP]]
    return "\n".join(lines)
