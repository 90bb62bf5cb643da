"""Run the load generator once. Owns its command line and its report, not what is measured."""

from __future__ import annotations

import json
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from bench.build import program

NUMBER = "1000000000"
"""The JSON-RPC id written into requests; the generator replaces it with the next number each time."""


@dataclass(frozen=True, slots=True)
class Request:
    """The bytes that are sent repeatedly, and what every answer must contain."""

    raw: bytes
    marker: str
    numbered: bool = False
    check_number: bool = False


@dataclass(frozen=True, slots=True)
class Load:
    """The report of one run of the generator."""

    requests: int
    errors: int
    seconds: float
    rate: float
    p50_us: float
    p90_us: float
    p99_us: float
    max_us: float
    cpu_seconds: float


def post(port: int, path: str, body: bytes, headers: dict[str, str]) -> bytes:
    """An HTTP/1.1 POST, as bytes."""
    head = {
        "Host": f"127.0.0.1:{port}",
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        **headers,
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
    return f"POST {path} HTTP/1.1\r\n{lines}\r\n".encode() + body


def run(port: int, request: Request, *, connections: int, seconds: float) -> Load:
    """Load a server for some seconds; any wrong answer aborts the benchmark."""
    with tempfile.TemporaryDirectory(prefix="tabhub-bench-") as where:
        file = Path(where, "request")
        file.write_bytes(request.raw)
        command = [str(program("load")), "-p", str(port), "-c", str(connections), "-d", f"{seconds:g}"]
        command += ["-r", str(file), "-m", request.marker]
        command += ["-i", NUMBER] if request.numbered else []
        command += ["-k"] if request.check_number else []
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"error: the load run failed\n{done.stderr.strip()}\n{done.stdout.strip()}")
    return Load(**json.loads(done.stdout))
