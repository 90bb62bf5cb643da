"""One client of a relay that sends as much as it can, authenticated or not: other users do not have to wait.

`python -m bench floods` measures the calls of another user and the relay's memory during that. These tests observe the
relay from inside: who has to wait, who is disconnected, and how many bytes are buffered for a user.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

import pytest

from tabhub.relay.fair_share import FairShare, Participant, UserShare
from tabhub.relay.sockets import RelaySocket
from tests.harness.raw import frame, wire
from tests.harness.waiting import until
from tests.relay.engines.httpworld import http_relay
from tests.relay.independent import IndependentAgent, IndependentExtension
from tests.relay.world import RunningRelay, running_relay, token

CALLS = 15
TEXT, BEGUN, MORE, PING, PONG = 0x81, 0x01, 0x00, 0x89, 0x8A
MB = 1024 * 1024


class WatchedFairShare(FairShare):
    """The accounts of a node in which every piece that is read costs half a millisecond more than it does."""

    def __init__(self, most: int) -> None:
        super().__init__(most)
        self._looks = 0
        self._real_clock, self.clock = self.clock, self._slow_clock
        self.waited: Counter[str | None] = Counter()
        """How often a connection of a user had to wait for its turn."""
        self.most_kept: Counter[str | None] = Counter()
        """The most bytes that were buffered for a user at any time."""

    def _slow_clock(self) -> float:
        self._looks += 1
        return self._real_clock() + self._looks * 0.0005

    def enqueue(self, participant: Participant, share: UserShare) -> None:
        self.waited[share.name] += 1
        super().enqueue(participant, share)

    def add_buffered(self, share: UserShare, more: int) -> None:
        super().add_buffered(share, more)
        sockets = [each for each in share.participants if isinstance(each, RelaySocket)]
        kept = sum(each.buffered_bytes() for each in sockets if not each.transport.is_closing())
        self.most_kept[share.name] = max(self.most_kept[share.name], kept)


def watched(relay: RunningRelay) -> WatchedFairShare:
    """Watch the accounts of a node without connections."""
    fair_share = relay.node.fair_share = WatchedFairShare(relay.node.limits.relay_user_queue)
    return fair_share


@pytest.fixture
async def relay() -> AsyncIterator[RunningRelay]:
    async with running_relay(relay_user_queue=4 * MB) as running:
        yield running


class Flooder:
    """A WebSocket that reads only until it is authenticated."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def say(self, **message: object) -> None:
        self.writer.write(frame(TEXT, json.dumps({"jsonrpc": "2.0", **message}).encode()))

    async def until(self, what: bytes) -> bytes:
        async with asyncio.timeout(30):
            return await self.reader.readuntil(what)

    async def flood(self, data: bytes) -> None:
        """Send without end, as fast as the socket accepts data; returns when the relay closes the connection."""
        with suppress(OSError):
            while not self.reader.at_eof():
                self.writer.write(data)
                await self.writer.drain()
                await asyncio.sleep(0)


@asynccontextmanager
async def connected(relay: RunningRelay, path: str) -> AsyncIterator[Flooder]:
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # what it does not read stays in the relay's buffers
    sock.connect(("127.0.0.1", relay.port))
    reader, writer = await asyncio.open_connection(sock=sock)
    writer.write(
        f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{relay.port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
    )
    made = Flooder(reader, writer)
    try:
        await made.until(b"\r\n\r\n")
        yield made
    finally:
        writer.transport.abort()


@asynccontextmanager
async def stranger(relay: RunningRelay) -> AsyncIterator[Flooder]:
    async with connected(relay, "/mcp") as made:
        yield made


@asynccontextmanager
async def agent(relay: RunningRelay) -> AsyncIterator[Flooder]:
    async with connected(relay, "/mcp") as made:
        made.say(id=1, method="mcp_handshake", params={"accessToken": token("bad")})
        await made.until(b'"authenticated"')
        yield made


@asynccontextmanager
async def browser(relay: RunningRelay) -> AsyncIterator[Flooder]:
    async with connected(relay, "/extension") as made:
        made.say(id="proxy:1", result={"name": "Bad", "accessToken": token("bad"), "instanceId": "bad"})
        await made.until(b'"extension_id":"')
        yield made


async def another_user_is_served(relay: RunningRelay) -> None:
    """A user who connects during the flood gets the result of every call."""
    async with (
        asyncio.timeout(60),
        IndependentExtension(relay.url, token("good")),
        IndependentAgent(relay.url, token("good")) as good,
    ):
        await good.ready()
        for number in range(CALLS):
            assert await good.result("act", {"n": number}) == {"method": "act", "params": {"n": number}}


@asynccontextmanager
async def running(*work: Coroutine[Any, Any, None]) -> AsyncIterator[list[asyncio.Task[None]]]:
    """Run something until the end of the block."""
    tasks = [asyncio.create_task(each) for each in work]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


KEYS = b",".join(b'"k%d":1' % number for number in range(80_000))
Flood = tuple[Callable[[RunningRelay], Any], bytes]
REFUSED: dict[str, Flood] = {
    "pings of a stranger": (stranger, frame(PING, b"x" * 125) * 500),
    "broken messages of a stranger": (stranger, frame(TEXT, b"{") * 3000),
}
THROTTLED: dict[str, Flood] = {
    "pings": (agent, frame(PING, b"x" * 125) * 500),
    "unsolicited pongs": (agent, frame(PONG) * 5000),
    "fragments of no size": (agent, frame(BEGUN, b"{") + frame(MORE) * 5000),
    "broken messages": (agent, frame(TEXT, b"{") * 3000),
    "more messages than it may": (agent, frame(TEXT, b'{"jsonrpc":"2.0","method":"x"}') * 1000),
    "messages that take long to read": (agent, frame(TEXT, b'{"jsonrpc":"2.0","method":"x","params":{%b}}' % KEYS)),
    "unexpected replies": (browser, frame(TEXT, b'{"jsonrpc":"2.0","id":"conn-x:1","result":{}}') * 1000),
}


@pytest.mark.parametrize("what", REFUSED)
async def test_a_flood_of_a_stranger_ends_its_connection(relay: RunningRelay, what: str) -> None:
    watched(relay)
    who, data = REFUSED[what]
    async with who(relay) as bad, running(bad.flood(data)) as (flood,):
        await another_user_is_served(relay)
        await asyncio.wait_for(flood, 30)


@pytest.mark.parametrize("what", THROTTLED)
async def test_a_flood_of_one_client_has_to_wait_while_another_user_is_served(relay: RunningRelay, what: str) -> None:
    fair_share = watched(relay)
    who, data = THROTTLED[what]
    async with who(relay) as bad, running(bad.flood(data)):
        await another_user_is_served(relay)
        await until(lambda: fair_share.waited["bad"] > 0)
    assert fair_share.most_kept["bad"] <= relay.node.limits.relay_user_queue


async def test_requests_of_one_user_that_take_long_have_to_wait_while_another_user_is_served() -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"x":{%b}}}' % KEYS
    async with http_relay() as made:
        relay = made.relay
        fair_share = watched(relay)
        head = (
            f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{relay.port}\r\nAuthorization: Bearer {token('bad')}\r\n"
            f"Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )

        async def post() -> None:
            async with wire(relay.port) as line:
                while True:
                    await line.send(head.encode() + body)
                    status, headers = await line.head()
                    await line.reader.readexactly(int(headers["content-length"]))
                    assert status < 500

        async with running(*(post() for _ in range(5))) as posts:
            await another_user_is_served(relay)
            await until(lambda: fair_share.waited["bad"] > 0)
            assert not [each for each in posts if each.done()]


async def test_what_a_browser_tells_agents_that_do_not_read_is_bounded_for_their_user(relay: RunningRelay) -> None:
    fair_share = watched(relay)
    note = frame(TEXT, b'{"jsonrpc":"2.0","method":"x","params":{"t":"%b"}}' % (b"y" * 60_000))
    async with browser(relay) as first, AsyncExitStack() as stack:
        extension = (await first.until(b'"')).decode().rstrip('"')
        agents = [await stack.enter_async_context(agent(relay)) for _ in range(8)]
        for one in agents:
            one.say(id=2, method="connect", params={"extension_id": extension})
            await one.until(b'"connection_id"')
        async with running(first.flood(note)):
            await another_user_is_served(relay)
            await until(lambda: len(relay.node.sockets) < 9)  # the reader with the most buffered bytes is aborted
    # Until the loop has closed an aborted reader, what the browser sent in one piece goes to the others.
    piece = 256 * 1024 * len(agents)
    assert MB < fair_share.most_kept["bad"] <= relay.node.limits.relay_user_queue + piece


@pytest.mark.parametrize("begun", [frame(BEGUN, b"x" * MB), frame(TEXT, b"x" * MB)[:-1]])
async def test_messages_that_never_become_whole_are_bounded_for_their_user(relay: RunningRelay, begun: bytes) -> None:
    fair_share = watched(relay)
    async with AsyncExitStack() as stack:
        many = [await stack.enter_async_context(agent(relay)) for _ in range(8)]
        for bad in many:
            bad.writer.write(begun)
        await another_user_is_served(relay)
        await until(lambda: len(relay.node.sockets) <= 4)  # only as many as fit remain
        assert len(relay.node.sockets) > 0
    assert MB < fair_share.most_kept["bad"] <= relay.node.limits.relay_user_queue
