"""Measure the relay: memory of idle connections, forwarded calls beside a bare WebSocket echo, and busy agents.

Run it with `python -m bench.relay`; it prints one JSON object. The relay and the echo run in processes of their own, on
the same uvicorn and the same loop, and take turns, so that a busy machine is the same for both.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import uvloop

from bench.processes import Child, free_port
from bench.relay_clients import Caller, Wire, agent, browser, opened
from tabhub.trust.jwt import Rules, issue, read_keys

_REQUEST = b'{"jsonrpc":"2.0","id":%d,"method":"createTab","params":{"url":"https://example.com/","stealth":true}}'
_ECHO = """
import sys, uvicorn
async def app(scope, receive, send):
    if scope["type"] != "websocket":
        return
    await receive()
    await send({"type": "websocket.accept"})
    while (message := await receive())["type"] != "websocket.disconnect":
        await send({"type": "websocket.send", "text": message["text"]})
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), loop="uvloop", ws="websockets-sansio", lifespan="off",
            log_level="error", ws_per_message_deflate=False, ws_ping_interval=None)
"""
_ECHO_OWN = """
import sys, uvicorn
from tabhub.server.socket import EXTENSION, LinkProtocol
async def app(scope, receive, send):
    if scope["type"] != "websocket":
        return
    await receive()
    await send({"type": "websocket.accept"})
    socket = scope["extensions"][EXTENSION]
    socket.take_over(socket.send_text, 1 << 24, lambda: None)
    while (await receive())["type"] != "websocket.disconnect":
        pass
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), loop="uvloop", ws=LinkProtocol, lifespan="off",
            log_level="error", ws_per_message_deflate=False, ws_ping_interval=None)
"""


def listens(port: int) -> bool:
    """Whether somebody does."""
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0


class Relays:
    """A relay process and its tokens."""

    def __init__(self, where: Path, port: int) -> None:
        key = where / "relay.key"
        key.write_text("0123456789abcdef" * 4)
        self._key = read_keys(key.read_bytes())[0]
        self.port = port
        words = ["--port", str(port), "--key-file", str(key), "--client-rate", "0", "--user-rate", "0"]
        self.child = Child([sys.executable, "-m", "tabhub", "relay", "start", *words], log=where / "relay.log")
        self.child.wait_until(lambda: listens(port), "the relay")

    def token(self, user: str) -> str:
        return issue(self._key, user, now=time.time(), ttl=3600, token_id=user, rules=Rules())


async def rate(callers: list[Caller], child: Child, seconds: float) -> dict[str, float]:
    """Have all call for a while: calls a second, CPU of the server per call, times."""
    for caller in callers:
        caller.done, caller.times = 0, []
        caller.go()
    began, cpu = time.perf_counter(), child.cpu_seconds()
    await asyncio.sleep(seconds)
    took, used = time.perf_counter() - began, child.cpu_seconds() - cpu
    done = sum(caller.done for caller in callers)
    times = sorted(t for caller in callers for t in caller.times)
    for caller in callers:
        caller.stop()
    await asyncio.sleep(0.2)
    return {
        "rate": done / took,
        "cpu_us": used / max(done, 1) * 1e6,
        "p50_ms": times[len(times) // 2] * 1000,
        "p99_ms": times[int(len(times) * 0.99)] * 1000,
    }


class Echo:
    """A bare WebSocket echo in a process of its own."""

    def __init__(self, where: Path, name: str, source: str) -> None:
        self.name, self.port = name, free_port()
        script = where / f"{name}.py"
        script.write_text(source)
        self.child = Child([sys.executable, str(script), str(self.port)], log=where / f"{name}.log")
        self.child.wait_until(lambda: listens(self.port), name)


async def compare(relay: Relays, echoes: list[Echo], agents: int, seconds: float, rounds: int) -> dict[str, Any]:
    """Forwarded calls beside the echoes, in turns. Every round is given, for medians hide how far they are apart."""
    token = relay.token("ann")
    await browser(relay.port, token, "bench")
    groups = [("relay", relay.child, b'"tabId":42', [await agent(relay.port, token) for _ in range(agents)])]
    groups += [
        (echo.name, echo.child, b"createTab", [await opened("/", echo.port) for _ in range(agents)]) for echo in echoes
    ]
    seen: dict[str, list[dict[str, float]]] = {name: [] for name, *_ in groups}
    for _ in range(rounds):
        for name, child, mark, wires in groups:
            seen[name].append(await rate([Caller(wire, _REQUEST, mark) for wire in wires], child, seconds))
    for *_, wires in groups:
        for wire in wires:
            wire.transport.close()
    median = {n: {k: statistics.median(r[k] for r in rows) for k in rows[0]} for n, rows in seen.items()}
    found: dict[str, Any] = {"agents": agents, "median": median}
    for echo in echoes:
        by_round = [r["rate"] / e["rate"] for r, e in zip(seen["relay"], seen[echo.name], strict=True)]
        found[f"to_{echo.name}"] = {
            "rate_of_medians": median["relay"]["rate"] / median[echo.name]["rate"],
            "rate_by_round": [round(ratio, 2) for ratio in by_round],
            "cpu_of_medians": median[echo.name]["cpu_us"] / median["relay"]["cpu_us"],
        }
    found["rates"] = {name: [round(row["rate"]) for row in rows] for name, rows in seen.items()}
    return found


async def idle(relay: Relays, connections: int) -> dict[str, float]:
    """Memory of connected clients that say nothing, half of them browsers and half agents."""
    warm = [await browser(relay.port, relay.token(f"warm{n}"), "w") for n in range(50)]
    await asyncio.sleep(1)
    before = relay.child.rss_mb()
    kept: list[Wire] = []
    for number in range(connections // 2):
        token = relay.token(f"user{number}")
        kept.append(await browser(relay.port, token, "idle"))
        kept.append(await agent(relay.port, token))
    await asyncio.sleep(2)
    after = relay.child.rss_mb()
    cpu = relay.child.cpu_seconds()
    await asyncio.sleep(5)
    idle_cpu = (relay.child.cpu_seconds() - cpu) / 5
    for wire in [*warm, *kept]:
        wire.transport.close()
    return {"connections": connections, "kb_each": (after - before) * 1024 / connections, "idle_cpu": idle_cpu}


async def main(args: argparse.Namespace) -> dict[str, Any]:
    """All of it."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        where = Path(folder)
        echoes = [Echo(where, "echo", _ECHO), Echo(where, "own_socket_echo", _ECHO_OWN)]
        with echoes[0].child, echoes[1].child:
            for agents in args.agents:
                relay = Relays(where, free_port())
                with relay.child:
                    found[f"forward_{agents}"] = await compare(relay, echoes, agents, args.seconds, args.rounds)
        relay = Relays(where, free_port())
        with relay.child:
            found["idle"] = await idle(relay, args.idle)
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--agents", type=int, nargs="+", default=[1, 32, 200])
    parser.add_argument("--idle", type=int, default=2000)
    print(json.dumps(uvloop.run(main(parser.parse_args())), indent=2))
    sys.stdout.flush()
    os._exit(0)
