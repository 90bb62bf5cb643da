"""One client of a relay that does its worst, known or not: it is that client's trouble, and nobody else's.

The relay is a process of its own with its usual limits; whoever floods it sends as fast as the socket takes it.
"""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter

import pytest
import uvloop

from bench.processes import free_port
from bench.relay_servers import Relay
from tests.harness.raw import wire
from tests.relay.independent import IndependentAgent, IndependentExtension

CALLS = 15
TEXT, BEGUN, MORE, PING, PONG = 0x81, 0x01, 0x00, 0x89, 0x8A
MB = 1024 * 1024


@pytest.fixture
async def relay(tmp_path: Path) -> AsyncIterator[Relay]:
    node = await asyncio.to_thread(Relay, tmp_path, free_port(), "--client-rate", "12000", "--user-rate", "60000")
    with node.child:
        yield node


def frame(first: int, payload: bytes = b"") -> bytes:
    size = len(payload)
    said = (
        bytes((0x80 | size,))
        if size < 126
        else b"\xfe" + size.to_bytes(2)
        if size < 65536
        else b"\xff" + size.to_bytes(8)
    )
    return bytes((first,)) + said + b"\0\0\0\0" + payload


class Bad:
    """A WebSocket that reads only to come in."""

    def __init__(self, relay: Relay, path: str) -> None:
        self.sock = socket.create_connection(("127.0.0.1", relay.port), timeout=30)
        self.sock.sendall(
            f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{relay.port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        self.read = b""
        self.until(b"\r\n\r\n")

    def until(self, what: bytes) -> None:
        while what not in self.read:
            more = self.sock.recv(65536)
            assert more, f"ended before {what!r} came"
            self.read += more

    def say(self, **message: object) -> None:
        self.sock.sendall(frame(TEXT, json.dumps({"jsonrpc": "2.0", **message}).encode()))

    def flood(self, data: bytes, over: threading.Event) -> None:
        self.sock.settimeout(0.5)
        while not over.is_set():
            try:
                self.sock.send(data)
            except TimeoutError:
                continue
            except OSError:
                return  # it was thrown out


def stranger(relay: Relay) -> Bad:
    return Bad(relay, "/mcp")


def agent(relay: Relay) -> Bad:
    bad = Bad(relay, "/mcp")
    bad.say(id=1, method="mcp_handshake", params={"accessToken": relay.token("bad")})
    bad.until(b'"authenticated"')
    return bad


def browser(relay: Relay) -> Bad:
    bad = Bad(relay, "/extension")
    bad.say(id="proxy:1", result={"name": "Bad", "accessToken": relay.token("bad"), "instanceId": "bad"})
    bad.until(b'"authenticated"')
    return bad


def connected(relay: Relay, count: int) -> list[Bad]:
    """A browser, and so many agents connected to it."""
    first = browser(relay)
    extension = first.read.partition(b'"extension_id":"')[2].partition(b'"')[0].decode()
    agents = [agent(relay) for _ in range(count)]
    for one in agents:
        one.say(id=2, method="connect", params={"extension_id": extension})
        one.until(b'"connection_id"')
    return [first, *agents]


@contextmanager
def flooding(bad: Bad, data: bytes) -> Iterator[None]:
    over = threading.Event()
    thread = threading.Thread(target=bad.flood, args=(data, over))
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        bad.sock.close()


async def calls(relay: Relay) -> float:
    """How long a call of another user takes, in the middle; that user comes while the flood is on."""
    base, took = f"ws://127.0.0.1:{relay.port}", []
    async with (
        asyncio.timeout(40),
        IndependentExtension(base, relay.token("good")),
        IndependentAgent(base, relay.token("good")) as good,
    ):
        await good.ready()
        for number in range(CALLS):
            began = perf_counter()
            assert await good.result("act", {"n": number}) == {"method": "act", "params": {"n": number}}
            took.append(perf_counter() - began)
    return median(took)


async def post(relay: Relay, body: bytes, over: threading.Event) -> None:
    """Requests one after the other, as fast as they are answered."""
    head = (
        f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{relay.port}\r\nAuthorization: Bearer {relay.token('bad')}\r\n"
        f"Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    async with wire(relay.port) as line:
        while not over.is_set():
            await line.send(head.encode() + body)
            async with asyncio.timeout(60):
                status, headers = await line.head()
                await line.reader.readexactly(int(headers["content-length"]))
            assert status < 500


@pytest.mark.timeout(120)
async def test_requests_of_one_user_that_take_long_slow_no_other(relay: Relay) -> None:
    over = threading.Event()
    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"x":{%b}}}' % KEYS

    async def many() -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(20):
                group.create_task(post(relay, body, over))

    flood = asyncio.create_task(asyncio.to_thread(uvloop.run, many()))
    try:
        assert await calls(relay) < 0.15
    finally:
        over.set()
        await flood


KEYS = b",".join(b'"k%d":1' % number for number in range(80_000))
FLOODS: dict[str, tuple[Callable[[Relay], Bad], bytes]] = {
    "pings of a stranger": (stranger, frame(PING, b"x" * 125) * 500),
    "broken messages of a stranger": (stranger, frame(TEXT, b"{") * 3000),
    "pings": (agent, frame(PING, b"x" * 125) * 500),
    "pongs nobody asked for": (agent, frame(PONG) * 5000),
    "fragments of no size": (agent, frame(BEGUN, b"{") + frame(MORE) * 5000),
    "broken messages": (agent, frame(TEXT, b"{") * 3000),
    "more messages than it may": (agent, frame(TEXT, b'{"jsonrpc":"2.0","method":"x"}') * 1000),
    "messages that take long to read": (agent, frame(TEXT, b'{"jsonrpc":"2.0","method":"x","params":{%b}}' % KEYS)),
    "answers nobody waits for": (browser, frame(TEXT, b'{"jsonrpc":"2.0","id":"conn-x:1","result":{}}') * 1000),
}


@pytest.mark.timeout(120)
@pytest.mark.parametrize("what", FLOODS)
async def test_a_flood_of_one_client_slows_no_other_user(relay: Relay, what: str) -> None:
    who, data = FLOODS[what]
    bad = await asyncio.to_thread(who, relay)
    before = relay.child.rss_mb()
    with flooding(bad, data):
        took = await calls(relay)
        assert relay.child.rss_mb() - before < 60
    assert took < 0.15


@pytest.mark.timeout(120)
async def test_what_a_browser_tells_agents_that_do_not_read_is_bounded_for_their_user(relay: Relay) -> None:
    first, *agents = await asyncio.to_thread(connected, relay, 60)
    before = relay.child.rss_mb()
    note = frame(TEXT, b'{"jsonrpc":"2.0","method":"x","params":{"t":"%b"}}' % (b"y" * 60_000))
    with ExitStack() as open_ones, flooding(first, note):
        for one in agents:
            open_ones.callback(one.sock.close)
        assert await calls(relay) < 0.15
        assert relay.child.rss_mb() - before < 200


@pytest.mark.timeout(120)
@pytest.mark.parametrize("begun", [frame(BEGUN, b"x" * 5 * MB), frame(TEXT, b"x" * 5 * MB)[:-1]])
async def test_messages_that_never_become_whole_are_bounded_for_their_user(relay: Relay, begun: bytes) -> None:
    many = await asyncio.to_thread(lambda: [agent(relay) for _ in range(80)])
    before = relay.child.rss_mb()

    def send(bad: Bad) -> None:
        try:
            bad.sock.sendall(begun)
        except OSError:
            return  # it was cut

    threads = [threading.Thread(target=send, args=(bad,)) for bad in many]
    for thread in threads:
        thread.start()
    try:
        assert await calls(relay) < 0.25
        for thread in threads:
            await asyncio.to_thread(thread.join)
        assert await calls(relay) < 0.15
        assert relay.child.rss_mb() - before < 160
    finally:
        for bad in many:
            bad.sock.close()
