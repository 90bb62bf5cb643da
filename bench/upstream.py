"""A call through the hub to an external server compared with a direct call: same client, same server, same run."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from bench import report
from bench.processes import ROOT, free_port
from bench.servers import AGENT, agent_token
from bench.start import tabhub

SERVER = ROOT / "tests/upstream/fixtures/everything.py"
WANTED = 1.5
_WARM = 20


async def _until_ready(hub_url: str, home: str) -> None:
    key = Path(home, "run", "person.key")
    headers = {"Authorization": f"Bearer {await asyncio.to_thread(key.read_text)}"}
    async with asyncio.timeout(60), httpx2.AsyncClient(base_url=hub_url) as hub:
        while True:
            try:
                servers = (await hub.get("/upstream", headers=headers)).json()["servers"]
                if servers and all(each["state"] == "ready" for each in servers):
                    return
            except httpx2.TransportError:
                pass
            await asyncio.sleep(0.1)


async def _time(client: Client, tool: str, calls: int) -> list[float]:
    taken = []
    for _ in range(calls):
        before = time.perf_counter()
        answer = await client.call_tool(tool, {"a": 2, "b": 3})
        taken.append((time.perf_counter() - before) * 1000)
        if answer.is_error:
            raise SystemExit(f"error: {answer.content}")
    return taken


def _command(*argv: str, **env: str) -> Client:
    """The SDK's client over a local command, as an agent would configure it."""
    return Client(stdio_client(StdioServerParameters(command=argv[0], args=list(argv[1:]), env=dict(env))))


async def _compare(
    urls: dict[str, str], hub_url: str, token: str, home: str, rounds: int, calls: int
) -> dict[str, tuple[list[float], list[float]]]:
    """By kind of server, the times of direct calls and of calls through the hub, interleaved."""
    headers = {"Authorization": f"Bearer {token}"}
    taken: dict[str, tuple[list[float], list[float]]] = {}
    async with httpx2.AsyncClient(base_url=hub_url, headers=headers) as hub:
        await _until_ready(hub_url, home)
        over_http = Client(streamable_http_client(f"{hub_url}/mcp", http_client=hub))
        bridge = _command(*tabhub(), "start", "--stdio", "--as", AGENT, TABHUB_HOME=home, PATH=os.environ["PATH"])
        async with (
            over_http as agent,
            bridge as local_agent,
            Client(urls["json"]) as json_server,
            Client(urls["sse"]) as sse_server,
            _command(sys.executable, str(SERVER)) as command,
        ):
            ways = {
                "Streamable HTTP, plain answers": (json_server, agent, "mcp__json__add"),
                "Streamable HTTP, event streams": (sse_server, agent, "mcp__sse__add"),
                "stdio, the agent's hub over stdio too": (command, local_agent, "mcp__local__add"),
                "stdio, the agent's hub over HTTP": (command, agent, "mcp__local__add"),
            }
            for way, (direct, through, tool) in ways.items():
                taken[way] = ([], [])
                await _time(direct, "add", _WARM)
                await _time(through, tool, _WARM)
            for _ in range(rounds):
                for way, (direct, through, tool) in ways.items():
                    taken[way][0].extend(await _time(direct, "add", calls))
                    taken[way][1].extend(await _time(through, tool, calls))
    return taken


@contextmanager
def _running(home: str) -> Iterator[tuple[dict[str, str], str, str]]:
    """Two servers over HTTP and a hub configured with them, and the same server as a command."""
    ports = {kind: free_port() for kind in ("json", "sse")}
    urls = {kind: f"http://127.0.0.1:{port}/mcp" for kind, port in ports.items()}
    hub_port = free_port()
    known = [{"id": kind, "name": kind, "enabled": True, "url": url} for kind, url in urls.items()]
    local = {"id": "local", "name": "local", "enabled": True, "command": sys.executable, "args": [str(SERVER)]}
    Path(home, "mcp.json").write_text(json.dumps({"version": 1, "servers": [*known, local]}))
    Path(home, "config.json").write_text(json.dumps({"permissions": {"default": "auto"}, "dataflow": "off"}))
    env = {**os.environ, "TABHUB_HOME": home}
    started = [
        *([sys.executable, str(SERVER), "http", str(port), kind] for kind, port in ports.items()),
        [*tabhub(), "start", "--port", str(hub_port)],
    ]
    running = [
        subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for command in started
    ]
    try:
        key = Path(home, "run/person.key")
        while not key.exists():
            time.sleep(0.05)
        yield urls, f"http://127.0.0.1:{hub_port}", agent_token(Path(home))
    finally:
        for each in reversed(running):  # the hub first, because a server waits for its clients to disconnect
            each.terminate()
            each.wait()


def main(*, rounds: int, calls: int = 50) -> None:
    """Measure, print, and write the section of docs/performance.md."""
    with tempfile.TemporaryDirectory(prefix="tabhub-bench-") as home, _running(home) as (urls, hub_url, token):
        taken = asyncio.run(_compare(urls, hub_url, token, home, rounds, calls))
    rows, wanted = [], []
    for way, (direct, through) in taken.items():
        ratio = median(through) / median(direct)
        p99 = quantiles(through, n=100)[98]
        rows.append((way, f"{median(direct):.2f}", f"{median(through):.2f}", f"{p99:.2f}", f"{ratio:.2f}"))
        if "hub over HTTP" not in way:
            wanted.append(report.verdict(f"{way}, p50 to direct", ratio, WANTED, at_least=False))
    note = f"Medians of {rounds} interleaved rounds of {calls} calls; {report.machine()}."
    head = ("server", "direct p50 ms", "through the hub", "its p99", "ratio")
    text = "\n\n".join((note, report.table(head, rows), "\n".join(wanted)))
    print(f"\n{text}\n")
    report.write_section("upstream", text)
