"""Where the hub spends its time under load. Owns the run; profiled.py profiles the hub from within its process."""

from __future__ import annotations

import signal
import tempfile
import time
from pathlib import Path

from bench import cases, load, servers


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
    instructions, calls, c_calls = (int(number) / requests for number in text.split())
    return f"per call: {instructions:.0f} instructions, {calls:.0f} calls in Python, {c_calls:.0f} of C functions"
