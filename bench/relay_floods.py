"""Measure a relay while one client sends as much as it can: the calls of another user, and the relay's memory.

Owns the section `floods` of docs/performance.md. The relay is a separate process with its default limits; a client
floods it from a thread as fast as the socket accepts data. tests/security/test_relay_floods.py tests who has to wait
and who is disconnected.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import tempfile
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter

import uvloop

from bench import report
from bench.processes import free_port
from bench.relay_servers import Relay
from tests.harness.raw import frame, wire
from tests.relay.independent import IndependentAgent, IndependentExtension

CALLS = 100
TEXT, BEGUN, MORE, PING, PONG = 0x81, 0x01, 0x00, 0x89, 0x8A
MB = 1024 * 1024
READERS, SENDERS, POSTS = 60, 80, 20


class Flooder:
    """A WebSocket that reads only until it is authenticated."""

    def __init__(self, relay: Relay, path: str) -> None:
        self.sock = socket.create_connection(("127.0.0.1", relay.port), timeout=30)
        self.sock.sendall(
            f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{relay.port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        self.read = b""
        self.until(b"\r\n\r\n")

    def until(self, what: bytes) -> None:
        """Read until this arrives."""
        while what not in self.read:
            more = self.sock.recv(65536)
            if not more:
                raise SystemExit(f"error: the relay closed the connection before {what!r} came")
            self.read += more

    def say(self, **message: object) -> None:
        """Send one JSON-RPC message."""
        self.sock.sendall(frame(TEXT, json.dumps({"jsonrpc": "2.0", **message}).encode()))

    def flood(self, data: bytes, over: threading.Event) -> None:
        """Send until the flood is over or the connection is closed."""
        self.sock.settimeout(0.5)
        while not over.is_set():
            try:
                self.sock.send(data)
            except TimeoutError:
                continue
            except OSError:
                return  # the relay closed it


def stranger(relay: Relay) -> Flooder:
    """A client that does not authenticate."""
    return Flooder(relay, "/mcp")


def agent(relay: Relay) -> Flooder:
    """An authenticated agent."""
    made = Flooder(relay, "/mcp")
    made.say(id=1, method="mcp_handshake", params={"accessToken": relay.token("bad")})
    made.until(b'"authenticated"')
    return made


def browser(relay: Relay) -> Flooder:
    """An authenticated browser."""
    made = Flooder(relay, "/extension")
    made.say(id="proxy:1", result={"name": "Bad", "accessToken": relay.token("bad"), "instanceId": "bad"})
    made.until(b'"authenticated"')
    return made


def readers(relay: Relay, count: int) -> list[Flooder]:
    """A browser, and `count` agents connected to it."""
    first = browser(relay)
    extension = first.read.partition(b'"extension_id":"')[2].partition(b'"')[0].decode()
    agents = [agent(relay) for _ in range(count)]
    for one in agents:
        one.say(id=2, method="connect", params={"extension_id": extension})
        one.until(b'"connection_id"')
    return [first, *agents]


@contextmanager
def flooding(bad: Flooder, data: bytes) -> Iterator[None]:
    """Have a client flood the relay for the duration of the block."""
    over = threading.Event()
    thread = threading.Thread(target=bad.flood, args=(data, over))
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        bad.sock.close()


@dataclass(frozen=True, slots=True)
class Seen:
    """The other user's calls in milliseconds, and by how much the relay's memory grew."""

    p50: float
    p99: float
    grown_mb: float


async def measure(relay: Relay, before: float) -> Seen:
    """Make calls as another user, who connects now."""
    base, took = f"ws://127.0.0.1:{relay.port}", []
    async with (
        asyncio.timeout(120),
        IndependentExtension(base, relay.token("good")),
        IndependentAgent(base, relay.token("good")) as good,
    ):
        await good.ready()
        for number in range(CALLS):
            began = perf_counter()
            await good.result("act", {"n": number})
            took.append((perf_counter() - began) * 1000)
    return Seen(median(took), quantiles(took, n=100)[98], relay.child.rss_mb() - before)


KEYS = b",".join(b'"k%d":1' % number for number in range(80_000))
FLOODS: dict[str, tuple[Callable[[Relay], Flooder], bytes]] = {
    "pings, unauthenticated": (stranger, frame(PING, b"x" * 125) * 500),
    "broken messages, unauthenticated": (stranger, frame(TEXT, b"{") * 3000),
    "pings": (agent, frame(PING, b"x" * 125) * 500),
    "unsolicited pongs": (agent, frame(PONG) * 5000),
    "empty fragments": (agent, frame(BEGUN, b"{") + frame(MORE) * 5000),
    "broken messages": (agent, frame(TEXT, b"{") * 3000),
    "more messages than allowed": (agent, frame(TEXT, b'{"jsonrpc":"2.0","method":"x"}') * 1000),
    "messages that take long to parse": (agent, frame(TEXT, b'{"jsonrpc":"2.0","method":"x","params":{%b}}' % KEYS)),
    "unexpected answers": (browser, frame(TEXT, b'{"jsonrpc":"2.0","id":"conn-x:1","result":{}}') * 1000),
}


async def one_flood(relay: Relay, what: str) -> Seen:
    """One client floods."""
    who, data = FLOODS[what]
    bad = await asyncio.to_thread(who, relay)
    before = relay.child.rss_mb()
    with flooding(bad, data):
        return await measure(relay, before)


async def slow_requests(relay: Relay) -> Seen:
    """HTTP requests of one user that are slow to parse, on many connections."""
    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"x":{%b}}}' % KEYS
    head = (
        f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{relay.port}\r\nAuthorization: Bearer {relay.token('bad')}\r\n"
        f"Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    over = threading.Event()

    async def post() -> None:
        async with wire(relay.port) as line:
            while not over.is_set():
                await line.send(head.encode() + body)
                async with asyncio.timeout(60):
                    answer = await line.reader.readuntil(b"\r\n\r\n")
                    size = answer.lower().partition(b"content-length:")[2].split(b"\r\n")[0]
                    await line.reader.readexactly(int(size))

    async def many() -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(POSTS):
                group.create_task(post())

    before = relay.child.rss_mb()
    flood = asyncio.create_task(asyncio.to_thread(asyncio.run, many()))
    try:
        return await measure(relay, before)
    finally:
        over.set()
        await flood


async def agents_that_do_not_read(relay: Relay) -> Seen:
    """A browser sends notifications to agents that do not read them."""
    first, *agents = await asyncio.to_thread(readers, relay, READERS)
    before = relay.child.rss_mb()
    note = frame(TEXT, b'{"jsonrpc":"2.0","method":"x","params":{"t":"%b"}}' % (b"y" * 60_000))
    with ExitStack() as stack, flooding(first, note):
        for one in agents:
            stack.callback(one.sock.close)
        return await measure(relay, before)


async def unfinished_messages(relay: Relay) -> Seen:
    """Many agents of one user start a message of 5 MB and do not finish it."""
    many = await asyncio.to_thread(lambda: [agent(relay) for _ in range(SENDERS)])
    before = relay.child.rss_mb()
    begun = frame(BEGUN, b"x" * 5 * MB)

    def send(bad: Flooder) -> None:
        try:
            bad.sock.sendall(begun)
        except OSError:
            return  # the relay closed it

    threads = [threading.Thread(target=send, args=(bad,)) for bad in many]
    for thread in threads:
        thread.start()
    try:
        return await measure(relay, before)
    finally:
        for bad in many:
            bad.sock.close()
        for thread in threads:
            await asyncio.to_thread(thread.join)


async def _alone(relay: Relay) -> Seen:
    return await measure(relay, relay.child.rss_mb())


def _cases() -> Sequence[tuple[str, Callable[[Relay], Awaitable[Seen]], float]]:
    floods = [(what, lambda relay, what=what: one_flood(relay, what), 60.0) for what in FLOODS]
    return [
        ("nothing else", _alone, 60.0),
        *floods,
        (f"slow requests over {POSTS} HTTP connections", slow_requests, 60.0),
        (f"a browser next to {READERS} agents that do not read", agents_that_do_not_read, 200.0),
        (f"{SENDERS} agents with unfinished messages of 5 MB", unfinished_messages, 160.0),
    ]


async def _run(case: Callable[[Relay], Awaitable[Seen]], relay: Relay) -> Seen:
    return await case(relay)


def main() -> None:
    """Measure, print, and write the section of docs/performance.md."""
    rows, wanted = [], []
    for what, case, most in _cases():
        with tempfile.TemporaryDirectory(prefix="tabhub-bench-") as where:
            relay = Relay(Path(where), free_port(), "--client-rate", "12000", "--user-rate", "60000")
            with relay.child:
                seen = uvloop.run(_run(case, relay))
        rows.append((what, f"{seen.p50:.1f}", f"{seen.p99:.1f}", f"{seen.grown_mb:.0f}"))
        wanted.append(report.verdict(f"{what}, p50 in ms", seen.p50, 150, at_least=False))
        wanted.append(report.verdict(f"{what}, growth in MB", seen.grown_mb, most, at_least=False))
    note = f"{CALLS} calls of the other user during each; {report.machine()}."
    table = report.table(("during", "p50 ms", "p99 ms", "growth MB"), rows)
    text = "\n\n".join((note, table, "\n".join(line for line in wanted if "NOT met" in line) or "All bounds are met."))
    print(f"\n{text}\n")
    report.write_section("floods", text)
    sys.stdout.flush()
