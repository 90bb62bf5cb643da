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
    rows = [(*map(int, counts), place) for *counts, place in (line.split(" ", 3) for line in text.splitlines())]
    totals = [sum(row[column] for row in rows) / requests for column in range(3)]
    lines = ["per call: {:.0f} instructions, {:.0f} calls in Python, {:.0f} of C functions".format(*totals)]
    for instructions, calls, c_calls, place in sorted(rows, reverse=True)[:TOP]:
        lines.append(f"{instructions / requests:8.1f} {calls / requests:6.2f} {c_calls / requests:6.2f}  {place}")
    return "\n".join(lines)
