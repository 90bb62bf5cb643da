"""The load generator measured against a trivial server in C: its rate must be far above what the hub can reach."""

from __future__ import annotations

import tempfile
from pathlib import Path

from bench import load, report
from bench.build import program
from bench.processes import Child

_MARKER = "trivial"
_WANTED = 100_000


def main(*, seconds: float) -> None:
    """Measure, print, and write the section of docs/performance.md."""
    rows, best = [], 0.0
    with tempfile.TemporaryDirectory(prefix="tabhub-bench-") as where:
        log = Path(where, "echo.log")
        with Child([str(program("echo")), _MARKER], log=log) as server:
            server.wait_until(lambda: log.read_text().endswith("\n"), "the trivial server")
            port = int(log.read_text())
            request = load.Request(
                load.post(port, "/", b'{"id":%s}' % load.NUMBER.encode(), {}), _MARKER, numbered=True
            )
            for connections in (1, 20, 200):
                seen = load.run(port, request, connections=connections, seconds=seconds)
                best = max(best, seen.rate)
                cells = (f"{seen.rate:,.0f}", f"{seen.p50_us:.0f}", f"{seen.p99_us:.0f}")
                rows.append((str(connections), *cells, f"{seen.cpu_seconds / seen.requests * 1e6:.1f}"))
    text = report.table(("connections", "requests/s", "p50 us", "p99 us", "generator CPU us/request"), rows)
    text += "\n\n" + report.verdict("requests a second of the generator", best, _WANTED, at_least=True)
    print(f"\n{text}\n")
    report.write_section("generator", text)
