"""A call through the hub to an external server against a direct call to it: same client, same server, same run."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median, quantiles

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from bench.processes import ROOT, free_port
from bench.start import tabhub

SERVER = ROOT / "tests/upstream/fixtures/everything.py"
WANTED = 1.5


async def _until_ready(hub: httpx2.AsyncClient) -> None:
    async with asyncio.timeout(60):
        while True:
            try:
                servers = (await hub.get("/upstream")).json()["servers"]
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


async def _compare(url: str, hub_url: str, secret: str, rounds: int, calls: int) -> None:
    headers = {"Authorization": f"Bearer {secret}"}
    async with httpx2.AsyncClient(base_url=hub_url, headers=headers) as hub:
        await _until_ready(hub)
        through = streamable_http_client(f"{hub_url}/mcp", http_client=hub)
        async with Client(url) as direct, Client(through) as agent:
            ways = {
                "direct, HTTP": (direct, "add"),
                "through the hub, HTTP": (agent, "mcp__http__add"),
                "through the hub, stdio": (agent, "mcp__local__add"),
            }
            taken: dict[str, list[float]] = {way: [] for way in ways}
            for _ in range(rounds):
                for way, (client, tool) in ways.items():
                    taken[way] += await _time(client, tool, calls)
    base = median(taken["direct, HTTP"])
    for way, times in taken.items():
        p50, p99 = median(times), quantiles(times, n=100)[98]
        print(f"{way:<24} p50 {p50:6.2f} ms   p99 {p99:6.2f} ms   {p50 / base:.2f}x (wanted: at most {WANTED}x)")


def main(rounds: int = 10, calls: int = 50) -> None:
    """Run the server and a hub of its own, and print the comparison."""
    port, hub_port = free_port(), free_port()
    with tempfile.TemporaryDirectory() as home:
        url = f"http://127.0.0.1:{port}/mcp"
        servers = [
            {"id": "1", "name": "http", "enabled": True, "url": url},
            {"id": "2", "name": "local", "enabled": True, "command": sys.executable, "args": [str(SERVER)]},
        ]
        Path(home, "mcp.json").write_text(json.dumps({"version": 1, "servers": servers}))
        Path(home, "config.json").write_text(json.dumps({"permissions": {"default": "auto"}, "dataflow": "off"}))
        env = {**os.environ, "TABHUB_HOME": home}
        started = (
            [sys.executable, str(SERVER), "http", str(port), "json"],
            [*tabhub(), "start", "--port", str(hub_port)],
        )
        running = [
            subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            for command in started
        ]
        try:
            auth = Path(home, "extension/auth.json")
            while not auth.exists():
                time.sleep(0.05)
            secret = json.loads(auth.read_text())["secret"]
            asyncio.run(_compare(url, f"http://127.0.0.1:{hub_port}", secret, rounds, calls))
        finally:
            for each in running:
                each.terminate()
                each.wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--calls", type=int, default=50)
    main(**vars(parser.parse_args()))
