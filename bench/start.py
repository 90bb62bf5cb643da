"""How long processes take to start, as ratios to `python -c pass`, the fastest possible start of Python."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

from bench import report, servers
from bench.cases import CLIENT
from bench.extension import MARKER, TABS
from bench.processes import ROOT, free_port
from bench.servers import Server

_HUB_STARTS = 5


def tabhub() -> list[str]:
    """The console script of this Python."""
    script = Path(sys.executable).with_name("tabhub")
    return [str(script)] if script.exists() else [sys.executable, "-m", "tabhub"]


def _run(command: Sequence[str], env: dict[str, str], expect: str = "") -> float:
    before = time.perf_counter()
    done = subprocess.run(
        command, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    seconds = time.perf_counter() - before
    if done.returncode != 0 or expect not in done.stdout:
        raise SystemExit(f"error: {' '.join(command)} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return seconds


def _bridge(env: dict[str, str]) -> float:
    """Seconds from the start of the stdio bridge to its answer to initialize."""
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": CLIENT}
    hello = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}).encode() + b"\n"
    before = time.perf_counter()
    bridge = subprocess.Popen(
        [*tabhub(), "start", "--stdio", "--as", servers.AGENT],
        cwd=ROOT, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert bridge.stdin is not None
    assert bridge.stdout is not None
    try:
        bridge.stdin.write(hello)
        bridge.stdin.flush()
        line = bridge.stdout.readline()
        seconds = time.perf_counter() - before
        _, problems = bridge.communicate(timeout=10)
    except BaseException:
        bridge.kill()
        bridge.wait()
        raise
    if b"serverInfo" not in line:
        raise SystemExit(f"error: the bridge answered {line!r}\n{problems.decode(errors='replace')}")
    return seconds


def _call(server: Server) -> float:
    before = time.perf_counter()
    text = servers.call(server.port, server.token, TABS[2])
    if MARKER not in text:
        raise SystemExit(f"error: the call was answered with {text}")
    return time.perf_counter() - before


def _with_hub(where: Path, rounds: int) -> dict[str, float]:
    """Medians of everything that is measured with a running hub, interleaved."""
    with servers.hub(where) as server:
        env = {**os.environ, "TABHUB_HOME": str(server.home)}
        arguments = json.dumps({"tabId": TABS[1], "code": "return 1"})
        tool_call = [*tabhub(), "tool", "call", servers.TOOL, arguments]
        steps: dict[str, Callable[[], float]] = {
            "pass": lambda: _run([sys.executable, "-c", "pass"], env),
            "version": lambda: _run([*tabhub(), "--version"], env),
            "tool": lambda: _run(tool_call, env, MARKER),
            "call": lambda: _call(server),
            "bridge": lambda: _bridge(env),
        }
        seen: dict[str, list[float]] = {name: [] for name in steps}
        for _ in range(rounds):
            for name, step in steps.items():
                seen[name].append(step())
    return {name: median(values) for name, values in seen.items()}


def _hub_start(where: Path) -> tuple[float, float]:
    """Seconds to the first /health answer: with a new home, and the median with an existing one."""
    seen = []
    for _ in range(_HUB_STARTS + 1):
        child, seconds = servers.start_hub(where / "starts", free_port())
        child.end()
        seen.append(seconds)
    return seen[0], median(seen[1:])


def main(*, rounds: int) -> None:
    """Measure, print, and write the section of docs/performance.md."""
    with tempfile.TemporaryDirectory(prefix="tabhub-bench-") as name:
        times = _with_hub(Path(name), rounds)
        first, later = _hub_start(Path(name))
    base = times["pass"]
    tool = times["tool"] - times["call"]
    measured = (
        ("python -c pass", base),
        ("tabhub --version", times["version"]),
        ("tabhub tool call, without the call", tool),
        ("the stdio bridge, to its first answer", times["bridge"]),
        ("the hub, to its first /health answer", later),
        ("the same, on a new home", first),
    )
    rows = [(what, f"{seconds * 1000:.0f}", f"{seconds / base:.1f}") for what, seconds in measured]
    wanted = (
        report.verdict("`tabhub tool call` without the call, to `python -c pass`", tool / base, 4, at_least=False),
        report.verdict("hub to first /health answer, seconds", max(first, later), 1, at_least=False),
        report.verdict("stdio bridge to first answer, seconds", times["bridge"], 0.3, at_least=False),
    )
    note = f"Medians of {rounds} rounds; {report.machine()}. The call itself took {times['call'] * 1000:.1f} ms."
    text = "\n\n".join((note, report.table(("", "ms", "to python -c pass"), rows), "\n".join(wanted)))
    print(f"\n{text}\n")
    report.write_section("start", text)
